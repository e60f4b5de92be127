"""The vector indexes of a bank: one per namespace, kept level with SQLite, cached in one file."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np

from langchain_memrl.core.calibration import Calibration
from langchain_memrl.errors import StoreCorruptError, StoreError
from langchain_memrl.store.base import Hits, Ids, Vector
from langchain_memrl.store.database import Database
from langchain_memrl.store.eligible import owners
from langchain_memrl.store.embedded.coarse import Codes, LargeIndex, read_codes, write_codes
from langchain_memrl.store.embedded.index import FaissIndex
from langchain_memrl.store.embedded.index_file import (
    DamagedFileError,
    IndexFile,
    Stamp,
    write_index,
)
from langchain_memrl.store.encoding import RESTORE, to_blob
from langchain_memrl.store.files import sync_folder
from langchain_memrl.store.filter_sql import Clause
from langchain_memrl.store.meta import count, get_meta, set_meta
from langchain_memrl.store.rows import checked_vector, find_calibration

logger = logging.getLogger("langchain_memrl")

FILE_NAME = "intents.faiss"
CODES_NAME = "intents.pq.faiss"

R = TypeVar("R")


class VectorCache:
    """Finds nearest intents. Everything in it can be made again from SQLite.

    The file is stamped, in SQLite, with the change it was written at and checksums of its blocks.
    It is used only where they fit, and brought up to date with the rows that are newer. A second
    file holds the codes of large namespaces, if there are any. Callers hold the store's lock.
    """

    def __init__(self, folder: Path | None, *, exact: bool = False) -> None:
        self.path = None if folder is None else folder / FILE_NAME
        self._kind = FaissIndex if exact else LargeIndex
        self._indexes: dict[str, FaissIndex] = {}
        self._file: IndexFile | None = None  # what the indexes began with
        self._seen = -1  # the change the indexes are level with; -1: not loaded
        self._saved = -1
        self._generation = 0  # the bank's model that their vectors are of
        self._calibrations: dict[str, Calibration | None] = {}
        self._state: object = None  # the database as last seen: others' commits, our changes

    def calibration(self, db: Database, namespace: str) -> Calibration | None:
        """The namespace's similarity statistics; they change with its intents only."""
        self.catch_up(db)
        if namespace not in self._calibrations:
            self._calibrations[namespace] = find_calibration(db, namespace)
        return self._calibrations[namespace]

    def search(
        self,
        db: Database,
        namespace: str,
        query: Vector,
        limit: int,
        clause: Clause | None,
        excluded: Ids,
    ) -> Hits:
        """See `Nearest.search`. As of the last `catch_up`, which `calibration` does."""
        self._check_file(db, namespace)
        index = self._indexes.get(namespace)
        if index is None:
            return Hits(np.empty(0, dtype=np.int64), np.empty(0))
        allowed = None if clause is None else owners(db, namespace, clause)
        hits = index.search(query, limit + excluded.size, allowed)
        if not excluded.size:
            return hits
        others = ~np.isin(hits.ids, excluded)
        return Hits(hits.ids[others][:limit], hits.similarity[others][:limit])

    def _check_file(self, db: Database, namespace: str | None = None) -> None:
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

    def catch_up(self, db: Database) -> None:
        """Take over what any process wrote since the last look."""
        others_and_ours = "SELECT data_version, total_changes() FROM pragma_data_version"
        state = (db, *db.execute(others_and_ours).fetchone())
        if state != self._state:
            self._take_over(db)
            self._state = state

    def _take_over(self, db: Database) -> None:
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
            self._indexes[namespace] = self._kind(vectors.shape[1])
        self._indexes[namespace].add(ids, vectors)

    def _load(self, db: Database) -> None:
        """Map the file where it fits; else start empty, and `catch_up` reads every row."""
        self._indexes, self._file, self._seen = {}, None, 0
        if self.path is None or not self.path.exists():
            return
        try:
            self._file = IndexFile(self.path, Stamp.from_json(get_meta(db, "index_stamp")))
        except (OSError, ValueError, DamagedFileError) as error:
            self._warn(error)
            return
        if count(db, "index_generation") != count(db, "generation"):
            self._file = None  # its vectors are another model's
            return
        for namespace, (ids, vectors) in self._file.parts().items():
            self._indexes[namespace] = self._kind.mapped(ids, vectors)
        self._seen = self._saved = count(db, "index_change")
        self._load_codes(db, self.path.with_name(CODES_NAME))

    def _load_codes(self, db: Database, path: Path) -> None:
        """Use the codes where they fit; else they are made again."""
        if self._kind is FaissIndex or not path.exists():
            return
        try:
            found = read_codes(path, self._seen, get_meta(db, "codes_stamp"))
        except (OSError, DamagedFileError) as error:
            logger.warning("%s does not fit its bank (%s); it is made again", path, error)
            return
        for namespace, made in found.items():
            index = self._indexes.get(namespace)
            if isinstance(index, LargeIndex):
                index.use(made)

    def _codes(self) -> dict[str, Codes]:
        """The codes that fit the rows of a file that is written now."""
        found = {
            namespace: index.whole_codes()
            for namespace, index in self._indexes.items()
            if isinstance(index, LargeIndex)
        }
        return {namespace: codes for namespace, codes in found.items() if codes is not None}

    def is_unsaved(self) -> bool:
        """Whether the indexes hold more than their files."""
        if self.path is None or self._seen < 0:
            return False
        return self._seen != self._saved or not all(one.is_saved for one in self._codes().values())

    def save(self, db: Database) -> None:
        """Write the file, then its stamp. A crash in between leaves a file that is rebuilt.

        Raises:
            StoreError: The file cannot be written.
        """
        if self.path is None or not self.is_unsaved():
            return
        self.catch_up(db)  # what another process forgot or embedded anew must not come back
        try:
            if self._indexes:
                self._write(db, self.path)
            elif not db.execute("SELECT 1 FROM intents WHERE id > 0 LIMIT 1").fetchone():
                # No vector is left, and none stays behind in a file.
                for name in (FILE_NAME, CODES_NAME):
                    _drop(self.path.with_name(name))
            sync_folder(self.path.parent)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written ({error})") from error
        self._saved = self._seen

    def _write(self, db: Database, path: Path) -> None:
        if self._seen == self._saved != count(db, "index_change"):
            return  # another process has written newer files
        if self._file is not None:
            self._file.doubt()
        self._check_file(db)
        codes, place = self._codes(), path.with_name(CODES_NAME)
        if codes:
            stamp = _replace(place, lambda file: write_codes(file, self._seen, codes))
            set_meta(db, "codes_stamp", stamp)
        else:
            _drop(place)
        if self._seen != self._saved:
            written = _replace(path, lambda file: write_index(file, self._indexes))
            set_meta(db, "index_change", self._seen)
            set_meta(db, "index_generation", self._generation)
            set_meta(db, "index_stamp", written.to_json())

    def rebuild(self, db: Database) -> None:
        """Forget everything and read every vector from SQLite again."""
        self._indexes, self._file, self._seen, self._saved = {}, None, 0, -1
        self._state = None
        self._generation = count(db, "generation")
        self.catch_up(db)

    def problems(self, db: Database) -> list[str]:
        """Where the indexes differ from SQLite."""
        try:
            self.catch_up(db)
            self._check_file(db)
        except StoreCorruptError as error:
            return [str(error)]
        rows = db.execute("SELECT id, namespace, vector FROM intents WHERE id > 0")
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

    def close(self) -> None:
        """Let go of everything; no thread makes codes any longer."""
        self._indexes, self._file, self._seen = {}, None, -1


def _replace(path: Path, write: Callable[[BinaryIO], R]) -> R:
    """Write a file that takes the place of another one once it is complete."""
    temporary = _temporary(path)
    try:
        with open(os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
            written = write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return written


def _temporary(path: Path) -> Path:
    """One name for all: the write lock is held, so what is there was left by a crash."""
    return path.with_name(f"{path.name}.tmp")


def _drop(path: Path) -> None:
    path.unlink(missing_ok=True)
    _temporary(path).unlink(missing_ok=True)
