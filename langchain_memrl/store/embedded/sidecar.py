"""The SQLite file that holds the truth: connection, transactions, settings, error translation."""

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from langchain_memrl.errors import StoreCorruptError, StoreError, StoreNotFoundError
from langchain_memrl.store.database import check_usable
from langchain_memrl.store.embedded.connection import MEMORY, SqliteConnection, connect, write_ahead
from langchain_memrl.store.embedded.doubt import find_doubt, rows_written
from langchain_memrl.store.embedded.faults import translated
from langchain_memrl.store.embedded.forks import check_inherited, watch
from langchain_memrl.store.embedded.marker import Marker
from langchain_memrl.store.embedded.migrations import (
    MIGRATIONS,
    check_format,
    check_readable,
    migrate,
)
from langchain_memrl.store.embedded.turns import Turns
from langchain_memrl.store.files import make_file

logger = logging.getLogger("langchain_memrl")

BUSY_SECONDS = 30.0
PARK_SECONDS = 1.0
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
        self._users = 0  # blocks of this thread that hold the lock
        self._snapshots = 0
        self._is_closed = False
        self._process = os.getpid()
        self._connection: SqliteConnection | None = None
        self._marker = None if self.path is None else Marker(self.path)
        self._turns = None if self.path is None else Turns(self.path.parent)
        if self.path is not None:
            check_inherited(self.path)
        self._check_left()
        with self._translate():
            self.doubt = self.find_doubt()
            """Why this is not the database that was closed last; None where it is."""
        if self.path is not None and not self.path.exists():
            if read_only or not create:
                raise StoreNotFoundError(
                    f"there is no memory bank at {self.path.parent}; "
                    "check the path, or open it with create=True to make one"
                )
            make_file(self.path)
        with self._translate():
            self._connection = self._connect()
        if self.path is not None:
            watch(self)

    def _check_left(self) -> None:
        """Refuse to make a new bank where there was one. SQLite would drop its log of writes.

        Raises:
            StoreCorruptError: The database is gone.
            StoreError: It is a link: SQLite's other files would stand elsewhere.
        """
        if self.path is not None and self.path.is_symlink():
            raise StoreError(f"{self.place} is a symbolic link; expected the file itself")
        if self._marker is not None:
            self._marker.check_left()

    def _connect(self) -> SqliteConnection:
        read_only = self.read_only or self.doubt is not None
        connection = connect(self.path, BUSY_SECONDS, read_only=read_only)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: SqliteConnection) -> None:
        """Refuse what is not ours before anything is written, then bring it up to date."""
        version = check_format(connection, self.place)
        connection.execute("PRAGMA foreign_keys = ON")
        if self.read_only or self.doubt:
            check_readable(version, self.place)
        else:
            if 0 < version < len(MIGRATIONS):
                self._mark_open(connection)
            write_ahead(connection, BUSY_SECONDS)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            migrate(connection)
            if not version:
                self._mark_open(connection)

    def find_doubt(self, *, thorough: bool = False) -> str | None:
        """Why this is not the database that was closed last; None where it is."""
        if self._marker is None or self.path is None:
            return None
        return find_doubt(self._marker, self.path, BUSY_SECONDS, thorough=thorough)

    def _mark_open(self, connection: SqliteConnection) -> None:
        """Say in the marker that the database changes from now on.

        It may only say that there is a bank once the file itself holds it, not the log alone.
        """
        if self._marker is None or self.path is None or self._marker.is_open:
            return
        if self.path.stat().st_size == 0:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
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

    @contextmanager
    def read(self, *, doubted: bool = False) -> Iterator[SqliteConnection]:
        """The connection, for reading, with errors translated; `doubted`: whatever it holds."""
        self.check_open()
        if not doubted:
            self._check_trusted()
        with self._lock, self._translate():
            self._users += 1
            try:
                connection = self._open_connection()
                if self._users == 1 and connection.in_transaction:
                    connection.execute("ROLLBACK")  # left by an interrupt at the wrong moment
                yield connection
            finally:
                self._users -= 1

    @contextmanager
    def write(self, *namespaces: str) -> Iterator[SqliteConnection]:
        """One transaction: committed when the block ends, rolled back when it raises.

        A file has one writer at a time, whatever `namespaces` it changes.
        """
        with self.alone() as connection, self._turn():
            try:
                connection.execute("BEGIN IMMEDIATE")
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
    def one_state(self, *, doubted: bool = False) -> Iterator[SqliteConnection]:
        """The connection with one state of the database, whatever others commit meanwhile."""
        with self.read(doubted=doubted) as db:
            try:
                db.execute("BEGIN")
                yield db
            finally:
                if db.in_transaction:
                    db.execute("COMMIT")

    @contextmanager
    def snapshot(self) -> Iterator[SqliteConnection]:
        """One state of the database for a long read; other threads go on meanwhile."""
        if self.path is None:
            with self.read() as db:
                yield db
            return
        self.check_open()
        self._check_trusted()
        self._snapshots += 1
        try:
            with (
                self._translate(),
                closing(connect(self.path, BUSY_SECONDS, read_only=True)) as db,
            ):
                db.execute("BEGIN")
                yield db
        finally:
            self._snapshots -= 1

    @contextmanager
    def alone(self) -> Iterator[SqliteConnection]:
        """The connection outside any transaction, for what SQLite does on its own."""
        with self.read() as db:
            if self.read_only:
                raise StoreError(f"{self.place} was opened read-only; open it without read_only")
            self._mark_open(db)
            yield db

    def check_open(self) -> None:
        """See `Rows.check_open`. Asked before the lock, which a fork may have taken along."""
        check_usable(self.place, self._process, closed=self._is_closed)

    def _open_connection(self) -> SqliteConnection:
        self.check_open()
        if self._connection is None:  # closed for a fork
            self._connection = self._connect()
        return self._connection

    # --- forks: see `forks.py` ------------------------------------------------------------------

    def park(self) -> bool:
        """See `Parkable.park`."""
        if os.getpid() != self._process or not self._lock.acquire(timeout=PARK_SECONDS):
            return False
        if self._users or self._is_closed:
            self._lock.release()
            return False
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        return True

    def unpark(self) -> None:
        """See `Parkable.unpark`."""
        self._lock.release()

    def leave(self) -> tuple[object, Path] | None:
        """See `Parkable.leave`."""
        for shared in (self._marker, self._turns):
            if shared is not None:
                shared.drop()
        if self.path is None or (self._connection is None and not self._snapshots):
            return None
        return self._connection, self.path

    def is_writable(self) -> bool:
        """Whether it is open for writing in this process."""
        refused = self.read_only or self.doubt is not None or os.getpid() != self._process
        return not self._is_closed and not refused

    def close(self) -> None:
        """Close the connection. Idempotent; a forked child leaves its parent's files alone."""
        if os.getpid() != self._process:
            return
        with self._lock:
            if not self._is_closed:
                self._close()
            self._connection, self._is_closed = None, True

    def _close(self) -> None:
        """Close the connection, then say in the marker how the file was left."""
        writable = self.is_writable()
        try:
            connection = self._open_connection()
            rows = rows_written(connection) if writable else 0
            connection.close()
            if self._turns is not None:
                self._turns.drop()
            if writable and self._marker is not None:
                self._marker.close(rows)
        except (sqlite3.DatabaseError, StoreError, OSError) as error:
            logger.warning("%s was not closed cleanly (%s)", self.place, error)

    def _translate(self) -> AbstractContextManager[None]:
        return translated(self.place, BUSY_SECONDS)
