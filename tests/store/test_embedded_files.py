"""What only a bank in a folder has: its files, and the disk below them."""

import resource
import signal

import pytest
from langchain_core.documents import Document

from langchain_memrl.errors import StoreError
from langchain_memrl.store.embedded.sidecar import FILE_NAME


def test_files_of_vectors_go_with_the_last_memory_although_documents_stay(folder, open_bank):
    bank = open_bank()
    bank.remember("task 1", "lesson")
    bank.recall_documents("task", [Document("a page")], episode_id="e")
    bank.recall("task 1")
    bank.close()
    assert (folder / "intents.faiss").exists()
    bank = open_bank()
    bank.recall("task 1")
    bank.forget(ids=[one.id for one in bank.list(filter={"source": "agent"})])
    bank.compact()
    bank.close()
    assert not (folder / "intents.faiss").exists()
    assert open_bank().verify().problems == ()


def test_opening_asks_no_embedder_and_writes_no_index(open_bank, embeddings, folder):
    open_bank()
    assert embeddings.calls == []
    assert not (folder / "intents.faiss").exists()


def test_a_location_may_be_a_str_or_a_path(open_bank, tmp_path):
    open_bank(str(tmp_path / "a" / "b")).remember("task", "lesson")
    assert open_bank(tmp_path / "a" / "b").stats().memories == 1


def test_the_fence_key_is_the_banks_own_and_stays(open_bank, tmp_path):
    memory = open_bank()
    key = memory.fence_key
    assert len(key) == 16
    memory.close()
    assert open_bank().fence_key == key
    assert open_bank(tmp_path / "other", seed=1).fence_key != key
    same = [open_bank(":memory:", seed=3).fence_key for _ in range(2)]
    assert same[0] == same[1] != open_bank(":memory:", seed=4).fence_key
    assert open_bank(":memory:").fence_key != open_bank(":memory:").fence_key


def test_a_full_disk_fails_the_call_and_nothing_else(folder, open_bank, in_child):
    kept = open_bank().remember("reset a router", "lesson").id

    batch = [{"intent": f"task {n}", "lesson": "x" * 100_000} for n in range(100)]

    def fill():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        memory = open_bank()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**21, limits[1]))
        with pytest.raises(StoreError, match=FILE_NAME):
            memory.remember_many(batch)
        left = [found.id for found in memory.list()]
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        memory.remember_many(batch)
        assert memory.verify().problems == ()
        memory.close()
        return left == [kept]

    assert in_child(fill) == "returned True"
    memory = open_bank()
    assert (memory.verify().problems, memory.stats().memories) == ((), 101)
    assert memory.recall("reset a router", k=1, q_weight=0).ids == (kept,)
