"""`memrl history | verify | rebuild | export | import | forget | prune | compact | backup`."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from langchain_memrl import EpisodicMemory
from langchain_memrl.cli import main
from langchain_memrl.offline import HashingEmbeddings


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    with EpisodicMemory.open(tmp_path / "bank", embeddings=HashingEmbeddings()) as memory:
        made = [memory.remember("reset a router", f"way {number}") for number in range(3)]
        memory.reinforce("e1", reward=-1.0, ids=[made[0].id])
    return tmp_path / "bank"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.delenv("MEMRL_DSN", raising=False)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["memrl", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return int(end.value.code or 0), captured.out, captured.err

    return call


def ids(run: Any, bank: Path) -> list[str]:
    return [memory["id"] for memory in json.loads(run("list", bank, "--json")[1])]


def test_history_tells_the_steps_of_q(run: Any, bank: Path) -> None:
    oldest = ids(run, bank)[-1]
    (step,) = json.loads(run("history", oldest, bank, "--json")[1])
    assert (step["episode_id"], step["after"]) == ("e1", -0.3)
    assert "-0.300" in run("history", oldest, bank)[1]


def test_verify_says_by_its_exit_code_whether_the_bank_is_sound(run: Any, bank: Path) -> None:
    assert run("verify", bank)[0] == 0
    import sqlite3

    with sqlite3.connect(bank / "memrl.sqlite3") as db:
        db.execute("UPDATE memories SET q = 0.9")
    code, out, _ = run("verify", bank)
    assert code == 1
    assert "its history says" in out


def test_an_export_becomes_another_bank(run: Any, bank: Path, tmp_path: Path) -> None:
    assert run("export", bank, tmp_path / "x.jsonl")[0] == 0
    assert run("import", tmp_path / "x.jsonl", tmp_path / "copy")[0] == 0
    assert ids(run, tmp_path / "copy") == ids(run, bank)
    assert run("import", tmp_path / "none", tmp_path / "copy")[0] == 1


def test_reembed_goes_over_to_another_model(run: Any, bank: Path) -> None:
    name = "langchain_memrl.offline:WordLlamaEmbeddings"
    assert "1 texts embedded" in run("reembed", bank, "--embeddings", name)[1]
    assert "similarity 1.000" in run("search", "reset a router", bank, "--embeddings", name)[1]
    hashing = "langchain_memrl.offline:HashingEmbeddings"
    assert run("search", "reset a router", bank, "--embeddings", hashing)[0] == 1
    assert run("verify", bank)[0] == 0


def test_backup_rebuild_and_compact_leave_the_bank_as_it_is(
    run: Any, bank: Path, tmp_path: Path
) -> None:
    before = ids(run, bank)
    assert [run(*call)[0] for call in (("rebuild", bank), ("compact", bank))] == [0, 0]
    assert run("backup", bank, tmp_path / "copy")[0] == 0
    assert run("backup", bank, tmp_path / "copy")[0] == 1
    assert ids(run, bank) == ids(run, tmp_path / "copy") == before


def test_forget_and_prune_ask_first_and_can_only_tell(
    run: Any, bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ids(run, bank)
    assert "1 memory would" in run("prune", bank, "--max-q", 0, "--min-updates", 1, "--dry-run")[1]
    assert (
        "2 memories would"
        in run("forget", bank, "--id", before[0], "--id", before[1], "--dry-run")[1]
    )
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert run("forget", bank, "--all")[0] == 1
    assert ids(run, bank) == before
    assert run("prune", bank, "--max-q", 0, "--min-updates", 1, "--yes")[0] == 0
    assert run("forget", bank, "--id", before[0], "--yes")[0] == 0
    assert ids(run, bank) == [before[1]]
