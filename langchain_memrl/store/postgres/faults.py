"""What goes wrong with PostgreSQL, said in this package's words."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout

from langchain_memrl.errors import StoreBusyError, StoreError

AGAIN = (errors.SerializationFailure, errors.DeadlockDetected, errors.LockNotAvailable)


@contextmanager
def translated(place: str, seconds: float) -> Iterator[None]:
    """Turn errors about the bank at `place` into ours; `seconds`: how long it was tried.

    Only the first line of what the server says is passed on: its details quote rows.

    Raises:
        StoreBusyError: Calling again helps.
        StoreError: It does not.
    """
    try:
        yield
    except PoolClosed as error:
        raise StoreError(f"the memory bank {place} is closed; open it again") from error
    except PoolTimeout:
        raise StoreBusyError(
            f"{place} gave no connection for {seconds:g} s: the server is away, or every "
            "connection is in use; call again"
        ) from None
    except AGAIN as error:
        raise StoreBusyError(
            f"{place} has been locked by another connection ({told(error)}); nothing of this call "
            "was written, call again"
        ) from None
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise StoreBusyError(
            f"{place}: the connection was lost or refused ({told(error)}); nothing is half "
            "done: call again, with the same episode id it counts once"
        ) from None
    except psycopg.Error as error:
        raise StoreError(f"{place}: {told(error)}") from None


def told(error: psycopg.Error) -> str:
    """The first line of what the server, or the driver, says."""
    text = error.diag.message_primary or str(error)
    return " ".join(text.split("\n", 1)[0].split())
