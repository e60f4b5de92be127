"""The embedded store: a SQLite sidecar that holds the truth, and vector indexes beside it."""

import logging
import os
import sqlite3
import weakref
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from langchain_memrl.config import LearningConfig, TrustConfig
from langchain_memrl.errors import InputError, StoreCorruptError, StoreError, StoreNotFoundError
from langchain_memrl.reports import Verification
from langchain_memrl.store import counters, inspection, reembedding, rows
from langchain_memrl.store.base import Progress
from langchain_memrl.store.database import Database
from langchain_memrl.store.embedded.commits import Commits
from langchain_memrl.store.embedded.connection import MEMORY
from langchain_memrl.store.embedded.sidecar import FILE_NAME, Sidecar
from langchain_memrl.store.embedded.vectors import VectorCache
from langchain_memrl.store.files import new_folder
from langchain_memrl.store.sql_store import SqlStore

logger = logging.getLogger("langchain_memrl")

R = TypeVar("R")

BACKUP_PAGES = 2000


class LocalStore(SqlStore):
    """`MemoryStore` in one folder, or in memory for `":memory:"`.

    Threads may share it; so may processes, each with its own.
    """

    def __init__(
        self,
        location: str | Path,
        *,
        learning: LearningConfig | None = None,
        trust: TrustConfig | None = None,
        create: bool = True,
        read_only: bool = False,
        seed: int | None = None,
        exact: bool = False,
        now: Callable[[], datetime] = rows.utc_now,
    ) -> None:
        """Open a bank, or make one.

        Args:
            location: A folder, or `":memory:"`.
            learning: Settings for a new bank.
            trust: Its rules of trust.
            create: Whether a missing bank is made.
            read_only: Open without writing.
            seed: Makes the secret of a new in-memory bank repeatable.
            exact: Whether large namespaces are searched exactly too.
            now: The clock.
        """
        folder = None if str(location) == MEMORY else Path(location).expanduser()
        self._now = now
        self._rows = self._sidecar = Sidecar(folder, create=create, read_only=read_only)
        self._commits = Commits(self._sidecar.write)
        self._nearest = self._vectors = VectorCache(folder, exact=exact)
        self._end = weakref.finalize(self, _close, self._sidecar, self._vectors)
        if not read_only:
            if self._sidecar.doubt is None:
                fixed = seed if folder is None else None
                self._prepare(learning or LearningConfig(), trust or TrustConfig(), fixed)
        elif not self._is_initialized():
            self._sidecar.close()
            raise StoreNotFoundError(f"{self._sidecar.place} holds no memory bank yet")

    def _commit(self, namespaces: Iterable[str], work: Callable[[Database], R]) -> R:
        """Run a call's work in a transaction that other threads' calls may share."""
        self._sidecar.check_open()
        return self._commits.run(work)

    # --- upkeep ---------------------------------------------------------------------------------

    def backup(self, folder: Path, progress: Progress | None = None) -> None:
        """Copy the bank, as it is at this moment, into a new folder; others may go on writing."""
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} exists and is not empty; choose a new folder")
        with new_folder(folder) as temporary:
            path = temporary / FILE_NAME
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            with self._sidecar.read() as db, closing(sqlite3.connect(path)) as copy:
                try:
                    db.backup(
                        copy,
                        pages=BACKUP_PAGES,
                        progress=progress
                        and (lambda _, left, total: progress(total - left, total)),
                    )
                except sqlite3.OperationalError as error:
                    raise StoreError(f"{folder} cannot be written ({error})") from error
            with path.open("rb+") as file:
                os.fsync(file.fileno())

    def compact(self) -> None:
        """Free the space of forgotten rows and leave no trace of them in any file."""
        with self._sidecar.write() as db:
            reembedding.drop_unused(db)
        with self._sidecar.alone() as db:
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with self._sidecar.write() as db:
            self._exchanged(db)
        with self._sidecar.alone() as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _exchanged(self, db: Database) -> None:
        self._vectors.rebuild(db)
        self._vectors.save(db)

    def verify(self) -> Verification:
        """See `MemoryStore.verify`."""
        doubt = self._sidecar.doubt or self._sidecar.find_doubt(thorough=True)
        found = [doubt] if doubt else []
        memories = intents = 0
        try:
            with self._sidecar.one_state(doubted=True) as db:
                (memories,) = db.execute("SELECT count(*) FROM memories").fetchone()
                (intents,) = db.execute("SELECT count(*) FROM intents WHERE id > 0").fetchone()
                # An index cannot be better than the vectors it is made of.
                found += (
                    inspection.file_problems(db)
                    or inspection.problems(db)
                    or self._vectors.problems(db)
                )
        except StoreCorruptError as error:
            found.append(str(error))
        return Verification(tuple(found), memories, intents)

    def rebuild_index(self) -> None:
        """See `MemoryStore.rebuild_index`."""
        with self._sidecar.write() as db:
            counters.recount(db)
            self._exchanged(db)

    def check_open(self) -> None:
        """See `MemoryStore.check_open`."""
        self._sidecar.check_open()

    def close(self) -> None:
        """Save the vector index and close the database. Idempotent.

        What nobody closed is closed when it is no longer used, at the latest when Python ends.
        """
        self._end()


def _close(sidecar: Sidecar, vectors: VectorCache) -> None:
    """Save what is worth it and close both; a forked child leaves its parent's files alone."""
    try:
        if sidecar.is_writable() and vectors.is_unsaved():
            with sidecar.write() as db:
                vectors.save(db)
    except (StoreError, OSError) as error:
        logger.warning("the vector index was not saved (%s); it will be rebuilt", error)
    finally:
        sidecar.close()
        vectors.close()
