"""A large bank through everything that touches every row."""

import pytest

from langchain_memrl import EpisodicMemory, load_memories
from langchain_memrl.offline import HashingEmbeddings

TASK = "task {number} about subject {subject}"


def drafts(count):
    for number in range(count):
        yield {
            "intent": TASK.format(number=number, subject=number % 97),
            "lesson": f"lesson {number} " + "word " * 20,
            "trajectory": "step " * 40,
            "outcome": ("success", "failure")[number % 2],
            "episode_id": f"write {number}",
        }


@pytest.fixture
def count(much):
    return much(400, 100_000)


def test_a_large_bank_survives_export_import_reembed_compact_and_verify(tmp_path, count):
    """The long form has 100,000 memories."""
    old, new = HashingEmbeddings(128), HashingEmbeddings(96)
    question = TASK.format(number=7, subject=7)
    with EpisodicMemory.open(tmp_path / "bank", embeddings=old) as memory:
        load_memories(memory, list(drafts(count)), batch_size=1000)
        for number in range(50):
            memory.recall(f"task {number}", episode_id=f"e{number}", score_threshold=None)
            memory.reinforce(f"e{number}", reward=(-1) ** number)
        assert memory.verify().problems == ()
        before = memory.stats()
        memory.export_jsonl(tmp_path / "dump.jsonl")
    file = tmp_path / "dump.jsonl"
    with EpisodicMemory.import_jsonl(file, tmp_path / "copy", embeddings=old) as copy:
        assert copy.stats() == before
        assert copy.verify().problems == ()
        assert copy.recall(question, k=1, q_weight=0).memories[0].memory.intent == question
        assert copy.reembed(new) == count
        assert copy.recall(question, k=1, q_weight=0).memories[0].memory.intent == question
        doomed = [one.id for one in copy.list(limit=count // 10)]
        copy.forget(ids=doomed)
        size = folder_size(tmp_path / "copy")
        copy.compact()
        assert folder_size(tmp_path / "copy") < size
        assert copy.verify().problems == ()
        assert copy.stats().memories == count - len(doomed)
    with EpisodicMemory.open(tmp_path / "copy", embeddings=new) as copy:
        assert copy.recall(question, k=1, q_weight=0).memories[0].memory.intent == question


def folder_size(folder):
    return sum(path.stat().st_size for path in folder.iterdir())
