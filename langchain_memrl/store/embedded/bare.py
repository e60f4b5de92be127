"""Raw FAISS, bare SQLite and sqlite-vec: what the bench measures the store beside."""

import importlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import faiss
import numpy as np
from numpy.typing import NDArray

RECALL_BYTES = 4000
"""About what an episode's recall takes."""


def flat_faiss(vectors: NDArray[np.float32], k: int) -> Callable[[int], Any]:
    """`IndexFlatIP.search` in one thread, as it comes: similarities and rows of the nearest."""
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)

    def search(number: int) -> Any:
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


def loads_extensions() -> bool:
    """Whether this Python's SQLite can load extensions; many builds cannot."""
    return hasattr(sqlite3.Connection, "enable_load_extension")


class BareVec:
    """The sqlite-vec extension in SQLite, through `apsw`: its own SQLite loads extensions."""

    def __init__(self, db: Any, vectors: NDArray[np.float32]) -> None:
        self._db = db
        db.execute(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
            "CREATE TABLE q (id INTEGER PRIMARY KEY, q REAL);"
            f"CREATE VIRTUAL TABLE vec USING vec0(row float[{vectors.shape[1]}])"
        ).fetchall()
        with db:
            rows = ((n, row.tobytes()) for n, row in enumerate(vectors))
            db.executemany("INSERT INTO vec (rowid, row) VALUES (?, ?)", rows)
            db.executemany("INSERT INTO q VALUES (?, 0)", ((n,) for n in range(len(vectors))))

    @classmethod
    @contextmanager
    def open(cls, path: Path, vectors: NDArray[np.float32]) -> Iterator[Self]:
        """A new database that holds the vectors; closed afterwards.

        Raises:
            ImportError: `apsw` or `sqlite_vec` is not installed.
        """
        apsw, extension = importlib.import_module("apsw"), importlib.import_module("sqlite_vec")
        db = apsw.Connection(str(path))
        try:
            db.enable_load_extension(True)
            db.load_extension(extension.loadable_path())
            yield cls(db, vectors)
        finally:
            db.close()

    def search(self, vector: NDArray[np.float32], k: int) -> object:
        """The nearest rows with their numbers."""
        found = "SELECT rowid, distance FROM vec WHERE row MATCH ? AND k = ?"
        query = f"SELECT * FROM ({found}) JOIN q ON id = rowid"
        return self._db.execute(query, (vector.tobytes(), k)).fetchall()

    def update(self, number: int) -> None:
        """Change the number kept with a row, on disk when it returns."""
        self._db.execute("UPDATE q SET q = .3 WHERE id = ?", (number,))
