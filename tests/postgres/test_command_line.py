"""Every command that takes a bank takes a connection string too, and shows no password."""

import json
import sys

import pytest

from langchain_memrl import EpisodicMemory
from langchain_memrl.cli import main
from langchain_memrl.offline import HashingEmbeddings

EMBEDDINGS = "langchain_memrl.offline:HashingEmbeddings"
PASSWORD = "canary-Pa55word"


@pytest.fixture
def bank(folder):
    """A bank with three memories, one reward, one open episode; the location has a password."""
    with EpisodicMemory.open(folder, embeddings=HashingEmbeddings()) as memory:
        made = [memory.remember("reset a router", f"way {number}") for number in range(3)]
        memory.remember("bake bread", "Use rye flour.", namespace="acme")
        memory.reinforce("e1", reward=-1.0, ids=[made[0].id])
        memory.recall("router reset", episode_id="waits")
    return folder.replace("postgres:@", f"postgres:{PASSWORD}@", 1)


@pytest.fixture
def run(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("MEMRL_DSN", "MEMRL_EMBEDDINGS"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["memrl", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        assert PASSWORD not in said.out + said.err
        assert int(end.value.code or 0) == code, said.err
        return said.out + said.err if code else said.out

    return call


@pytest.fixture(params=["argument", "MEMRL_DSN"])
def named(request, bank, monkeypatch):
    """How the bank is named: as the argument, or by the environment."""
    if request.param == "argument":
        return [bank]
    monkeypatch.setenv("MEMRL_DSN", bank)
    return []


def ids(run, named):
    return [memory["id"] for memory in json.loads(run("list", *named, "--json"))]


def test_looking(run, named):
    assert [one["namespace"] for one in json.loads(run("stats", *named, "--json"))] == [
        *("acme", "default")
    ]
    newest = ids(run, named)[0]
    assert "way 2" in run("show", newest, *named)
    oldest = ids(run, named)[-1]
    assert "-0.300" in run("history", oldest, *named)
    assert "way 1" in run("search", "ROUTER", *named)
    found = json.loads(run("search", "router reset", *named, "--embeddings", EMBEDDINGS, "--json"))
    assert {one["id"] for one in found} == set(ids(run, named))
    assert "waits" in run("episodes", *named)
    assert "Nothing was held out yet" in run("lift", *named)
    assert "0 problems in 4 memories, 2 intents" in run("verify", *named)


def test_looking_after(run, named, tmp_path, new_place):
    before = ids(run, named)
    assert "rebuilt" in run("rebuild", *named)
    assert "compact" in run("compact", *named)
    assert "1 episodes closed" in run("expire", *named, "--older-than", 0)
    run("export", *named, tmp_path / "dump.jsonl")
    run("backup", *named, tmp_path / "copy")
    run("backup", *named, tmp_path / "copy", code=1)
    assert ids(run, [tmp_path / "copy"]) == ids(run, named) == before
    copy = new_place("copy").replace("postgres:@", f"postgres:{PASSWORD}@", 1)
    assert "holds everything" in run("import", tmp_path / "dump.jsonl", copy)
    assert ids(run, [copy]) == before
    assert "0 problems" in run("verify", copy)
    options = ("--max-q", 0, "--min-updates", 1)
    assert "1 memory would" in run("prune", *named, *options, "--dry-run")
    run("prune", *named, *options, "--yes")
    run("forget", *named, "--id", before[0], "--yes")
    assert ids(run, named) == [before[1]]
    name = "langchain_memrl.offline:WordLlamaEmbeddings"
    assert "2 texts embedded" in run("reembed", *named, "--embeddings", name)
    assert "0 problems" in run("verify", *named)


def test_verify_tells_by_its_exit_code_what_does_not_agree(run, bank, database):
    database.execute("UPDATE memories SET q = 0.9")
    assert "its history says" in run("verify", bank, code=1)


def test_errors_are_one_sentence_without_a_password(run, bank, new_place):
    nowhere = new_place("nowhere").replace("postgres:@", f"postgres:{PASSWORD}@", 1)
    assert "there is no memory bank at postgresql://" in run("stats", nowhere, code=1)
    bad = f"{bank.rpartition('=')[0]}=Bad"
    assert "small letters" in run("stats", bad, code=1)
    away = f"postgresql://user:{PASSWORD}@127.0.0.1:1/db"
    assert "call again" in run("stats", away, code=1)
    unreadable = f"postgresql://user:{PASSWORD}@127.0.0.1:port/db"
    assert "percent-encoded" in run("verify", unreadable, code=1)
    assert "unexpected extra argument" in run("stats", "folder", bank, code=2)
    by_option = f"postgresql://127.0.0.1/db?password={PASSWORD}"
    assert "unexpected extra argument" in run("stats", "folder", by_option, code=2)


def test_a_path_to_write_to_is_asked_for(run, bank, monkeypatch):
    for command in ("export", "backup"):
        assert "two things are needed" in run(command, "one", code=1)
    monkeypatch.setenv("MEMRL_DSN", bank)
    for command in ("export", "backup"):
        assert "two things are needed" in run(command, code=1)
