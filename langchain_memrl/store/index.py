"""Nearest intents by cosine: an exact reference in NumPy, and the same over FAISS storage."""

from typing import Any, NamedTuple, Protocol

import faiss
import numpy as np
from numpy.typing import NDArray

from langchain_memrl.core.scoring import cosines
from langchain_memrl.core.selection import nearest

Ids = NDArray[np.int64]
Vectors = NDArray[np.float32]

FLOAT32_SLACK = 1e-5
"""More than a float32 product of two unit vectors can be off; hits this close are recomputed."""

MARGIN = 16
"""How many more hits than needed are asked of FAISS, to see ties at the border."""

SPARSE_SHARE = 0.3
"""Below this share of allowed rows, gathering them is cheaper than scanning all."""


class Hits(NamedTuple):
    """Nearest intents, closest first: ids of shape (n,) and their cosines of shape (n,)."""

    ids: Ids
    similarity: NDArray[np.float64]


class VectorIndex(Protocol):
    """Unit vectors of one namespace's intents, searched exactly.

    Every implementation gives the ids and the similarities of `NumpyIndex`, ties included.
    """

    @property
    def ids(self) -> Ids:
        """All ids, ascending; shape (n,)."""

    @property
    def vectors(self) -> Vectors:
        """Their unit vectors, in the same order; shape (n, d)."""

    def add(self, ids: Ids, vectors: Vectors) -> None:
        """Append unit vectors; every id is larger than all before it."""

    def remove(self, ids: Ids) -> None:
        """Drop the given ids; unknown ones are ignored."""

    def search(self, query: Vectors, limit: int, allowed: Ids | None = None) -> Hits:
        """The `limit` nearest of the allowed ids (None: all); ties go to the newer id."""


class NumpyIndex:
    """The reference: every cosine in float64, then a full sort."""

    def __init__(self, dimension: int) -> None:
        self.ids: Ids = np.empty(0, dtype=np.int64)
        self.vectors: Vectors = np.empty((0, dimension), dtype=np.float32)

    def add(self, ids: Ids, vectors: Vectors) -> None:
        """See `VectorIndex.add`."""
        self.ids = np.concatenate([self.ids, ids])
        self.vectors = np.concatenate([self.vectors, vectors])

    def remove(self, ids: Ids) -> None:
        """See `VectorIndex.remove`."""
        keep = ~np.isin(self.ids, ids)
        self.ids, self.vectors = self.ids[keep], self.vectors[keep]

    def search(self, query: Vectors, limit: int, allowed: Ids | None = None) -> Hits:
        """See `VectorIndex.search`."""
        keep = slice(None) if allowed is None else np.isin(self.ids, allowed)
        ids, similarity = self.ids[keep], cosines(self.vectors[keep], query)
        best = nearest(similarity, ids, limit)
        return Hits(ids[best], similarity[best])


class FaissIndex:
    """A `faiss.IndexFlatIP`; what a filter lets through is scanned in FAISS's own buffer.

    Searched in the calling thread alone: for one query FAISS's thread pool makes it slower, and a
    busy machine or a fork cannot stall what it does not use. Rows within float32 noise of the last
    hit are recomputed in float64, so the answer is the reference's.
    """

    def __init__(self, dimension: int) -> None:
        self.ids: Ids = np.empty(0, dtype=np.int64)
        self._flat = faiss.IndexFlatIP(dimension)

    @property
    def vectors(self) -> Vectors:
        """A view of FAISS's buffer, shape (n, d); valid until the next `add` or `remove`."""
        flat = self._flat
        buffer: Vectors = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d)
        return buffer.reshape(flat.ntotal, flat.d)

    def add(self, ids: Ids, vectors: Vectors) -> None:
        """See `VectorIndex.add`."""
        self._flat.add(np.ascontiguousarray(vectors, dtype=np.float32))
        self.ids = np.concatenate([self.ids, ids])

    def remove(self, ids: Ids) -> None:
        """See `VectorIndex.remove`."""
        keep = ~np.isin(self.ids, ids)
        kept = faiss.IndexFlatIP(self._flat.d)
        kept.add(self.vectors[keep])
        self._flat, self.ids = kept, self.ids[keep]

    def search(self, query: Vectors, limit: int, allowed: Ids | None = None) -> Hits:
        """See `VectorIndex.search`."""
        rows = self._nearest(query, limit) if allowed is None else None
        if rows is None:
            rows = self._scan(query, limit, allowed)
        ids, similarity = self.ids[rows], cosines(self.vectors[rows], query)
        best = nearest(similarity, ids, limit)
        return Hits(ids[best], similarity[best])

    def _nearest(self, query: Vectors, limit: int) -> Ids | None:
        """Rows that may be among the best, by FAISS; None where too many are as close as that."""
        wanted = limit + MARGIN
        if wanted >= self.ids.size:
            return np.arange(self.ids.size)
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            close, rows = self._flat.search(query[None], wanted)
        finally:
            faiss.omp_set_num_threads(threads)
        near: Ids = rows[0][close[0] >= close[0][limit - 1] - FLOAT32_SLACK]
        return None if near.size == wanted else near

    def _scan(self, query: Vectors, limit: int, allowed: Ids | None) -> Ids:
        """The same over the allowed rows, one product each."""
        rows = np.arange(self.ids.size)
        if allowed is not None:
            rows = np.flatnonzero(np.isin(self.ids, allowed))
        if rows.size <= limit:
            return rows
        sparse = rows.size < SPARSE_SHARE * self.ids.size
        vectors = self.vectors
        close = np.vecdot(vectors[rows], query) if sparse else np.vecdot(vectors, query)[rows]
        place = rows.size - limit
        near: Ids = rows[close >= np.partition(close, place)[place] - FLOAT32_SLACK]
        return near


def to_bytes(ids: Ids, vectors: Vectors) -> bytes:
    """Ids and unit vectors in FAISS's file format."""
    index = faiss.IndexIDMap2(faiss.IndexFlatIP(vectors.shape[1]))
    index.add_with_ids(np.ascontiguousarray(vectors), ids)
    return bytes(faiss.serialize_index(index))


def from_bytes(data: bytes) -> tuple[Ids, Vectors]:
    """Ids and unit vectors of `to_bytes`. Only for checked data: FAISS checks nothing."""
    index: Any = faiss.deserialize_index(np.frombuffer(data, dtype=np.uint8))
    ids: Ids = faiss.vector_to_array(index.id_map)
    flat: Any = faiss.downcast_index(index.index)
    vectors: Vectors = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d).copy()
    return ids, vectors.reshape(flat.ntotal, flat.d)
