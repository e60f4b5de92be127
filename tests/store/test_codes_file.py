"""Codes in a bank: a file that may be lost, and a thread that nobody waits for."""

import os
import pickle
import shutil
import subprocess
import sys

import faiss
import pytest
from builds import Builds
from fakes import FakeEmbeddings

from langchain_memrl import EpisodicMemory

COUNT = 2500
SETTINGS = {"k": 10, "fetch_k": 10, "q_weight": 0, "score_threshold": None}
QUERIES = [f"question {n}" for n in range(20)]


def answers(memory):
    recalls = memory.recall_many(QUERIES, **SETTINGS)
    return [[(hit.id, hit.similarity) for hit in recall.memories] for recall in recalls]


def share(found, expected):
    """The share of the expected answers that was found, each with the same similarity."""
    pairs = list(zip(found, expected, strict=True))
    assert all(len(one) == len(other) for one, other in pairs)
    return sum(len({*one} & {*other}) for one, other in pairs) / sum(map(len, expected))


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A closed bank whose codes were saved, and its exact answers."""
    folder = tmp_path_factory.mktemp("template") / "bank"
    with pytest.MonkeyPatch.context() as patch:
        builds = Builds(patch)
        with EpisodicMemory.open(folder, embeddings=FakeEmbeddings()) as memory:
            tasks = [{"intent": f"task {n}", "lesson": "lesson"} for n in range(COUNT)]
            memory.remember_many(tasks)
            exact = answers(memory)
            assert builds.finish() == 1
    return folder, exact


@pytest.fixture
def builds(monkeypatch):
    found = Builds(monkeypatch)
    yield found
    found.finish()


@pytest.fixture
def exact(template, folder, builds):
    """Copies the bank; its exact answers."""
    shutil.copytree(template[0], folder)
    return template[1]


@pytest.fixture
def codes(folder):
    return folder / "intents.pq.faiss"


def test_an_opened_bank_uses_the_file_and_makes_no_codes(codes, exact, open_bank, caplog, builds):
    before = codes.stat().st_mtime_ns, codes.stat().st_ino
    memory = open_bank()
    assert 0.98 < share(answers(memory), exact) <= 1
    assert builds.finish() == 0
    assert memory._store._vectors._indexes["default"].codes() is not None
    memory.close()
    assert (codes.stat().st_mtime_ns, codes.stat().st_ino) == before
    assert caplog.records == []


@pytest.mark.parametrize("read_only", [False, True])
def test_what_came_after_the_file_is_found_and_what_went_is_not(
    codes, exact, open_bank, read_only, builds
):
    memory = open_bank()
    doomed = {id for found in exact for id, _ in found[:3]}
    memory.forget(ids=sorted(doomed))
    made = [memory.remember(query, "new").id for query in QUERIES]
    other = open_bank(read_only=read_only)
    for found, id in zip(answers(other), made, strict=True):
        assert found[0] == (id, 1.0)
        assert not doomed & {id for id, _ in found}
    assert builds.finish() == 0


def flip(data, position):
    changed = bytearray(data)
    changed[position] ^= 16
    return bytes(changed)


DAMAGES = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "junk at the end": lambda data: data + b"junk",
    "first bit": lambda data: flip(data, 0),
    "a bit inside": lambda data: flip(data, len(data) // 2),
    "last bit": lambda data: flip(data, -1),
    "a pickle": lambda data: pickle.dumps({"ids": [1]}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_never_reaches_faiss_and_is_made_again_with_one_warning(
    codes, exact, open_bank, caplog, monkeypatch, damage, builds
):
    codes.write_bytes(DAMAGES[damage](codes.read_bytes()))
    with monkeypatch.context() as patch:
        patch.setattr(faiss, "deserialize_index", lambda _: pytest.fail("FAISS read it"))
        memory = open_bank()
        assert share(answers(memory), exact) > 0.98
    assert builds.finish() == 1
    assert ["it is made again" in record.message for record in caplog.records] == [True]
    memory.close()
    again = open_bank()
    assert share(answers(again), exact) > 0.98
    assert builds.finish() == 1
    assert len(caplog.records) == 1


def test_a_deleted_file_is_made_again_without_a_word(codes, exact, open_bank, caplog, builds):
    codes.unlink()
    builds.hold()
    memory = open_bank()
    assert answers(memory) == exact
    assert builds.finish() == 1
    memory.close()
    assert codes.exists()
    assert caplog.records == []


@pytest.mark.parametrize("writes_codes", [True, False])
def test_a_file_of_an_earlier_day_is_not_used(
    codes, exact, open_bank, builds, caplog, writes_codes
):
    old = codes.read_bytes()
    with open_bank(exact=not writes_codes) as memory:
        memory.forget(ids=[exact[0][0][0]])
        if writes_codes:
            memory.compact()
        now = answers(memory)
        assert builds.finish() == writes_codes
    assert codes.exists() == writes_codes
    codes.write_bytes(old)
    builds.hold()
    expected = answers(open_bank(exact=True))
    assert answers(open_bank()) == expected
    assert share(now, expected) > 0.98
    assert builds.finish() == 1 + writes_codes
    assert "it is made again" in caplog.text


def test_no_codes_of_what_was_forgotten_stay_in_a_file(codes, exact, open_bank, builds):
    memory = open_bank()
    answers(memory)
    memory.forget(ids=[exact[0][0][0]])
    answers(memory)
    codes.with_name(f"{codes.name}.tmp").write_bytes(b"left by a crash")
    memory.compact()
    assert [*codes.parent.glob("intents.pq*")] == []
    answers(memory)
    assert builds.finish() == 1
    memory.close()
    assert codes.exists()
    memory = open_bank()
    memory.forget(ids=[exact[1][0][0]])
    answers(memory)
    memory.close()
    assert not codes.exists()
    memory = open_bank()
    memory.forget(all=True)
    answers(memory)
    memory.close()
    assert [*codes.parent.glob("intents.pq*")] == []


def test_an_exact_bank_uses_no_codes_and_leaves_the_file_alone(codes, exact, open_bank, builds):
    before = codes.read_bytes()
    memory = open_bank(exact=True)
    assert answers(memory) == exact
    memory.close()
    assert builds.finish() == 0
    assert codes.read_bytes() == before
    codes.unlink()
    with open_bank(exact=True) as memory:
        assert answers(memory) == exact
        assert builds.finish() == 0
    assert not codes.exists()


def test_a_reader_makes_codes_for_itself_and_writes_none(codes, exact, open_bank, builds):
    codes.unlink()
    with open_bank(read_only=True) as memory:
        assert share(answers(memory), exact) > 0.98
        assert builds.finish() == 1
        assert share(answers(memory), exact) > 0.98
    assert not codes.exists()


def test_codes_are_not_written_beside_the_vectors_of_another_process(
    codes, exact, open_bank, builds
):
    codes.unlink()
    memory, other = open_bank(), open_bank()
    answers(memory)
    assert builds.finish() == 1
    builds.hold()
    other.forget(ids=[exact[0][0][0]])
    assert answers(other)[0][0] == exact[0][1]
    other.close()
    memory.close()
    assert not codes.exists()
    memory = open_bank()
    assert answers(memory)[0][0] == exact[0][1]


def test_several_namespaces_share_the_file(codes, exact, open_bank, builds):
    with open_bank() as memory:
        tasks = [{"intent": f"other {n}", "lesson": "lesson"} for n in range(COUNT)]
        memory.remember_many(tasks, namespace="other")
        memory.remember("small", "lesson", namespace="small")
        memory.recall("other 3", namespace="other")
        memory.recall("task 3")
        memory.recall("small", namespace="small")
        assert builds.finish() == 1
    with open_bank() as memory:
        assert share(answers(memory), exact) > 0.98
        for name in ("other", "task"):
            space = "default" if name == "task" else name
            found = memory.recall(f"{name} 7", namespace=space, **SETTINGS).memories
            assert found[0].memory.intent == f"{name} 7"
        assert builds.finish() == 1


def test_closing_waits_for_no_thread_and_the_thread_survives_the_files(
    codes, exact, open_bank, folder, builds
):
    codes.unlink()
    builds.hold()
    memory = open_bank()
    assert answers(memory) == exact
    memory.close()
    assert len(builds.threads()) == 1
    shutil.rmtree(folder)
    assert builds.finish() == 1


def test_a_fork_while_codes_are_made_disturbs_neither_parent_nor_child(
    codes, exact, open_bank, in_child, builds
):
    codes.unlink()
    builds.hold()
    memory = open_bank()
    assert answers(memory) == exact

    def work():
        with EpisodicMemory.open(codes.parent, embeddings=FakeEmbeddings()) as own:
            found = share(answers(own), exact)
            return found, builds.finish(), share(answers(own), exact) > 0.98

    assert in_child(work) == "returned (1.0, 2, True)"
    assert in_child(memory.stats).startswith("raised StoreError")
    builds.go_on.set()
    for _ in range(5):
        assert in_child(os.getpid).startswith("returned")
    assert builds.finish() == 1
    assert share(answers(memory), exact) > 0.98
    memory.close()
    assert codes.exists()


LEAVE = """
import sys
sys.path[:0] = {path!r}
from test_codes_file import *
from langchain_memrl.store.embedded import coarse
builds = Builds(pytest.MonkeyPatch())
coarse.BATCH = 1
memory = EpisodicMemory.open({folder!r}, embeddings=FakeEmbeddings())
memory.recall("task 3")
assert builds.begun == 1
"""


def test_the_interpreter_ends_while_codes_are_made(codes, exact, folder):
    codes.unlink()
    code = LEAVE.format(path=sys.path, folder=str(folder))
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
