"""What goes wrong with SQLite, said in this package's words: the file, and what to do."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from langchain_memrl.errors import StoreBusyError, StoreCorruptError, StoreError

CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
DISK = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
NOT_TEXT = "Could not decode to UTF-8"
CHECK_DISK = "nothing of this call was written: check the disk's space and health, then call again"
DAMAGED = (
    "{place} is damaged ({error}); it was left as it is: "
    "restore a backup, or recover it with the sqlite3 shell"
)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection is in the way; trying again helps."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in BUSY


@contextmanager
def translated(place: str, seconds: float) -> Iterator[None]:
    """Turn SQLite's errors about the file `place` into ours; `seconds`: how long it was tried.

    Raises:
        StoreBusyError, StoreCorruptError, StoreError: See `errors.py`.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            raise StoreBusyError(
                f"{place} has been locked by another connection for {seconds:g} s; call again"
            ) from error
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in CORRUPT or str(error).startswith(NOT_TEXT):
            raise StoreCorruptError(DAMAGED.format(place=place, error=error)) from error
        advice = f"; {CHECK_DISK}" if code in DISK else ""
        raise StoreError(f"{place}: {error}{advice}") from error
    except UnicodeDecodeError as error:  # of SQLite's message itself, which quotes what it found
        raise StoreCorruptError(DAMAGED.format(place=place, error=error)) from error
