import json
from dataclasses import replace
from pathlib import Path

import pytest

from langchain_memrl.errors import InputError
from langchain_memrl.evals.analysis import metrics
from langchain_memrl.evals.analysis.reading import read_experiment
from langchain_memrl.evals.records import (
    BankRecord,
    EpisodeRecord,
    Header,
    line,
    read_records,
    write_records,
)
from langchain_memrl.evals.report.demo import epoch_table, terminal_curves, verdict

HEADER = Header("runbooks", "tiny", {"seed": 7, "k": 1}, {"numpy": "2"})


def episode(arm: str, epoch: int, task: str, success: bool, step: int = 0) -> EpisodeRecord:
    return EpisodeRecord("", arm, 7, epoch, step, task, success, ("m1",), (0.3,), 0.1)


# Arm "a": task x fails, then succeeds twice; task y succeeds, then fails twice.
RECORDS = [
    episode("a", 0, "x", False),
    episode("a", 0, "y", True),
    episode("a", 1, "x", True),
    episode("a", 1, "y", False),
    episode("a", 2, "x", True),
    episode("a", 2, "y", False),
    episode("b", 0, "x", False),
]


def test_success_per_epoch_is_the_share_solved() -> None:
    assert metrics.success_per_epoch(RECORDS, "a") == [0.5, 0.5, 0.5]
    assert metrics.success_per_epoch(RECORDS, "b") == [0.0]


def test_cumulative_success_counts_a_task_once_solved() -> None:
    assert metrics.cumulative_success(RECORDS, "a") == [0.5, 1.0, 1.0]


def test_running_success_looks_back_a_window() -> None:
    # Wins of "a" in order: 0 1 1 0 1 0; windows of two: 0, 01, 11, 10, 01, 10.
    assert metrics.running_success(RECORDS, "a", window=2) == [0, 0.5, 1, 0.5, 0.5, 0.5]


def test_arms_come_in_the_order_of_the_records() -> None:
    assert metrics.arms(RECORDS) == ["a", "b"]
    assert metrics.arms([]) == []


def test_records_come_back_as_they_were_written(tmp_path: Path) -> None:
    bank = BankRecord("", "a", 7, 0, ("m1",), (0.3,), (1,), (False,))
    write_records(tmp_path / "r.jsonl", HEADER, [*RECORDS, bank])
    assert read_records(tmp_path / "r.jsonl") == (HEADER, RECORDS, [bank])


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "episode"}', "no json"])
def test_a_file_without_records_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.jsonl").write_text(text)
    with pytest.raises(InputError, match="holds no records"):
        read_records(tmp_path / "r.jsonl")


def test_the_table_has_a_row_per_arm_and_a_column_per_epoch() -> None:
    table = epoch_table(RECORDS)
    assert (table.row_count, len(table.columns)) == (2, 4)


def test_the_curves_are_plain_text_without_a_terminal() -> None:
    text = terminal_curves(RECORDS, width=60, color=False)
    assert "\x1b" not in text
    assert "tickets answered" in text


@pytest.mark.parametrize(
    ("memrl", "rag", "said"),
    [(10, 3, "helped"), (3, 10, "hurt"), (5, 5, "made no difference")],
)
def test_the_verdict_says_who_was_ahead(memrl: int, rag: int, said: str) -> None:
    wins = {"rag": rag, "memrl": memrl, "oracle": 10}
    records = [
        episode(arm, 0, str(task), task < count)
        for arm, count in wins.items()
        for task in range(10)
    ]
    assert said in verdict(records)


def test_the_verdict_says_when_the_oracle_is_out_of_reach() -> None:
    wins = {"rag": 3, "memrl": 6, "oracle": 10}
    records = [
        episode(arm, 0, str(task), task < count)
        for arm, count in wins.items()
        for task in range(10)
    ]
    assert "still fewer than the oracle" in verdict(records)


DAMAGED = {
    "success": ["no", 2, 1, float("nan")],
    "epoch": [-1, 0.5, "z", True],
    "seconds": ["1", float("inf"), None],
    "q_values": [["x"], [float("nan")]],
    "reward": ["1", float("inf")],
    "split": ["other"],
    "world": [None, 3],
    "calls": [-1, 2.5],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_no_run_writes_is_refused_when_it_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "r.jsonl"
    for value in DAMAGED[name]:
        write_records(path, HEADER, [])
        fields = json.loads(line(RECORDS[0])) | {name: value}
        path.write_text(path.read_text() + json.dumps(fields) + "\n")
        with pytest.raises(InputError, match="holds no records"):
            read_records(path)


@pytest.mark.parametrize("text", [b"[" * 100_000, b"\xff\xfe\x00", b'{"kind": "episode"}'])
def test_a_line_that_is_none_is_refused_in_words(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "r.jsonl"
    records = [replace(record, step=step) for step, record in enumerate(RECORDS)]
    write_records(path, HEADER, records)
    path.write_bytes(path.read_bytes() + text + b"\n")
    with pytest.raises(InputError, match="holds no records"):
        read_records(path)
    with pytest.raises(InputError, match="line 9, is no record"):
        read_experiment(tmp_path)


def test_a_last_line_cut_inside_a_letter_is_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write_records(path, HEADER, [replace(one, step=step) for step, one in enumerate(RECORDS)])
    whole = line(replace(RECORDS[0], answer="für", step=9)).encode()
    path.write_bytes(path.read_bytes() + whole[: whole.index(b"\xc3") + 1])
    assert read_experiment(tmp_path).cut == (str(path),)
