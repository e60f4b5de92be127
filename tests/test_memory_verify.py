"""verify finds what was planted with another program, and says nothing about a sound bank."""

import sqlite3

import pytest

from langchain_memrl.errors import StoreCorruptError
from langchain_memrl.store.sidecar import FILE_NAME

TEXTS = ("reset a router", "bake a cake", "mend a bicycle")


@pytest.fixture
def plant(folder, open_bank):
    """Makes a used bank, changes its file with SQL, opens it again."""

    def plant_(sql, *values, keep_index=True):
        memory = open_bank()
        for text in TEXTS:
            memory.remember(text, f"lesson of {text}", episode_id=text)
            memory.recall(text, episode_id=f"use {text}")
            memory.reinforce(f"use {text}", reward=1)
        assert memory.verify().ok
        memory.close()
        if not keep_index:
            (folder / "intents.faiss").unlink()
        with sqlite3.connect(folder / FILE_NAME) as db:
            assert db.execute(sql, values).rowcount == 1
        db.close()
        return open_bank()

    return plant_


CUT_OFF = b"12345"
SHORTER = b"\x00\x00\x80\x3f" * 3


@pytest.mark.parametrize("keep_index", [True, False])
@pytest.mark.parametrize("blob", [CUT_OFF, SHORTER])
def test_a_vector_of_another_size_is_found_and_never_used(plant, blob, keep_index):
    sql = "UPDATE intents SET vector = ? WHERE id = 2"
    memory = plant(sql, blob, keep_index=keep_index)
    found = memory.verify()
    assert not found.ok
    assert any("intent 2" in problem or "dimensions" in problem for problem in found.problems)
    if not keep_index:
        with pytest.raises(StoreCorruptError, match="restore a backup"):
            memory.recall(TEXTS[0])
