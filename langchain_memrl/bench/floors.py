"""The least that the same work can cost, and the most: the retrieval of the paper's code.

Raw FAISS and bare SQLite stand in `store/embedded/bare.py`, the no-op graph in `graph/bare.py`.
"""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from numpy.typing import NDArray

from langchain_memrl.bench.data import Tasks

Search = Callable[[int], object]


def numpy_product(vectors: NDArray[np.float32], k: int) -> Search:
    """A matrix-vector product, then the k largest."""
    own = vectors.copy()
    k = min(k, len(own))

    def search(number: int) -> object:
        close = own @ own[number]
        best = np.argpartition(close, -k)[-k:]
        return best[np.argsort(-close[best])]

    return search


@contextmanager
def one_thread() -> Iterator[None]:
    """NumPy's products in one thread, like all that they are measured beside.

    Without `threadpoolctl` they use all cores: faster on an idle machine, far slower on a busy one.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(1):
        yield


def reference_retrieval(tasks: Tasks, k: int) -> Callable[[str], list[str]]:
    """The retrieval of the paper's released code: one cosine after the other, in plain Python.

    It embeds the task at every call, keeps vectors as lists of floats and computes both norms of
    every pair. Only its similarity search is done here, not its ranking by Q.
    """
    intents: dict[str, list[float]] = dict(zip(tasks.texts, tasks.vectors.tolist(), strict=True))

    def search(text: str) -> list[str]:
        asked = tasks.embed_query(text)
        length = math.sqrt(sum(x * x for x in asked))
        close = []
        for intent, vector in intents.items():
            norm = math.sqrt(sum(x * x for x in vector))
            product = sum(a * b for a, b in zip(asked, vector, strict=False))
            close.append((intent, product / (length * norm)))
        close.sort(key=lambda pair: pair[1], reverse=True)
        return [intent for intent, _ in close[:k]]

    return search


@contextmanager
def synced_write(folder: Path, size: int) -> Iterator[Callable[[int], None]]:
    """Append `size` bytes and wait until they are on the disk."""
    file = os.open(folder / "synced", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    data = bytes(size)

    def write(number: int) -> None:
        os.write(file, data)
        os.fdatasync(file) if hasattr(os, "fdatasync") else os.fsync(file)

    try:
        yield write
    finally:
        os.close(file)


class NoOpRetriever(BaseRetriever):
    """Builds five documents and does nothing else."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(id=str(n), page_content=query, metadata={"n": n}) for n in range(5)]

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self._get_relevant_documents(query, run_manager=run_manager)
