"""Nearest intents by cosine: an exact reference in NumPy, and the same over FAISS storage."""

from typing import Protocol, Self

import faiss
import numpy as np
from numpy.typing import NDArray

from langchain_memrl.core.scoring import cosines
from langchain_memrl.core.selection import nearest
from langchain_memrl.store.base import FLOAT32_SLACK, Hits, Ids

Vectors = NDArray[np.float32]

PIECE_BYTES = 4 * 2**20
"""Vectors are kept in pieces of this size, so that no insert waits for a large copy."""

SPARSE_SHARE = 0.3
"""Below this share of allowed rows, gathering them is cheaper than scanning all."""


class VectorIndex(Protocol):
    """Unit vectors of one namespace's intents.

    Every implementation gives the ids and the similarities of `NumpyIndex`, ties included; only
    `LargeIndex` may miss an id.
    """

    dimension: int
    """Numbers per vector."""

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
        self.dimension = dimension
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
    """Vectors in `faiss.IndexFlatIP` pieces, after those that were mapped from a file, if any.

    FAISS's own product over these buffers, in the calling thread, finds the nearest: less time
    than `IndexFlatIP.search` takes, and other than NumPy's product it needs no second thread,
    which on a busy machine costs many times what it saves. Rows within float32 noise of the last
    hit are recomputed in float64, so the answer is the reference's. Removed rows are skipped until
    half of them are gone.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._empty()

    def _empty(self) -> None:
        self._rows: Ids = np.empty(0, dtype=np.int64)  # the id of every row, removed ones too
        self._gone: Ids = np.empty(0, dtype=np.int64)  # the rows that were removed, ascending
        self._pieces: list[faiss.IndexFlatIP] = []
        self._parts: list[Vectors] = []  # the mapped vectors, then a view of each piece

    @classmethod
    def mapped(cls, ids: Ids, vectors: Vectors) -> Self:
        """An index that begins with vectors which it neither copies nor changes."""
        index = cls(vectors.shape[1])
        index._rows, index._parts = ids, [vectors]
        return index

    @property
    def ids(self) -> Ids:
        """See `VectorIndex.ids`."""
        return np.delete(self._rows, self._gone)

    @property
    def vectors(self) -> Vectors:
        """See `VectorIndex.vectors`."""
        empty = np.empty((0, self.dimension), dtype=np.float32)
        rows = np.concatenate([empty, *self._parts])
        return np.delete(rows, self._gone, axis=0) if self._gone.size else rows

    def add(self, ids: Ids, vectors: Vectors) -> None:
        """See `VectorIndex.add`."""
        start = 0
        while start < len(vectors):
            piece, room = self._last_piece()
            end = start + room
            piece.add(np.ascontiguousarray(vectors[start:end], dtype=np.float32))
            self._parts[-1] = _buffer(piece)
            start = end
        self._rows = np.concatenate([self._rows, ids])

    def _last_piece(self) -> tuple[faiss.IndexFlatIP, int]:
        """The last piece, a new one where that is full, and how many vectors it still takes."""
        capacity = max(1, PIECE_BYTES // (4 * self.dimension))
        if not self._pieces or self._pieces[-1].ntotal == capacity:
            self._pieces.append(faiss.IndexFlatIP(self.dimension))
            self._parts.append(np.empty((0, self.dimension), dtype=np.float32))
        return self._pieces[-1], capacity - self._pieces[-1].ntotal

    def remove(self, ids: Ids) -> None:
        """See `VectorIndex.remove`."""
        gone = np.flatnonzero(np.isin(self._rows, ids))
        self._gone = np.union1d(self._gone, gone)
        if 2 * self._gone.size > self._rows.size:
            kept_ids, kept = self.ids, self.vectors
            self._empty()
            self.add(kept_ids, kept)

    def search(self, query: Vectors, limit: int, allowed: Ids | None = None) -> Hits:
        """See `VectorIndex.search`."""
        rows = self._near(query, limit, allowed)
        ids, similarity = self._rows[rows], cosines(self._take(rows), query)
        best = nearest(similarity, ids, limit)
        return Hits(ids[best], similarity[best])

    def _near(self, query: Vectors, limit: int, allowed: Ids | None) -> Ids:
        """Rows that may be among the best, by one float32 product each."""
        if allowed is None and not self._gone.size:
            return top(self._scan(query), limit)
        rows = self._open_rows(allowed)
        if rows.size <= limit:
            return rows
        sparse = rows.size < SPARSE_SHARE * self._rows.size
        close = np.vecdot(self._take(rows), query) if sparse else self._scan(query)[rows]
        return rows[top(close, limit)]

    def _open_rows(self, allowed: Ids | None) -> Ids:
        """Rows that were not removed, ascending; those of the allowed ids (None: all)."""
        if allowed is None:
            return np.delete(np.arange(self._rows.size), self._gone)
        rows = np.flatnonzero(np.isin(self._rows, allowed))
        return np.setdiff1d(rows, self._gone, assume_unique=True)

    def _scan(self, query: Vectors, skipped: int = 0) -> NDArray[np.float32]:
        """The product of every row with the query, shape (n,); without the first parts."""
        query = np.ascontiguousarray(query, dtype=np.float32)
        parts = self._parts[skipped:]
        products = np.empty(sum(map(len, parts)), dtype=np.float32)
        start = 0
        for part in parts:
            faiss.fvec_inner_products_ny(  # type: ignore[attr-defined]
                faiss.swig_ptr(products[start:]),
                faiss.swig_ptr(query),
                faiss.swig_ptr(part),
                self.dimension,
                len(part),
            )
            start += len(part)
        return products

    def _take(self, rows: Ids) -> Vectors:
        """The vectors of some rows, given in ascending order."""
        if len(self._parts) == 1:
            return self._parts[0][rows]
        found, start = [np.empty((0, self.dimension), dtype=np.float32)], 0
        for part in self._parts:
            first, last = np.searchsorted(rows, (start, start + len(part)))
            if first < last:
                found.append(part[rows[first:last] - start])
            start += len(part)
        return np.concatenate(found)


def _buffer(flat: faiss.IndexFlatIP) -> Vectors:
    """A view of FAISS's buffer, shape (n, d); valid until the next `add`."""
    buffer: Vectors = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d)
    return buffer.reshape(flat.ntotal, flat.d)


def top(close: NDArray[np.float32], limit: int) -> Ids:
    """Positions that are perhaps among the `limit` best, ascending."""
    place = close.size - limit
    if place <= 0:
        return np.arange(close.size)
    return np.flatnonzero(close >= np.partition(close, place)[place] - np.float32(FLOAT32_SLACK))
