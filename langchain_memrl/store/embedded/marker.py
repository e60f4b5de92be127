"""A small file beside the database that says how the bank was closed last.

SQLite takes an empty file for a new database and an older copy for the present one, and it finds
only some of the bits that flip on a disk. The marker remembers the closed file's SHA-256 and how
many rows the bank had ever written; a database that does not fit is not used.

While anybody may write, the marker says "open" and nothing is compared: then SQLite's log and the
checksums in the rows have to do.
"""

import fcntl
import hashlib
import json
import logging
import os
import secrets
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

from langchain_memrl.errors import StoreCorruptError
from langchain_memrl.store.files import private_file, sync_folder

logger = logging.getLogger("langchain_memrl")

FILE_NAME = "memrl.marker"
SIZE = 512  # one sector: written as a whole or not at all
BACKDATE_NS = 10_000_000_000
ALWAYS_HASHED = 64 * 2**20
"""Up to this size the content is compared at every opening; above, where size or time differ."""


class State(NamedTuple):
    """What a marker says."""

    closed: bool
    rows: int
    size: int = 0
    mtime_ns: int = 0
    sha256: str = ""


UNREADABLE = State(closed=False, rows=0)


class Marker:
    """The marker of one bank. A shared lock on it means "I may write"."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(FILE_NAME)
        self._database = database
        self._log = database.with_name(f"{database.name}-wal")
        self._file: FileIO | None = None

    def read(self) -> State | None:
        """What it says; None where there is none."""
        try:
            said: Any = State(**json.loads(self.path.read_bytes()))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, TypeError, RecursionError):
            return UNREADABLE
        kinds = (bool, int, int, int, str)
        fits = all(type(value) is kind for value, kind in zip(said, kinds, strict=True))
        return said if fits else UNREADABLE

    def check_left(self) -> None:
        """Refuse a database of which nothing is left, and warn where its log is gone.

        Raises:
            StoreCorruptError: It is empty or missing, although a bank was made here.
        """
        state = self.read()
        if state is None:
            return
        if _size(self._database) == 0:
            raise StoreCorruptError(
                f"{self._database} is empty or missing, although a memory bank was made here; "
                "nothing was touched: restore a backup, or choose another folder for a new bank"
            )
        if not state.closed and state is not UNREADABLE and not self._log.exists():
            logger.warning(
                "%s was not closed, and its log %s is missing: if somebody removed it, the last "
                "writes are lost",
                self._database,
                self._log.name,
            )

    def doubt(self, *, thorough: bool = False) -> str | None:
        """Why the database beside it is not the one that was closed; None where it may be.

        Args:
            thorough: Compare the whole content, whatever its size.
        """
        state = self.read()
        if state is None or not state.closed or self._fits(state, thorough=thorough):
            return None
        # Somebody may have opened it while it was read; then it has changed by right.
        return "its content has changed since it was closed" if self.read() == state else None

    def _fits(self, state: State, *, thorough: bool) -> bool:
        if _size(self._log):
            return False
        now = self._database.stat()
        untouched = (now.st_size, now.st_mtime_ns) == (state.size, state.mtime_ns)
        if untouched and not thorough and now.st_size > ALWAYS_HASHED:
            return True
        return now.st_size == state.size and _sha256(self._database) == state.sha256

    def rows_expected(self) -> int:
        """How many rows a bank that was not closed since has to have at least."""
        state = self.read()
        return 0 if state is None or state.closed else state.rows

    @property
    def is_open(self) -> bool:
        """Whether this connection has said that the database changes."""
        return self._file is not None

    def open(self) -> None:
        """Say, before the first write, that the database changes from now on."""
        file = private_file(self.path)
        fcntl.flock(file, fcntl.LOCK_SH)
        self._file = file
        state = self.read()
        if state is None or state.closed or state is UNREADABLE:
            _write(file, State(closed=False, rows=0 if state is None else state.rows))

    def close(self, rows: int) -> None:
        """Say how the closed database was left, unless others still use it."""
        state = self.read()
        if self._file is None and state is not None and state.closed:
            return
        file, self._file = self._file or private_file(self.path), None
        try:
            if _size(self._log) == 0:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                sync_folder(self.path.parent)  # SQLite's log is gone for good
                _write(file, self._seal(rows))
        except BlockingIOError:
            pass  # another process may write; the last one to close says so
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
            file.close()

    def drop(self) -> None:
        """Forget the file, in a child that was forked: the parent goes on with it."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _seal(self, rows: int) -> State:
        """The closed file's description. Its time is set to one that no later write can give it."""
        when = self._database.stat().st_mtime_ns - BACKDATE_NS - secrets.randbelow(1_000_000_000)
        os.utime(self._database, ns=(when, when))
        now = self._database.stat()
        return State(True, rows, now.st_size, now.st_mtime_ns, _sha256(self._database))


def _size(path: Path) -> int:
    """Bytes in a file; 0 where there is none."""
    return path.stat().st_size if path.exists() else 0


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(file: FileIO, state: State) -> None:
    os.pwrite(file.fileno(), json.dumps(state._asdict()).encode().ljust(SIZE - 1) + b"\n", 0)
    os.fsync(file.fileno())
