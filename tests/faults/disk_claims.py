"""What must hold of a bank after any fault."""

import sqlite3

import numpy as np
from disk_work import (
    FORGOTTEN,
    SHARED,
    WHOLE,
    fits,
    models_of,
    open_bank,
    reopened,
    seen,
    seen_episodes,
)

from langchain_memrl.errors import StoreError
from langchain_memrl.store.embedded.marker import FILE_NAME as MARKER_NAME
from langchain_memrl.store.embedded.sidecar import FILE_NAME
from langchain_memrl.store.embedded.turns import FILE_NAME as LOCK_NAME
from langchain_memrl.store.embedded.vectors import FILE_NAME as INDEX_NAME

FILES = (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", INDEX_NAME, MARKER_NAME, LOCK_NAME)


def check_survived(place, done):
    """After `done` acknowledged steps: all of them are there, and at most the next one."""
    models = models_of(WHOLE)
    possible = models[done : done + 2]
    ids = list(models[-1].episodes)
    memory = reopened(place)
    if memory is None:
        assert done == 0
        return
    with memory:
        held = (seen(memory), seen_episodes(memory, ids))
        assert any(fits(place, memory, model, ids) for model in possible), (held, done)
        assert memory.verify().problems == ()
        answer = found(memory)
        if held[0]:
            assert answer == brute_force(place / "bank")[:3]
    with reopened(place) as memory:
        assert (seen(memory), seen_episodes(memory, ids), found(memory)) == (*held, answer)
        assert memory.verify().problems == ()


def check_readable(place, done):
    """A reader that may not write sees the same, or our error while the bank is being made."""
    models = models_of(WHOLE)[done : done + 2]
    try:
        memory = open_bank(place / "bank", read_only=True)
    except StoreError:
        assert done == 0
        return
    with memory:
        assert seen(memory) in [model.seen() for model in models]
        assert memory.verify().problems == ()


def check_compacts(place):
    """Compacting removes what a crash left behind, and every trace of what was forgotten."""
    memory = reopened(place)
    if memory is None:
        return
    with memory:
        forgotten = FORGOTTEN not in seen(memory)
        memory.compact()
        assert memory.verify().problems == ()
        for path in (place / "bank").iterdir():
            assert path.name in FILES
            assert not forgotten or FORGOTTEN.encode() not in path.read_bytes()


def found(memory):
    """Ids and cosines that a plain search for the shared task finds."""
    recalled = memory.recall(SHARED, k=3, q_weight=0, score_threshold=None)
    return [(one.id, one.similarity) for one in recalled.memories]


def brute_force(folder):
    """The same from the rows alone: nearest first, then the least shown, then the newest."""
    connection = sqlite3.connect(folder / FILE_NAME)
    rows = connection.execute(
        "SELECT m.id, m.seq, m.selections, i.vector, i.text FROM memories m "
        "JOIN intents i ON i.id = m.intent_id WHERE m.disabled = 0"
    ).fetchall()
    connection.close()
    vectors = np.stack([np.frombuffer(row[3], dtype="<f4") for row in rows]).astype(float)
    task = next(vectors[number] for number, row in enumerate(rows) if row[4] == SHARED)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(task)
    cosines = np.round(np.clip(vectors @ task / lengths, -1, 1), 6) + 0.0
    order = sorted(range(len(rows)), key=lambda n: (-cosines[n], rows[n][2], -rows[n][1]))
    return [(rows[n][0], cosines[n]) for n in order]
