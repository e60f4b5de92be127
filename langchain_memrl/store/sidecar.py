"""The SQLite file that holds the truth: connection, transactions, settings, error translation."""

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from langchain_memrl.errors import (
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreNotFoundError,
)
from langchain_memrl.store.migrations import check_format, migrate

BUSY_SECONDS = 30.0
FILE_NAME = "memrl.sqlite3"
MEMORY = ":memory:"

CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


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
        if self.path is not None and not self.path.exists():
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
        target = MEMORY if self.path is None else self.path.absolute().as_uri()
        if self.path is not None and self.read_only:
            target += "?mode=ro"
        connection = sqlite3.connect(
            target,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            uri=self.path is not None,
        )
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
        if not self.read_only:
            self._write_ahead(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            migrate(connection)
        elif version == 0:
            raise StoreNotFoundError(f"{self.place} holds no memory bank yet")

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        """Switch to WAL. Where two processes do so at once, SQLite refuses one without waiting."""
        give_up = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in BUSY or time.monotonic() > give_up:
                    raise
                time.sleep(0.01)
            else:
                return

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """The connection, for reading, with errors translated."""
        self.check_open()
        with self._lock, self._translate():
            yield self._open_connection()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed when the block ends, rolled back when it raises."""
        self.check_open()
        if self.read_only:
            raise StoreError(f"{self.place} was opened read-only; open it without read_only")
        with self._lock, self._translate():
            connection = self._open_connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def one_state(self) -> Iterator[sqlite3.Connection]:
        """The connection with one state of the database, whatever others commit meanwhile."""
        with self.read() as db:
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
        target = f"{self.path.absolute().as_uri()}?mode=ro"
        with (
            self._translate(),
            closing(
                sqlite3.connect(target, timeout=BUSY_SECONDS, isolation_level=None, uri=True)
            ) as db,
        ):
            db.execute("BEGIN")
            yield db

    @contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """The connection outside any transaction, for what SQLite does on its own."""
        with self.read() as db:
            if self.read_only:
                raise StoreError(f"{self.place} was opened read-only; open it without read_only")
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
        return self._connection is not None and not self.read_only and os.getpid() == self._process

    def close(self) -> None:
        """Close the connection. Idempotent; a forked child leaves its parent's files alone."""
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    @contextmanager
    def _translate(self) -> Iterator[None]:
        """Turn SQLite's errors into ours, with the file and what to do."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in BUSY:
                raise StoreBusyError(
                    f"{self.place} has been locked by another connection for "
                    f"{BUSY_SECONDS:g} s; call again"
                ) from error
            if code in CORRUPT:
                raise StoreCorruptError(
                    f"{self.place} is damaged ({error}); it was left as it is: "
                    "restore a backup, or recover it with the sqlite3 shell"
                ) from error
            raise StoreError(f"{self.place}: {error}") from error


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Make a folder, and those above it, so that they survive a power cut."""
    missing = [one for one in folder.parents if not one.exists()]
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for one in (folder, *missing):
        sync_folder(one.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # Windows, or a folder above ours that may not be read
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def get_meta(db: sqlite3.Connection, key: str, default: Any = None) -> Any:
    """One of the bank's own values."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return default if row is None else row[0]


def set_meta(db: sqlite3.Connection, key: str, value: Any) -> None:
    """Set one of the bank's own values."""
    db.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) "
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def next_change(db: sqlite3.Connection) -> int:
    """Count a change of the intents; other processes re-read what is newer than they saw."""
    change = int(get_meta(db, "change", 0)) + 1
    set_meta(db, "change", change)
    return change
