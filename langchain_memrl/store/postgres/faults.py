"""What goes wrong with PostgreSQL, said in this package's words."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from langchain_memrl.errors import StoreBusyError, StoreCorruptError, StoreError

LOCKED = (errors.SerializationFailure, errors.DeadlockDetected, errors.LockNotAvailable)
PASSING = ("08", "57")
"""Classes of what passes: the connection broke, the server was stopped, a statement cancelled."""
FULL = "53300"
"""The server has no connection to give."""
REFUSED = ("authentication failed", "does not exist", "no pg_hba.conf entry", "not permitted")
"""What a server says to a stranger. A connection that is refused has no other mark."""
DAMAGED = ("XX001", "XX002")
LONGEST = 200


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn errors about the bank at `place` into ours.

    Only the first line of what the server says is passed on: its details quote rows.

    Raises:
        StoreBusyError: Calling again helps.
        StoreCorruptError: The server says that its own files are damaged.
        StoreError: Calling again does not help.
    """
    try:
        yield
    except LOCKED as error:
        raise StoreBusyError(
            f"{place} has been locked by another connection ({told(error)}); nothing of this call "
            "was written, call again"
        ) from None
    except psycopg.Error as error:
        if _passes(error):
            raise StoreBusyError(
                f"{place}: the connection was lost or refused ({told(error)}); nothing is half "
                "done: call again, with the same episode id it counts once"
            ) from None
        if error.sqlstate in DAMAGED:
            raise StoreCorruptError(f"{place}: {told(error)}; restore a backup") from None
        raise StoreError(f"{place}: {told(error)}") from None


def _passes(error: psycopg.Error) -> bool:
    """Whether the same call may succeed later."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    if error.sqlstate is not None:
        return error.sqlstate.startswith(PASSING) or error.sqlstate == FULL
    return not any(words in str(error) for words in REFUSED)


def told(error: psycopg.Error) -> str:
    """The first line of what the server, or the driver, says."""
    text = error.diag.message_primary or str(error)
    line = " ".join(text.split("\n", 1)[0].split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
