"""The SQLite file that holds the truth: connection, transactions, settings, error translation."""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from langchain_memrl.errors import (
    StoreCorruptError,
    StoreError,
    StoreNotFoundError,
    StoreVersionError,
)
from langchain_memrl.store.connection import MEMORY, connect
from langchain_memrl.store.faults import is_busy, translated
from langchain_memrl.store.files import make_folder
from langchain_memrl.store.marker import Marker
from langchain_memrl.store.migrations import MIGRATIONS, check_format, migrate
from langchain_memrl.store.turns import Turns

logger = logging.getLogger("langchain_memrl")

BUSY_SECONDS = 30.0
FILE_NAME = "memrl.sqlite3"


class Sidecar:
    """One connection, used by one thread at a time, with explicit transactions.

    WAL with `synchronous=FULL`: a transaction that returned survives a crash of the machine.
    """

    def __init__(self, folder: Path | None, *, create: bool, read_only: bool) -> None:
        """Open or create the database in `folder` (None: in memory).

        Raises:
            StoreNotFoundError: There is no bank and none may be created.
        """
        self.path = None if folder is None else folder / FILE_NAME
        self.place = MEMORY if self.path is None else str(self.path)
        self.read_only = read_only
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._marker = None if self.path is None else Marker(self.path)
        self._turns = None if self.path is None else Turns(self.path.parent)
        with self._translate():
            self.doubt = self._find_doubt()
            """Why this is not the database that was closed last; None where it is."""
        if self.path is not None and not self.path.exists():
            self._check_trusted()
            if read_only or not create:
                raise StoreNotFoundError(
                    f"there is no memory bank at {self.path.parent}; "
                    "open it with create=True to make one"
                )
            self._make_file(self.path)
        with self._translate():
            self._connection = self._connect()

    def _make_file(self, path: Path) -> None:
        """A private folder with a private, empty file."""
        try:
            make_folder(path.parent, 0o700)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise StoreError(
                f"{path.parent} cannot hold a memory bank ({error}); choose another folder"
            ) from error

    def _connect(self) -> sqlite3.Connection:
        read_only = self.read_only or self.doubt is not None
        connection = connect(self.path, BUSY_SECONDS, read_only=read_only)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Refuse what is not ours before anything is written, then bring it up to date."""
        version = check_format(connection, self.place)
        connection.execute("PRAGMA foreign_keys = ON")
        if self.read_only or self.doubt:
            self._check_readable(version)
        else:
            if 0 < version < len(MIGRATIONS):
                self._mark_open()
            self._write_ahead(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            migrate(connection)
            if not version:
                # The marker may only say that there is a bank once the file itself holds it.
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._mark_open()

    def _find_doubt(self) -> str | None:
        """Why this is not the database that was closed last; None where it is."""
        if self._marker is None or self.path is None:
            return None
        doubt, rows = self._marker.doubt(), self._marker.rows_expected()
        if rows and not doubt:
            with closing(connect(self.path, BUSY_SECONDS, read_only=True)) as db:
                doubt = "it is older" if rows_written(db) < rows else None
        return doubt and (
            f"{self.place} is not the database that was closed last: {doubt}; it was left as it "
            f"is: restore a backup, or delete {self._marker.path.name} if you put the database "
            "there yourself"
        )

    def _check_readable(self, version: int) -> None:
        """Refuse to read a format that would have to be written anew first."""
        if version == 0:
            self._check_trusted()
            raise StoreNotFoundError(f"{self.place} holds no memory bank yet")
        if version < len(MIGRATIONS):
            self._check_trusted()
            raise StoreVersionError(
                f"{self.place} has format {version}, this version reads {len(MIGRATIONS)}; "
                "open it once without read_only (memrl rebuild does) to bring it up to date"
            )

    def _mark_open(self) -> None:
        """Say in the marker that the database changes from now on."""
        if self._marker is None:
            return
        try:
            self._marker.open()
        except OSError as error:
            raise StoreError(f"{self._marker.path} cannot be written ({error})") from error

    def _check_trusted(self) -> None:
        """Raise where the database is not the one that was closed last.

        Raises:
            StoreCorruptError: With what to do.
        """
        if self.doubt:
            raise StoreCorruptError(f"{self.doubt}; verify() tells more")

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        """Switch to WAL. Where two processes do so at once, SQLite refuses one without waiting."""
        give_up = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > give_up:
                    raise
                time.sleep(0.01)
            else:
                return

    @contextmanager
    def read(self, *, doubted: bool = False) -> Iterator[sqlite3.Connection]:
        """The connection, for reading, with errors translated; `doubted`: whatever it holds."""
        self.check_open()
        if not doubted:
            self._check_trusted()
        with self._lock, self._translate():
            yield self._open_connection()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed when the block ends, rolled back when it raises."""
        with self.alone() as connection, self._turn():
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until other processes have written what they were writing."""
        if self._turns is None:
            yield
            return
        with self._turns.turn():
            yield

    @contextmanager
    def one_state(self, *, doubted: bool = False) -> Iterator[sqlite3.Connection]:
        """The connection with one state of the database, whatever others commit meanwhile."""
        with self.read(doubted=doubted) as db:
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.execute("COMMIT")

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """One state of the database for a long read; other threads go on meanwhile."""
        if self.path is None:
            with self.read() as db:
                yield db
            return
        self.check_open()
        self._check_trusted()
        with (
            self._translate(),
            closing(connect(self.path, BUSY_SECONDS, read_only=True)) as db,
        ):
            db.execute("BEGIN")
            yield db

    @contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """The connection outside any transaction, for what SQLite does on its own."""
        with self.read() as db:
            if self.read_only:
                raise StoreError(f"{self.place} was opened read-only; open it without read_only")
            self._mark_open()
            yield db

    def check_open(self) -> None:
        """Raise where it cannot be used; asked before the lock, which a fork may have taken along.

        Raises:
            StoreError: It is closed, or was opened before this process was forked.
        """
        if os.getpid() != self._process:
            raise StoreError(
                f"the memory bank {self.place} was opened before this process was forked; "
                "open it again in the child"
            )
        self._open_connection()

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreError(f"the memory bank {self.place} is closed; open it again")
        return self._connection

    def is_writable(self) -> bool:
        """Whether it is open for writing in this process."""
        refused = self.read_only or self.doubt is not None or os.getpid() != self._process
        return self._connection is not None and not refused

    def close(self) -> None:
        """Close the connection. Idempotent; a forked child leaves its parent's files alone."""
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._connection is not None:
                self._close(self._connection)
            self._connection = None

    def _close(self, connection: sqlite3.Connection) -> None:
        """Close the connection, then say in the marker how the file was left."""
        writable = self.is_writable()
        try:
            rows = rows_written(connection) if writable else 0
            connection.close()
            if self._turns is not None:
                self._turns.close()
            if writable and self._marker is not None:
                self._marker.close(rows)
        except (sqlite3.DatabaseError, OSError) as error:
            logger.warning("%s was not closed cleanly (%s)", self.place, error)

    def _translate(self) -> AbstractContextManager[None]:
        return translated(self.place, BUSY_SECONDS)


def rows_written(db: sqlite3.Connection) -> int:
    """How many rows were ever written; it only grows."""
    return int(db.execute("SELECT coalesce(sum(seq), 0) FROM sqlite_sequence").fetchone()[0])
