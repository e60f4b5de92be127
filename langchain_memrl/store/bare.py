"""Raw FAISS and bare SQLite: what the bench measures the store beside."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

RECALL_BYTES = 4000
"""About what an episode's recall takes."""


def flat_faiss(vectors: NDArray[np.float32], k: int) -> Callable[[int], object]:
    """`IndexFlatIP.search` in one thread, as it comes."""
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)

    def search(number: int) -> object:
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            return index.search(vectors[number : number + 1], k)
        finally:
            faiss.omp_set_num_threads(threads)

    return search


class BareSqlite:
    """One durable transaction with the rows that the same call of a bank needs, and no more."""

    def __init__(self, folder: Path, memories: int = 1000) -> None:
        self._db = sqlite3.connect(folder / "bare.sqlite3", isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("CREATE TABLE q (id INTEGER PRIMARY KEY, q REAL, updates INTEGER)")
        self._db.execute("CREATE TABLE history (id INTEGER PRIMARY KEY, memory, reward, step)")
        self._db.execute("CREATE TABLE ledger (episode TEXT PRIMARY KEY, body TEXT)")
        self._db.executemany("INSERT INTO q VALUES (?, 0, 0)", [(n,) for n in range(memories)])
        self._memories = memories

    def reward(self, number: int, count: int) -> None:
        """Move Q of `count` memories."""
        ids = [(number * count + place) % self._memories for place in range(count)]
        self._db.execute("BEGIN IMMEDIATE")
        for id in ids:
            self._db.execute(
                "UPDATE q SET q = q + .3 * (1 - q), updates = updates + 1 WHERE id = ?", (id,)
            )
            self._db.execute("INSERT INTO history (memory, reward, step) VALUES (?, 1, .3)", (id,))
        self._db.execute("INSERT INTO ledger VALUES (?, '')", (f"reward {count} {number}",))
        self._db.execute("COMMIT")

    def record(self, number: int) -> None:
        """Keep what a recall showed."""
        self._db.execute("BEGIN IMMEDIATE")
        body = (f"recall {number}", "x" * RECALL_BYTES)
        self._db.execute("INSERT INTO ledger VALUES (?, ?)", body)
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the database."""
        self._db.close()
