"""The vector indexes of a bank: one per namespace, kept level with SQLite, cached in one file."""

import logging
import os
import sqlite3
from pathlib import Path

import numpy as np

from langchain_memrl.core.calibration import Calibration
from langchain_memrl.errors import StoreCorruptError, StoreError
from langchain_memrl.store.base import Vector
from langchain_memrl.store.encoding import RESTORE, to_blob
from langchain_memrl.store.files import sync_folder
from langchain_memrl.store.index import FaissIndex, Hits, Ids, VectorIndex
from langchain_memrl.store.index_file import DamagedFileError, IndexFile, Stamp, write_index
from langchain_memrl.store.meta import count, get_meta, set_meta
from langchain_memrl.store.rows import checked_vector, find_calibration

logger = logging.getLogger("langchain_memrl")

FILE_NAME = "intents.faiss"


class VectorCache:
    """Finds nearest intents. Everything in it can be made again from SQLite.

    The file is stamped, in SQLite, with the change it was written at and checksums of its blocks.
    It is used only where they fit, and brought up to date with the rows that are newer. Callers
    hold the store's lock.
    """

    def __init__(self, folder: Path | None) -> None:
        self.path = None if folder is None else folder / FILE_NAME
        self._indexes: dict[str, VectorIndex] = {}
        self._file: IndexFile | None = None  # what the indexes began with
        self._seen = -1  # the change the indexes are level with; -1: not loaded
        self._saved = -1
        self._generation = 0  # the bank's model that their vectors are of
        self._calibrations: dict[str, Calibration | None] = {}
        self._state: object = None  # the database as last seen: others' commits, our changes

    def calibration(self, db: sqlite3.Connection, namespace: str) -> Calibration | None:
        """The namespace's similarity statistics; they change with its intents only."""
        self.catch_up(db)
        if namespace not in self._calibrations:
            self._calibrations[namespace] = find_calibration(db, namespace)
        return self._calibrations[namespace]

    def search(
        self,
        db: sqlite3.Connection,
        namespace: str,
        query: Vector,
        limit: int,
        allowed: Ids | None,
        excluded: Ids,
    ) -> Hits:
        """The nearest of a namespace's intents, `allowed` (None: all) without `excluded`.

        As of the last `catch_up`, which `calibration` does.
        """
        self._check_file(db, namespace)
        index = self._indexes.get(namespace)
        if index is None:
            return Hits(np.empty(0, dtype=np.int64), np.empty(0))
        hits = index.search(query, limit + excluded.size, allowed)
        if not excluded.size:
            return hits
        others = ~np.isin(hits.ids, excluded)
        return Hits(hits.ids[others][:limit], hits.similarity[others][:limit])

    def _check_file(self, db: sqlite3.Connection, namespace: str | None = None) -> None:
        """Rebuild what came from a file that does not fit its stamp; None: look at all of it."""
        if self._file is None:
            return
        names = [*self._indexes] if namespace is None else [namespace]
        try:
            for name in names:
                self._file.check(name)
        except DamagedFileError as error:
            self._warn(error)
            self.rebuild(db)

    def _warn(self, error: Exception) -> None:
        logger.warning(
            "the vector index %s does not fit its bank (%s); it is rebuilt", self.path, error
        )

    def catch_up(self, db: sqlite3.Connection) -> None:
        """Take over what any process wrote since the last look."""
        state = (db, *db.execute("PRAGMA data_version").fetchone(), db.total_changes)
        if state != self._state:
            self._take_over(db)
            self._state = state

    def _take_over(self, db: sqlite3.Connection) -> None:
        change, generation = count(db, "change"), count(db, "generation")
        if change == self._seen:
            return
        if self._seen < 0 or generation != self._generation:
            self._load(db)
            self._generation = generation
        self._calibrations.clear()
        gone = db.execute(
            "SELECT id, namespace FROM forgotten_intents WHERE change > ?", (self._seen,)
        ).fetchall()
        for namespace in {row[1] for row in gone} & self._indexes.keys():
            ids = [row[0] for row in gone if row[1] == namespace]
            self._indexes[namespace].remove(np.array(ids, dtype=np.int64))
        rows = db.execute(
            "SELECT id, namespace, vector, checksum FROM intents WHERE change > ? ORDER BY id",
            (self._seen,),
        ).fetchall()
        if len({len(row[2]) for row in rows} | self._sizes()) > 1:
            raise StoreCorruptError(f"stored vectors differ in size; {RESTORE}")
        self._add(rows)
        self._seen = change

    def _sizes(self) -> set[int]:
        """Bytes per vector of the indexes so far: one number, or none yet."""
        return {4 * index.dimension for index in [*self._indexes.values()][:1]}

    def _add(self, rows: list[tuple[int, str, bytes, int]]) -> None:
        groups: dict[str, dict[int, Vector]] = {}
        for id, namespace, blob, kept in rows:
            groups.setdefault(namespace, {})[id] = checked_vector(id, namespace, blob, kept)
        for namespace, members in groups.items():
            self._append(
                namespace, np.array(list(members), dtype=np.int64), np.stack([*members.values()])
            )

    def _append(self, namespace: str, ids: Ids, vectors: Vector) -> None:
        if namespace not in self._indexes:
            self._indexes[namespace] = FaissIndex(vectors.shape[1])
        self._indexes[namespace].add(ids, vectors)

    def _load(self, db: sqlite3.Connection) -> None:
        """Map the file where it fits; else start empty, and `catch_up` reads every row."""
        self._indexes, self._file, self._seen = {}, None, 0
        if self.path is None or not self.path.exists():
            return
        try:
            self._file = IndexFile(self.path, Stamp.from_json(get_meta(db, "index_stamp")))
        except (OSError, ValueError, DamagedFileError) as error:
            self._warn(error)
            return
        for namespace, (ids, vectors) in self._file.parts().items():
            self._indexes[namespace] = FaissIndex.mapped(ids, vectors)
        self._seen = self._saved = count(db, "index_change")

    def is_unsaved(self) -> bool:
        """Whether the indexes hold more than their file."""
        return self.path is not None and self._seen >= 0 and self._seen != self._saved

    def save(self, db: sqlite3.Connection) -> None:
        """Write the file, then its stamp. A crash in between leaves a file that is rebuilt.

        Raises:
            StoreError: The file cannot be written.
        """
        if self.path is None or not self.is_unsaved():
            return
        try:
            # One name for all: the write lock is held, so what is there was left by a crash.
            temporary = self.path.with_name(f"{FILE_NAME}.tmp")
            if self._indexes:
                self._write(db, self.path, temporary)
            elif not db.execute("SELECT 1 FROM intents LIMIT 1").fetchone():
                # No vector is left, and none stays behind in a file.
                self.path.unlink(missing_ok=True)
                temporary.unlink(missing_ok=True)
            sync_folder(self.path.parent)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written ({error})") from error
        self._saved = self._seen

    def _write(self, db: sqlite3.Connection, path: Path, temporary: Path) -> None:
        self._check_file(db)
        try:
            with open(
                os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb"
            ) as file:
                stamp = write_index(file, self._indexes)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        set_meta(db, "index_change", self._seen)
        set_meta(db, "index_stamp", stamp.to_json())

    def rebuild(self, db: sqlite3.Connection) -> None:
        """Forget everything and read every vector from SQLite again."""
        self._indexes, self._file, self._seen, self._saved = {}, None, 0, -1
        self._state = None
        self._generation = count(db, "generation")
        self.catch_up(db)

    def problems(self, db: sqlite3.Connection) -> list[str]:
        """Where the indexes differ from SQLite."""
        try:
            self.catch_up(db)
            self._check_file(db)
        except StoreCorruptError as error:
            return [str(error)]
        rows = db.execute("SELECT id, namespace, vector FROM intents")
        expected = {(namespace, id): blob for id, namespace, blob in rows}
        found = {
            (namespace, int(id)): to_blob(vector)
            for namespace, index in self._indexes.items()
            for id, vector in zip(index.ids, index.vectors, strict=True)
        }
        size = sum(index.ids.size for index in self._indexes.values())
        if expected == found and size == len(found):
            return []
        return ["the vector index differs from the stored vectors; call rebuild_index()"]
