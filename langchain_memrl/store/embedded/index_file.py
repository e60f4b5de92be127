"""The file of the vectors: written in FAISS's format, mapped instead of read.

Each namespace's vectors stand together. SQLite keeps the file's stamp with a CRC-32 of every block
of 4 MiB; a block is compared with it when a search first needs it, so that opening a large bank
reads next to nothing.
"""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import faiss
import numpy as np

from langchain_memrl.store.base import Ids
from langchain_memrl.store.embedded.index import VectorIndex, Vectors

BLOCK = 4 * 2**20
ALIGNMENT = 64
"""FAISS's own header would leave the vectors at an odd address; a few bytes before it do not."""


class DamagedFileError(Exception):
    """The file is not the one that was written."""


class Stamp(NamedTuple):
    """What the bank keeps of the file it wrote.

    Attributes:
        size: Its length in bytes.
        dimension: Numbers per vector.
        namespaces: Each namespace with its count of vectors, in the order of the file.
        sums: CRC-32 of each block.
    """

    size: int
    dimension: int
    namespaces: list[tuple[str, int]]
    sums: list[int]

    def to_json(self) -> str:
        """The stamp as text."""
        return json.dumps(self, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: Any) -> "Stamp":
        """Read the text.

        Raises:
            DamagedFileError: It is no stamp.
        """
        try:
            stamp = cls(*json.loads(text))
            counts = [(str(name), int(count)) for name, count in stamp.namespaces]
            return cls(int(stamp.size), int(stamp.dimension), counts, [*map(int, stamp.sums)])
        except (TypeError, ValueError) as error:
            raise DamagedFileError(f"its stamp cannot be read: {error}") from error

    @property
    def vectors(self) -> int:
        """How many vectors the file holds."""
        return sum(count for _, count in self.namespaces)


class _Summing:
    """Writes to a file and sums it up block by block."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0
        self.sums: list[int] = []

    def write(self, data: bytes) -> None:
        self._file.write(data)
        while data:
            room = BLOCK - self.size % BLOCK
            if room == BLOCK:
                self.sums.append(0)
            self.sums[-1] = zlib.crc32(data[:room], self.sums[-1])
            self.size += len(data[:room])
            data = data[room:]


def write_index(file: BinaryIO, indexes: Mapping[str, VectorIndex]) -> Stamp:
    """Write the vectors of all namespaces, of which there is at least one."""
    dimension = next(iter(indexes.values())).dimension
    whole = faiss.IndexIDMap(faiss.IndexFlatIP(dimension))
    counts = []
    for name, index in indexes.items():
        ids = index.ids
        whole.add_with_ids(np.ascontiguousarray(index.vectors), ids)
        counts.append((name, ids.size))
    summing = _Summing(file)
    summing.write(bytes(_padding(dimension)))
    writer: Any = faiss  # its type hints leave this out
    faiss.write_index(whole, writer.PyCallbackIOWriter(summing.write))
    return Stamp(summing.size, dimension, counts, summing.sums)


def _header(dimension: int) -> int:
    """Bytes that FAISS writes before the first vector."""
    return len(faiss.serialize_index(faiss.IndexIDMap(faiss.IndexFlatIP(dimension)))) - 8


def _padding(dimension: int) -> int:
    return -_header(dimension) % ALIGNMENT


class IndexFile:
    """A file that fits its stamp, as far as it was looked at."""

    def __init__(self, path: Path, stamp: Stamp) -> None:
        """Map the file, and compare the blocks with its header and its ids.

        Raises:
            OSError: It cannot be read.
            DamagedFileError: It is not the file that was written.
        """
        self._stamp = stamp
        self._data = np.memmap(path, dtype=np.uint8, mode="r")
        self._unchecked = set(range(len(stamp.sums)))
        self._start = _padding(stamp.dimension) + _header(stamp.dimension)
        end = self._start + 4 * stamp.dimension * stamp.vectors
        if self._data.size != stamp.size or stamp.size != end + 8 + 8 * stamp.vectors:
            raise DamagedFileError(f"expected {stamp.size} bytes, got {self._data.size}")
        self._check(0, self._start)
        self._check(end, stamp.size)
        self._ids: Ids = np.frombuffer(self._data[end + 8 :].tobytes(), dtype="<i8")

    def parts(self) -> dict[str, tuple[Ids, Vectors]]:
        """Ids and mapped vectors of each namespace; `check` them before they are used."""
        found, first = {}, 0
        for name, count in self._stamp.namespaces:
            start, end = self._place(first), self._place(first + count)
            rows = self._data[start:end].view("<f4").reshape(count, self._stamp.dimension)
            found[name] = self._ids[first : first + count], rows
            first += count
        return found

    def _place(self, row: int) -> int:
        return self._start + 4 * self._stamp.dimension * row

    def check(self, namespace: str) -> None:
        """Compare the blocks with a namespace's vectors, those that no search has needed yet.

        Raises:
            DamagedFileError: One of them differs.
        """
        first = 0
        for name, count in self._stamp.namespaces:
            if name == namespace:
                self._check(self._place(first), self._place(first + count))
            first += count

    def doubt(self) -> None:
        """Compare every block anew when it is needed: the file may have been written over."""
        self._unchecked = set(range(len(self._stamp.sums)))

    def _check(self, start: int, end: int) -> None:
        for block in range(start // BLOCK, -(-end // BLOCK)):
            if block in self._unchecked:
                data = self._data[block * BLOCK : (block + 1) * BLOCK]
                if zlib.crc32(data.data) != self._stamp.sums[block]:
                    raise DamagedFileError(f"block {block} differs")
                self._unchecked.discard(block)
