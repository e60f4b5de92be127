"""`memrl bench`: every call is measured, the goals are told, and nothing is left behind."""

import json
import sys
import tempfile

import pytest

from langchain_memrl.bench.rows import Goal, Row
from langchain_memrl.bench.timing import Times, in_turns, summary
from langchain_memrl.cli import main

CALLS = {
    "import",
    "load, per memory",
    "recall",
    "recall in an episode",
    "reinforce 5 memories",
    "reinforce 160 memories",
    "remember",
    "stats",
    "retriever.invoke",
    "retriever.ainvoke",
    "whole graph loop",
    "open",
    "open and first recall",
    "peer: langchain-core InMemoryVectorStore",
    "peer: LangGraph InMemoryStore",
}


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["memrl", "bench", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), capsys.readouterr()

    return call


def test_the_bench_measures_every_call_and_leaves_only_its_figure(run, tmp_path):
    figure = tmp_path / "cost.png"
    options = ("--sizes", "20,60", "--dimensions", 8, "--rounds", 5, "--json")
    code, said = run(*options, "--figure", figure)
    assert code == 0
    found = json.loads(said.out)
    assert {row["what"] for row in found["rows"]} >= CALLS
    assert all(row["ms"]["median"] > 0 for row in found["rows"])
    assert {row["size"] for row in found["rows"]} == {0, 20, 60}
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["cost.png"]


def test_an_unusable_size_is_refused(run):
    for text in ("", "a", "0", "10,-1"):
        code, said = run("--sizes", text)
        assert code == 1
        assert "expected whole numbers above 0" in said.err


def test_a_goal_is_a_factor_and_something_on_top():
    def row(ours, floor, goal):
        return Row("x", 1, 1, Times(ours, ours, 1), "floor", Times(floor, floor, 1), goal)

    assert row(2.7, 2.0, Goal(1.25, 0.2)).is_met
    assert not row(2.71, 2.0, Goal(1.25, 0.2)).is_met
    assert row(3.0, 2.0, None).is_met is None
    assert row(3.0, 2.0, None).ratio == 1.5


def test_calls_take_turns_and_warm_ups_do_not_count():
    order = []
    calls = {name: lambda n, name=name: order.append((name, n)) for name in "ab"}
    times = in_turns(calls, 2)
    assert order == [(name, n) for n in range(5) for name in "ab"]
    assert [times[name].calls for name in "ab"] == [2, 2]


def test_the_median_and_the_99th_percentile():
    found = summary([float(n) for n in range(1, 201)])
    assert (found.median, found.p99, found.calls) == (100.5, 199.0, 200)
