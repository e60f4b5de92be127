"""Connections to a bank's database."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from langchain_memrl.store.embedded.faults import is_busy

MEMORY = ":memory:"


class SqliteDialect:
    """See `Dialect`. A column of SQLite holds a value of any type."""

    counts_changes = True

    def keep(self, value: Any) -> Any:
        """See `Dialect.keep`."""
        return value

    def kept(self, value: Any) -> Any:
        """See `Dialect.kept`."""
        return value


class SqliteConnection(sqlite3.Connection):
    """A `Database`."""

    dialect = SqliteDialect()

    def stream(self, sql: str, /) -> sqlite3.Cursor:
        """See `Database.stream`."""
        return self.execute(sql)


def connect(path: Path | None, seconds: float, *, read_only: bool = False) -> SqliteConnection:
    """A connection with explicit transactions, for any thread, one at a time.

    Args:
        path: The file; None for a database in memory.
        seconds: How long it waits for a lock.
        read_only: Whether it may not write.
    """
    target = MEMORY
    if path is not None:
        target = _for_reading(path, seconds) if read_only else path.absolute().as_uri()
    return sqlite3.connect(
        target,
        factory=SqliteConnection,
        timeout=seconds,
        isolation_level=None,
        check_same_thread=False,
        uri=path is not None,
    )


def write_ahead(connection: sqlite3.Connection, seconds: float) -> None:
    """Switch to WAL. Where two processes do so at once, SQLite refuses one without waiting."""
    give_up = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.01)
        else:
            return


def _for_reading(path: Path, seconds: float) -> str:
    """The address of a database that is only read.

    A reader makes two files beside the database. On a disk that takes none, and where no writer
    has made them, nothing changes: then the database is read alone.
    """
    target = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(target, timeout=seconds, uri=True)) as db:
            db.execute("SELECT count(*) FROM sqlite_master")
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        cannot = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CANTOPEN
        if cannot and not path.with_name(f"{path.name}-wal").exists():
            return f"{target}&immutable=1"
    return target
