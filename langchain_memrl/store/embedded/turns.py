"""Writers of several processes take turns, so that none waits much longer than the others.

SQLite alone is safe but unfair: who finds the database locked sleeps for up to a tenth of a second
and may be overtaken again and again. Waiting for a turn is a courtesy, not a lock: who got none in
time asks SQLite all the same.
"""

import fcntl
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from langchain_memrl.errors import StoreError
from langchain_memrl.store.files import private_file

FILE_NAME = "memrl.lock"
PATIENCE_SECONDS = 5.0
PAUSE_SECONDS = (0.0005, 0.002)


class Turns:
    """The turns at one bank, as one of its connections takes them."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._file: FileIO | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn and keep it for the length of the block.

        Raises:
            StoreError: The file cannot be made.
        """
        try:
            if self._file is None:
                self._file = private_file(self._path)
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written ({error})") from error
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not _lock(self._file) and time.monotonic() < give_up:
            time.sleep(random.uniform(*PAUSE_SECONDS))  # noqa: S311 (not a secret)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def drop(self) -> None:
        """Close the file. Idempotent."""
        if self._file is not None:
            self._file.close()
        self._file = None


def _lock(file: FileIO) -> bool:
    """Take the lock if it is free."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
