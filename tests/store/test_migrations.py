"""Banks of every earlier format open and tell the same; see `tests/golden`."""

import dataclasses
import json
import random
import shutil
from pathlib import Path

import pytest
from children import PROCESSES, open_when_told

from langchain_memrl import EpisodicMemory
from langchain_memrl.errors import StoreVersionError
from langchain_memrl.offline import HashingEmbeddings

GOLDEN = Path(__file__).parents[1] / "golden"
FORMATS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
EPISODES = ("e1", "e2", "open", "held", "raw")


def without_later(memory):
    """The fields that a memory had in every format."""
    return {name: value for name, value in memory.items() if name != "writer"}


def told_of(memory, space):
    """Everything a bank tells of a namespace."""
    memories = memory.list(limit=None, namespace=space)
    recall = memory.recall("task 1", namespace=space, score_threshold=None)
    return {
        "memories": [without_later(dataclasses.asdict(one)) for one in memories],
        "history": {
            one.id: [dataclasses.asdict(step) for step in memory.history(one.id, namespace=space)]
            for one in memories
        },
        "stats": dataclasses.asdict(memory.stats(namespace=space)),
        "recall": [[one.id, one.similarity, one.score] for one in recall.memories],
    }


def told(folder):
    with EpisodicMemory.open(folder, embeddings=HashingEmbeddings(16)) as memory:
        spaces = memory.namespaces()
        answer = {space: told_of(memory, space) for space in spaces}
        answer["learning"] = dataclasses.asdict(memory.learning)
        answer["namespaces"] = spaces
        answer["episodes"] = [dataclasses.asdict(memory.episode(id)) for id in EPISODES]
        assert memory.verify().problems == ()
    return json.loads(json.dumps(answer, default=str))


@pytest.fixture(params=FORMATS)
def old(request, tmp_path):
    """A copy of a bank of an earlier format, and what it told then."""
    shutil.copytree(GOLDEN / request.param, tmp_path / "bank")
    return tmp_path / "bank", json.loads((GOLDEN / f"{request.param}.json").read_text())


def test_a_bank_of_an_earlier_format_tells_what_it_told_then(old):
    folder, expected = old
    assert told(folder) == expected
    assert told(folder) == expected


def test_nobody_is_said_to_have_written_what_is_older_than_writers(old):
    folder, _ = old
    with EpisodicMemory.open(folder) as memory:
        assert {one.writer for one in memory.list(limit=None)} == {""}
        assert {one.trust for one in memory.list(limit=None)} == {"trusted"}


def test_a_bank_of_an_earlier_format_goes_on_learning(old):
    folder, expected = old
    with EpisodicMemory.open(folder, embeddings=HashingEmbeddings(16)) as memory:
        memory.reinforce("open", reward=1.0)
        memory.reinforce("held", reward=1.0)
        assert memory.stats().open_episodes == expected["default"]["stats"]["open_episodes"] - 2
        assert memory.stats().raw == expected["default"]["stats"]["raw"] + 1
        assert memory.verify().problems == ()


def test_a_kill_in_the_middle_of_an_update_loses_nothing(old, tmp_path, much):
    folder, expected = old
    rng = random.Random(3)
    for number in range(much(15, 300)):
        copy = tmp_path / f"copy {number}"
        shutil.copytree(folder, copy)
        reader, writer = PROCESSES.Pipe(duplex=False)
        child = PROCESSES.Process(target=open_when_told, args=(copy, writer))
        child.start()
        reader.recv()
        child.join(timeout=rng.uniform(0, 0.03))
        child.kill()
        child.join()
        assert told(copy) == expected
        shutil.rmtree(copy)


def test_an_earlier_format_is_not_changed_by_reading_only(old):
    folder, _ = old
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(StoreVersionError, match="open it once without read_only"):
        EpisodicMemory.open(folder, read_only=True)
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.stat().st_size}
    assert {name: after[name] for name in before} == before
