"""Open connections to a server, which threads take turns with.

A connection is made where none is free, by the thread that needs it: without a server it fails at
once and with the server's own reason, and as soon as the server is back the next call succeeds.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg.pq import TransactionStatus

from langchain_memrl.errors import StoreBusyError
from langchain_memrl.store.postgres.connection import Connection

FRESH_SECONDS = 1.0
"""A connection that worked so recently is not asked again whether it still does."""
IDLE_SECONDS = 600.0
"""After so long without use a connection is closed."""


class Pool:
    """At most so many connections; each belongs to one call at a time."""

    def __init__(self, connect: Callable[[], Connection], most: int, seconds: float) -> None:
        """Make connections with `connect`; calls wait up to `seconds` where `most` are in use."""
        self._connect = connect
        self._most = most
        self._seconds = seconds
        self._turns = threading.BoundedSemaphore(most)
        self._guard = threading.Lock()
        self._idle: deque[tuple[Connection, float]] = deque()
        self._is_closed = False

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection that works, outside any transaction.

        Raises:
            StoreBusyError: All stayed in use.
            psycopg.OperationalError: The server is away, or refuses.
        """
        if not self._turns.acquire(timeout=self._seconds):
            raise StoreBusyError(
                f"all {self._most} connections of this process were in use for "
                f"{self._seconds:g} s; nothing of this call was written, call again"
            )
        try:
            raw = self._take()
            try:
                yield raw
            finally:
                self._give_back(raw)
        finally:
            self._turns.release()

    def _take(self) -> Connection:
        """The connection that was used last, or a new one."""
        while True:
            with self._guard:
                found = self._idle.pop() if self._idle else None
            if found is None:
                return self._connect()
            raw, used = found
            if time.monotonic() - used < FRESH_SECONDS:
                return raw
            try:
                raw.execute("")
            except psycopg.Error:
                self._drop_idle()  # most likely they all broke
                raw.close()
            else:
                return raw

    def _give_back(self, raw: Connection) -> None:
        """Keep a connection for the next call, unless it broke."""
        if raw.info.transaction_status != TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                raw.rollback()
        if raw.info.transaction_status != TransactionStatus.IDLE:
            raw.close()
            self._drop_idle()
            return
        now, old = time.monotonic(), []
        with self._guard:
            if self._is_closed:
                old.append(raw)
            else:
                self._idle.append((raw, now))
                while now - self._idle[0][1] > IDLE_SECONDS:
                    old.append(self._idle.popleft()[0])
        for one in old:
            one.close()

    def _drop_idle(self) -> None:
        with self._guard:
            idle = [raw for raw, _ in self._idle]
            self._idle.clear()
        for raw in idle:
            raw.close()

    def close(self) -> None:
        """Close what is idle; what is in use is closed when it is given back."""
        with self._guard:
            self._is_closed = True
        self._drop_idle()
