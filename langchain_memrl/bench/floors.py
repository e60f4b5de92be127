"""The least that the same work can cost: raw FAISS, a NumPy product, bare SQLite, no-op parts."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import faiss
import numpy as np
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from numpy.typing import NDArray

Search = Callable[[int], object]

RECALL_BYTES = 4000
"""About what an episode's recall takes."""


def flat_faiss(vectors: NDArray[np.float32], k: int) -> Search:
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


def numpy_product(vectors: NDArray[np.float32], k: int) -> Search:
    """A matrix-vector product, then the k largest."""
    own = vectors.copy()

    def search(number: int) -> object:
        close = own @ own[number]
        best = np.argpartition(close, -k)[-k:]
        return best[np.argsort(-close[best])]

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


def synced_write(folder: Path, size: int) -> Callable[[int], None]:
    """Append `size` bytes and wait until they are on the disk."""
    file = os.open(folder / "synced", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    data = bytes(size)

    def write(number: int) -> None:
        os.write(file, data)
        os.fdatasync(file) if hasattr(os, "fdatasync") else os.fsync(file)

    return write


class NoOpRetriever(BaseRetriever):
    """Builds five documents and does nothing else."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(id=str(n), page_content=query, metadata={"n": n}) for n in range(5)]

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self._get_relevant_documents(query, run_manager=run_manager)


class _State(TypedDict):
    messages: list[Any]


def no_op_graph() -> Any:
    """A compiled graph of six steps that do nothing."""
    from langgraph.graph import END, START, StateGraph

    builder = StateGraph(_State)
    names = ("retrieve", "generate", "evaluate", "update_q", "summarize", "write")
    for name in names:
        builder.add_node(name, lambda state: {})
    for one, other in zip((START, *names), (*names, END), strict=True):
        builder.add_edge(one, other)
    return builder.compile()
