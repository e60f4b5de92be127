"""`memrl stats | list | show | search`: what a person sees, and what a script reads."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from langchain_memrl import EpisodicMemory
from langchain_memrl.cli import main
from langchain_memrl.offline import HashingEmbeddings

EMBEDDINGS = "langchain_memrl.offline:HashingEmbeddings"


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    folder = tmp_path / "bank"
    with EpisodicMemory.open(folder, embeddings=HashingEmbeddings()) as memory:
        memory.remember("reset a router", "Hold [bold]the[/bold] button.", outcome="success")
        memory.remember("bake bread", "Use rye flour.", namespace="acme", metadata={"stars": 5})
        memory.recall("router reset", episode_id="e1")
        memory.reinforce("e1", reward=1.0)
    return folder


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("MEMRL_DSN", "MEMRL_EMBEDDINGS"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["memrl", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return int(end.value.code or 0), captured.out, captured.err

    return call


def test_stats_has_a_column_per_namespace(run: Any, bank: Path) -> None:
    code, out, _ = run("stats", bank)
    assert code == 0
    assert "acme" in out
    assert "default" in out
    code, out, _ = run("stats", bank, "--json")
    assert [(item["namespace"], item["updates"]) for item in json.loads(out)] == [
        ("acme", 0),
        ("default", 1),
    ]


def test_list_shows_text_as_it_is_within_eighty_columns(run: Any, bank: Path) -> None:
    _, out, _ = run("list", bank)
    assert "Hold [bold]the[/bold] button." in out
    assert "Q +0.300 after 1 reward, success" in out
    assert max(map(len, out.splitlines())) <= 80


def test_list_takes_a_limit_and_a_namespace(run: Any, bank: Path) -> None:
    assert json.loads(run("list", bank, "--limit", 0, "--json")[1]) == []
    (only,) = json.loads(run("list", bank, "--namespace", "acme", "--json")[1])
    assert (only["lesson"], only["metadata"]) == ("Use rye flour.", {"stars": 5})


def test_show_tells_every_step_of_q(run: Any, bank: Path) -> None:
    (memory,) = json.loads(run("list", bank, "--json")[1])
    _, out, _ = run("show", memory["id"], bank)
    assert "+0.000 -> +0.300" in out
    (step,) = json.loads(run("show", memory["id"], bank, "--json")[1])["history"]
    assert (step["episode_id"], step["before"], step["after"]) == ("e1", 0.0, 0.3)


def test_search_without_embeddings_searches_the_text_and_says_so(run: Any, bank: Path) -> None:
    _, out, err = run("search", "BUTTON", bank)
    assert "reset a router" in out
    assert "searching the text" in err


def test_search_with_embeddings_recalls_and_records_nothing(
    run: Any, bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMRL_EMBEDDINGS", EMBEDDINGS)
    monkeypatch.setenv("MEMRL_DSN", str(bank))
    (found,) = json.loads(run("search", "router reset", "--json")[1])
    assert found["similarity"] > 0.5
    assert "Nothing is similar enough" in run("search", "quantum chromodynamics")[1]
    (_, default) = json.loads(run("stats", "--json")[1])
    assert default["selections"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["stats", "nowhere"], "there is no memory bank at"),
        (["show", "no-such-id"], "there is no memory 'no-such-id'"),
        (["search", "x", "--embeddings", "nowhere"], "expected module:factory"),
        (["search", "x", "--embeddings", "json:loads"], "expected module:factory"),
        (["search", "x", "--embeddings", "builtins:dict"], "made a dict"),
    ],
)
def test_an_error_is_one_sentence_and_exit_code_one(
    run: Any, bank: Path, arguments: list[str], said: str
) -> None:
    if "nowhere" not in arguments[1:2]:
        arguments = [*arguments, str(bank)]
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert said in err
    assert "Traceback" not in err


def test_a_missing_bank_is_not_created_by_looking(run: Any, tmp_path: Path) -> None:
    run("stats", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_the_module_is_the_same_command(run: Any) -> None:
    import langchain_memrl.__main__ as module

    assert module.main is main
    assert run("--version")[1].strip() == "0.1.0"


def test_stored_text_cannot_send_codes_to_the_terminal(run: Any, tmp_path: Path) -> None:
    with EpisodicMemory.open(tmp_path / "bank", embeddings=HashingEmbeddings()) as memory:
        made = memory.remember("title \x1b]0;owned\x07", "red \x1b[31m")
    for call in (("list", tmp_path / "bank"), ("show", made.id, tmp_path / "bank")):
        out = run(*call)[1]
        assert "\x1b]" not in out
        assert "\\x1b]0;owned\\x07" in out


def test_lift_tells_what_memories_are_worth(run: Any, bank: Path) -> None:
    assert "Nothing was held out yet" in run("lift", bank)[1]
    with EpisodicMemory.open(bank, embeddings=HashingEmbeddings()) as memory:
        for number in range(60):
            found = memory.recall("router reset", episode_id=f"l{number}", holdout=0.5)
            memory.reinforce(f"l{number}", reward=1.0 if found.memories else -1.0)
    out = run("lift", bank)[1]
    assert "memories help" in out
    assert "+1.000" in out
    data = json.loads(run("lift", bank, "--memories", "--json")[1])
    assert data["episodes_with"] + data["episodes_without"] == 60
    assert data["low"] > 0
    assert len(data["memories"]) == 1


def test_open_episodes_are_listed_and_expire(run: Any, bank: Path) -> None:
    assert "No episode waits" in run("episodes", bank)[1]
    with EpisodicMemory.open(bank, embeddings=HashingEmbeddings()) as memory:
        memory.recall("router reset", episode_id="waits")
    assert "waits" in run("episodes", bank)[1]
    assert [one["episode_id"] for one in json.loads(run("episodes", bank, "--json")[1])] == [
        "waits"
    ]
    assert "No episode waits" in run("episodes", bank, "--older-than", 1)[1]
    assert "1 episodes closed" in run("expire", bank, "--older-than", 0)[1]
    assert "No episode waits" in run("episodes", bank)[1]
