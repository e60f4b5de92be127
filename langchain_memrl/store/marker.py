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
import os
import secrets
from pathlib import Path
from typing import Any, NamedTuple

from langchain_memrl.store.files import sync_folder

FILE_NAME = "memrl.marker"
SIZE = 512  # one sector: written as a whole or not at all
BACKDATE_NS = 10_000_000_000


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
        self._file: int | None = None

    def read(self) -> State | None:
        """What it says; None where there is none."""
        try:
            said: Any = json.loads(self.path.read_bytes())
            return State(**said)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, TypeError):
            return UNREADABLE

    def doubt(self) -> str | None:
        """Why the database beside it is not the one that was closed; None where it may be."""
        state = self.read()
        if state is None:
            return None
        if self._is_lost():
            return "it is empty or missing"
        if not state.closed or self._fits(state):
            return None
        # Somebody may have opened it while it was read; then it has changed by right.
        return "its content has changed since it was closed" if self.read() == state else None

    def _is_lost(self) -> bool:
        """Whether nothing is left, although a bank was made here."""
        return _size(self._database) + _size(self._log) == 0

    def _fits(self, state: State) -> bool:
        if _size(self._log):
            return False
        now = self._database.stat()
        if (now.st_size, now.st_mtime_ns) == (state.size, state.mtime_ns):
            return True
        return now.st_size == state.size and _sha256(self._database) == state.sha256

    def open(self) -> None:
        """Say, before the first write, that the database changes from now on."""
        if self._file is not None:
            return
        file = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(file, fcntl.LOCK_SH)
        self._file = file
        state = self.read()
        if state is None or state.closed or state is UNREADABLE:
            _write(file, State(closed=False, rows=0 if state is None else state.rows))

    def rows_expected(self) -> int:
        """How many rows a bank that was not closed since has to have at least."""
        state = self.read()
        return 0 if state is None or state.closed else state.rows

    def close(self, rows: int) -> None:
        """Say how the closed database was left, unless others still use it."""
        state = self.read()
        if self._file is None and state is not None and state.closed:
            return
        file, self._file = self._file, None
        if file is None:
            file = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            if _size(self._log) == 0:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                sync_folder(self.path.parent)  # SQLite's log is gone for good
                _write(file, self._seal(rows))
        except BlockingIOError:
            pass  # another process may write; the last one to close says so
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)  # also for children that were forked meanwhile
            os.close(file)

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


def _write(file: int, state: State) -> None:
    os.pwrite(file, json.dumps(state._asdict()).encode().ljust(SIZE - 1) + b"\n", 0)
    os.fsync(file)
