"""`memrl bench`: says what it will take and what it found, and fails only on wrong answers."""

import functools
import json
import sys
import tempfile

import pytest

from langchain_memrl.bench import footprint, measures, shared
from langchain_memrl.bench.rows import Found, Goal, Row
from langchain_memrl.bench.timing import Times
from langchain_memrl.cli import bench, main


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["memrl", "bench", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), capsys.readouterr()

    return call


@pytest.fixture
def found(monkeypatch):
    """What the measurements find, instead of measuring."""
    asked = []

    def put(row, missing=()):
        monkeypatch.setattr(
            measures, "measure_once", lambda *given: asked.append(given) or Found([row], {})
        )
        monkeypatch.setattr(
            measures,
            "measure",
            lambda step, say, server: asked.append(step) or Found([], dict(missing)),
        )
        return asked

    return put


def row(value, **more):
    return Row("recall", 20, 8, Times(value, value, value, 5), **more)


def test_what_holds_for_any_bank_is_measured_for_real_and_leaves_only_the_figure(
    run, tmp_path, monkeypatch
):
    monkeypatch.setattr(bench, "UPDATES", 2)
    monkeypatch.setattr(bench, "EPISODES", 2)
    monkeypatch.setattr(footprint, "BASE", "import json")
    monkeypatch.setattr(footprint, "WHOLE", "import decimal")
    monkeypatch.setattr(measures, "processes", functools.partial(shared.processes, processes=2))
    monkeypatch.setattr(
        measures, "measure", lambda step, say, server: say("recall") or Found([row(1)], {})
    )
    figure = tmp_path / "cost.png"
    options = ("--sizes", "20", "--dimensions", 8, "--rounds", 5, "--json", "--figure", figure)
    code, said = run(*options)
    assert code == 0
    rows = {one["what"]: one for one in json.loads(said.out)["rows"]}
    assert {"import", "extra model calls, at most", "recall"} <= set(rows)
    assert rows["2 x 2 rewards at once, 99 %"]["measured"]["calls"] == 4
    assert "Measuring 1 bank; this takes about" in said.err
    assert "1 of 1: 20 x 8, about 15 seconds to go\n  recall" in said.err
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["cost.png"]


def test_a_missed_goal_is_told_and_no_failure(run, found):
    found(row(300.0, goal=Goal(0, 100)))
    code, said = run("--sizes", "20")
    assert code == 0
    assert "MISSED 100" in said.out


def test_a_wrong_answer_is_told_and_fails(run, found):
    found(row(1.0, goal=Goal(0, 100), error="expected 8 rewards, got 7"))
    code, said = run("--sizes", "20")
    assert code == 1
    assert "expected 8 rewards, got 7" in said.out
    assert "WRONG" in said.out
    assert json.loads(run("--sizes", "20", "--json")[1].out)["rows"][0]["met"] is False


def test_what_could_not_be_measured_is_named_with_its_reason(run, found):
    found(row(1.0), {"Chroma": "not installed (chromadb)"})
    assert "not measured: Chroma: not installed (chromadb)" in run("--sizes", "20")[1].out


def test_more_rewards_at_once_only_with_large(run, found):
    asked = found(row(1.0))
    run("--sizes", "20", "--dimensions", "8")
    run("--sizes", "20", "--dimensions", "8", "--large")
    assert [one[0] for one in asked if not hasattr(one, "size")] == [250, 2000]
    assert [one.size for one in asked if hasattr(one, "size")] == [20, 20, 1_000_000]


def test_an_unusable_size_is_refused(run):
    for text in ("", "a", "0", "10,-1"):
        code, said = run("--sizes", text)
        assert code == 1
        assert "expected whole numbers above 0" in said.err
