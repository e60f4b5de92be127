"""Files and folders that are there as a whole or not at all, also after a power cut."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from langchain_memrl.errors import StoreError


def private_file(path: Path) -> FileIO:
    """An open file that only its owner may read; it is made where it is missing.

    A link in its place is not followed: whoever put it there chose what would be written.

    Raises:
        OSError: It cannot be opened, or is a link.
    """
    flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    return FileIO(os.open(path, flags, 0o600), "r+", closefd=True)


def make_file(path: Path) -> None:
    """A private, empty file in a private folder.

    Raises:
        StoreError: It cannot be made.
    """
    try:
        make_folder(path.parent, 0o700)
        private_file(path).close()
    except OSError as error:
        raise StoreError(
            f"{path.parent} cannot hold a memory bank ({error}); choose another folder"
        ) from error


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
        return  # a folder above ours that may not be read
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that becomes `folder` when the block ends well, and vanishes otherwise.

    Raises:
        StoreError: It cannot be written.
    """
    temporary: Path | None = None
    try:
        make_folder(folder.parent)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        yield temporary
        sync_folder(temporary)
        temporary.replace(folder)
        try:
            sync_folder(folder.parent)
        except OSError:
            folder.replace(temporary)
            raise
    except OSError as error:
        raise StoreError(f"{folder} cannot be written ({error})") from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A temporary file that becomes `path` when the block ends well, and vanishes otherwise.

    Raises:
        StoreError: It cannot be written.
    """
    temporary: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(descriptor)
        temporary = Path(name)
        yield temporary
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error})") from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
