"""Codes for large namespaces: they choose candidates, and exact cosines rank those.

Every two numbers of a vector become a code of four bits (product quantization, Jégou et al. 2011),
a sixteenth of its size, and FAISS sums them up without leaving the registers (fast scan, André et
al. 2017). Measured over 100 queries, half of them close to a stored vector, one thread, with and
without clusters: the share of the ten nearest that is found, and milliseconds of processor time.

| vectors | 200 clusters | none | exact scan | with codes |
|---|---|---|---|---|
| 25,000 x 1536 | 1.00 | 1.00 | 8 | 4 |
| 100,000 x 384 | 1.00 | 1.00 | 14 | 3 |
| 100,000 x 1536 | 1.00 | 1.00 | 29 | 10 |
| 1,000,000 x 384 | .98 | .98 | 123 | 13 |
"""

import json
import logging
import threading
import weakref
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import faiss
import numpy as np

from langchain_memrl.store.base import Ids
from langchain_memrl.store.embedded.index import FaissIndex, Vectors, top
from langchain_memrl.store.embedded.index_file import DamagedFileError

logger = logging.getLogger("langchain_memrl")

LARGE = 100_000 * 384
"""Numbers (rows x dimension) from which codes are made; a scan of fewer takes some milliseconds."""

CANDIDATES = 400
"""How many rows the codes choose, at least; twenty for each hit where many hits are wanted."""

TAIL_SHARE = 0.1
"""Codes are made anew where more rows than this share of theirs came after them."""

GROUP = 2
SAMPLE = 4096
ROUNDS = 8  # more train no better codes
BATCH = 4096
THREAD_NAME = "memrl-codes"


class Codes:
    """Codes of an index's first parts; `made` is None until a thread has made them."""

    def __init__(self, parts: int, rows: int) -> None:
        self.parts = parts
        self.rows = rows
        self.made: Any = None  # a faiss.IndexPQFastScan
        self.is_saved = False

    @classmethod
    def begin(cls, parts: Sequence[Vectors], owners: Sequence[object]) -> Self:
        """Codes that a thread begins to make, from vectors that stay in place with their owners.

        It ends early where nobody waits for them any more, and with the interpreter.
        """
        codes = cls(len(parts), sum(map(len, parts)))
        arguments = (weakref.ref(codes), parts, owners)
        try:
            threading.Thread(target=_make, args=arguments, name=THREAD_NAME, daemon=True).start()
        except RuntimeError as error:
            _warn(error)
        return codes

    def near(self, query: Vectors, count: int, gone: Ids) -> Ids:
        """About `count` rows that seem near, ascending, without those that are gone."""
        asked = min(count, self.rows)
        found = np.setdiff1d(self._search(query, asked), gone)
        while 2 * found.size < count and asked < self.rows:
            asked = min(2 * asked, self.rows)
            found = np.setdiff1d(self._search(query, asked), gone)
        return found

    def _search(self, query: Vectors, count: int) -> Ids:
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # for one query several are slower
        try:
            found: Ids = self.made.search(query[None], count)[1][0]
        finally:
            faiss.omp_set_num_threads(threads)
        return found[found >= 0]


def _make(wanted: "weakref.ref[Codes]", parts: Sequence[Vectors], owners: Sequence[object]) -> None:
    """Make codes and hand them over; `owners` are only held."""
    try:
        faiss.omp_set_num_threads(1)  # in this thread
        rows, dimension = sum(map(len, parts)), parts[0].shape[1]
        made = faiss.IndexPQFastScan(dimension, dimension // GROUP, 4, faiss.METRIC_INNER_PRODUCT)
        made.pq.cp.niter = ROUNDS
        step = max(1, rows // SAMPLE)
        made.train(np.concatenate([part[::step] for part in parts]))
        for part in parts:
            for start in range(0, len(part), BATCH):
                if wanted() is None:
                    return
                made.add(part[start : start + BATCH])
        codes = wanted()
        if codes is not None:
            codes.made = made
    except Exception as error:
        _warn(error)


def _warn(error: Exception) -> None:
    logger.warning("no codes were made for a large namespace (%r); it is searched exactly", error)


class LargeIndex(FaissIndex):
    """A `FaissIndex` that is searched by codes once it is large.

    The similarities it gives are exact; an intent may be missed. Rows that came after the codes,
    and those of a filter, are scanned exactly; so are all while a thread makes the codes.
    """

    def _empty(self) -> None:
        super()._empty()
        self._codes: Codes | None = None
        self._next: Codes | None = None  # being made

    def use(self, made: Any) -> None:
        """Take over codes of the first of the mapped vectors."""
        codes = Codes(1, made.ntotal)
        codes.made, codes.is_saved = made, True
        self._parts[:1] = np.split(self._parts[0], [codes.rows])
        self._codes = codes

    def codes(self) -> Codes | None:
        """The newest codes that are ready."""
        if self._next is not None and self._next.made is not None:
            self._codes, self._next = self._next, None
        return self._codes

    def _near(self, query: Vectors, limit: int, allowed: Ids | None) -> Ids:
        codes, count = None, max(CANDIDATES, 20 * limit)
        if allowed is None:
            codes = self._latest()
        if codes is None or 8 * count > codes.rows:
            return super()._near(query, limit, allowed)
        near = codes.near(query, count, self._gone)
        near = near[top(np.vecdot(self._take(near), query), limit)]
        close = self._scan(query, codes.parts)
        close[self._gone[self._gone >= codes.rows] - codes.rows] = -np.inf
        late = np.setdiff1d(codes.rows + top(close, limit), self._gone)
        return np.concatenate([near, late])

    def _latest(self) -> Codes | None:
        """The codes, if they are ready; begins to make them where there are none, or too few."""
        codes, size = self.codes(), self._rows.size
        covered = 0 if codes is None else codes.rows
        is_large = size * self.dimension >= LARGE and self.dimension % GROUP == 0
        if is_large and self._next is None and size - covered > TAIL_SHARE * covered:
            stable = len(self._parts) - len(self._pieces[-1:])  # the last piece may move
            self._next = Codes.begin(self._parts[:stable], self._pieces[:])
        return codes

    def whole_codes(self) -> Codes | None:
        """The codes that are ready, if none of their rows was removed."""
        codes = self.codes()
        return None if codes is None or (self._gone < codes.rows).any() else codes


def write_codes(file: BinaryIO, change: int, found: Mapping[str, Codes]) -> str:
    """Write the codes of some namespaces in FAISS's format, one after the other; their stamp.

    It says at which change they fit the rows, and each one's length and CRC-32.
    """
    entries = []
    for namespace, codes in found.items():
        data = faiss.serialize_index(codes.made)
        file.write(data.data)
        entries.append((namespace, data.size, zlib.crc32(data.data)))
        codes.is_saved = True
    return json.dumps((change, entries))


def read_codes(path: Path, change: int, stamp: Any) -> dict[str, Any]:
    """Read codes that fit their stamp and the rows of a change.

    Raises:
        OSError: The file cannot be read.
        DamagedFileError: It does not fit; FAISS sees nothing of what does not.
    """
    try:
        written, entries = json.loads(stamp)
        sizes = [int(size) for _, size, _ in entries]
    except (TypeError, ValueError) as error:
        raise DamagedFileError(f"its stamp cannot be read: {error}") from error
    data = np.fromfile(path, dtype=np.uint8)
    if written != change or data.size != sum(sizes):
        raise DamagedFileError(f"its {data.size} bytes are not of change {change}")
    pieces = np.split(data, np.cumsum(sizes)[:-1])
    found: dict[str, Any] = {}
    for (namespace, _, checksum), piece in zip(entries, pieces, strict=True):
        if zlib.crc32(piece.data) != checksum:
            raise DamagedFileError(f"the codes of {namespace!r} differ")
        found[namespace] = faiss.deserialize_index(piece)
    return found
