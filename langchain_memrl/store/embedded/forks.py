"""What a fork may take along: no connection to a database.

SQLite keeps its file locks in tables of the process. A forked child inherits the tables without
the locks: a connection that it opens itself would believe that it holds what it does not, and what
it writes could be lost. So before a fork every connection to a file is closed; the parent opens it
again when it needs it. Where that is not possible, because another thread is using it, the child
is refused.
"""

import os
import threading
import weakref
from pathlib import Path
from typing import Protocol

from langchain_memrl.errors import StoreError


class Parkable(Protocol):
    """Something with a connection to a file."""

    def park(self) -> bool:
        """Close the connection and keep others from opening it; False if it is in use."""

    def unpark(self) -> None:
        """Let the connection be opened again."""

    def leave(self) -> tuple[object, Path] | None:
        """In the child: drop what is shared; an open connection and its file, if there is one."""


_watched: "weakref.WeakSet[Parkable]" = weakref.WeakSet()
_parked: list[Parkable] = []
_inherited: list[tuple[object, tuple[int, int]]] = []
"""In a child: connections of the parent, never to be touched, and the files they are to."""
_guard = threading.Lock()
_hooks: list[bool] = []


def watch(one: Parkable) -> None:
    """Park it at every fork from now on."""
    with _guard:
        if not _hooks:
            os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_leave)
            _hooks.append(True)
        _watched.add(one)


def check_inherited(path: Path) -> None:
    """Refuse a file to which this process inherited an open connection.

    Raises:
        StoreError: With what to do.
    """
    if _inherited and path.exists() and _identity(path) in [file for _, file in _inherited]:
        raise StoreError(
            f"{path} was in use by another thread when this process was forked, so it cannot be "
            'opened here: start processes with the "spawn" or "forkserver" method'
        )


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _before() -> None:
    _guard.acquire()
    _parked[:] = [one for one in list(_watched) if one.park()]


def _after() -> None:
    for one in _parked:
        one.unpark()
    _parked.clear()
    _guard.release()


def _leave() -> None:
    for one in list(_watched):
        left = one.leave()
        if left is not None and left[1].exists():
            _inherited.append((left[0], _identity(left[1])))
    _after()
