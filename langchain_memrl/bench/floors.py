"""The least that the same work can cost: a NumPy product, a synced write, a no-op retriever.

Raw FAISS and bare SQLite stand in `store/bare.py`, the no-op graph in `graph/bare.py`.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from numpy.typing import NDArray

Search = Callable[[int], object]


def numpy_product(vectors: NDArray[np.float32], k: int) -> Search:
    """A matrix-vector product, then the k largest."""
    own = vectors.copy()

    def search(number: int) -> object:
        close = own @ own[number]
        best = np.argpartition(close, -k)[-k:]
        return best[np.argsort(-close[best])]

    return search


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
