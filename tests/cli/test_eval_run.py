"""`memrl eval run` and `memrl eval list`, as typed."""

import json
import sys
from pathlib import Path

import pytest

from langchain_memrl.cli import main
from langchain_memrl.evals.records import read_records

SHORT = ("--seeds", 1, "--epochs", 2, "--tasks", 8, "--jobs", 1)


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["memrl", "eval", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_a_run_leaves_one_file_per_world_and_shows_the_means(tmp_path, monkeypatch, capsys):
    options = ("--arms", "none,memrl", "--worlds", "*-notes", "--batch", 4, "--guard", *SHORT)
    assert run(monkeypatch, "run", "worlds", "--out", tmp_path, *options) == 0
    shown = capsys.readouterr().out
    assert "memrl" in shown
    assert "64 episodes" in shown
    assert {path.name for path in tmp_path.iterdir()} == {"clear-notes.jsonl", "alike-notes.jsonl"}
    header, episodes, banks = read_records(tmp_path / "alike-notes.jsonl")
    assert (len(episodes), len(banks), header.suite) == (32, 4, "worlds")
    chosen = header.settings
    assert (chosen["guard"], chosen["batch"], chosen["epochs"]) == (True, 4, 2)
    assert chosen["arms"]["memrl"]["step_size"] == 0.3
    assert header.versions["langchain-memrl"]


def test_the_same_command_again_finds_everything_done(tmp_path, monkeypatch, capsys):
    options = ("--arms", "none,memrl", "--worlds", "alike-notes", *SHORT)
    assert run(monkeypatch, "run", "worlds", "--out", tmp_path, *options) == 0
    before = (tmp_path / "alike-notes.jsonl").read_bytes()
    assert run(monkeypatch, "run", "worlds", "--out", tmp_path, *options) == 0
    assert (tmp_path / "alike-notes.jsonl").read_bytes() == before
    assert run(monkeypatch, "run", "worlds", "--out", tmp_path, *options, "--guard") == 1
    assert "guard is false there and true now" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["worlds", "--arms", "memrl,ragg"], "unknown arm ragg; known are none"),
        (["worlds", "--worlds", "mars"], "no world is called 'mars'"),
        (["moon"], "no suite 'moon'; known are"),
        (["runbooks", "--base-url", "http://127.0.0.1:9/v1"], "belong together"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, monkeypatch, capsys, arguments, said):
    assert run(monkeypatch, "run", *arguments, "--out", tmp_path) == 1
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert [*tmp_path.iterdir()] == []


def test_one_s_own_suite_runs_by_its_module(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "evals"))
    options = ("--arms", "none,memrl", "--protocol", "transfer", "--seeds", 1, "--jobs", 2)
    assert run(monkeypatch, "run", "colours:SLOW", "--out", tmp_path, *options) == 0
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert {json.loads(line).get("split") for line in lines} == {None, "train", "held_out"}
    assert (tmp_path / "banks" / "memrl-0" / "bank").is_dir()


def test_the_list_names_suites_worlds_and_arms(monkeypatch, capsys):
    assert run(monkeypatch, "list") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("runbooks", "worlds", "alike-notes", "memrl-plain"))
