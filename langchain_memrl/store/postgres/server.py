"""The rows of a bank on a PostgreSQL server: connections, transactions, locks.

Writers of one namespace take turns, writers of several do not wait for each other, and what
concerns the whole bank waits for all of them: advisory locks, held until the commit. A writer gets
its lock before it reads, so that what it reads is what its predecessor left.
"""

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from weakref import WeakKeyDictionary

import psycopg
from psycopg_pool import ConnectionPool

from langchain_memrl.errors import StoreError, StoreNotFoundError
from langchain_memrl.store.database import Database
from langchain_memrl.store.encoding import to_vector
from langchain_memrl.store.meta import count
from langchain_memrl.store.postgres.address import Address
from langchain_memrl.store.postgres.connection import (
    BoolAsNumber,
    Connection,
    PostgresConnection,
    numbers,
)
from langchain_memrl.store.postgres.faults import translated
from langchain_memrl.store.postgres.schema import (
    MIGRATIONS,
    check_readable,
    extension_schema,
    make_schema,
    migrate,
    version_of,
)

WAIT_SECONDS = 30.0
MOST_CONNECTIONS = 16
FRESH_SECONDS = 1.0
"""A connection that worked so recently is not asked again whether it still does."""
SEVERAL_STATES = psycopg.IsolationLevel.READ_COMMITTED
ONE_STATE = psycopg.IsolationLevel.REPEATABLE_READ


class Server:
    """`Rows` in one schema. Threads share it; each call takes a connection of the pool."""

    def __init__(self, address: Address, *, create: bool, read_only: bool) -> None:
        """Connect, and make or update the schema where that is allowed.

        Raises:
            StoreNotFoundError: There is no bank and none may be created.
            StoreBusyError: The server cannot be reached.
        """
        self.address = address
        self.place = address.place
        self.read_only = read_only
        self._process = os.getpid()
        self._is_closed = False
        self._has_model = False
        self._path = ""
        self._make(create=create)
        self._pool = ConnectionPool(
            address.conninfo,
            kwargs={"autocommit": True},
            min_size=1,
            max_size=MOST_CONNECTIONS,
            timeout=WAIT_SECONDS,
            configure=self._configure,
            check=_check,
            reset=_note_use,
            name="memrl",
            open=True,
        )

    def _make(self, *, create: bool) -> None:
        """Look at the schema, on a connection of its own, and bring it up to date."""
        with self._translate(), psycopg.connect(self.address.conninfo, autocommit=True) as raw:
            self._configure(raw)
            db, schema = PostgresConnection(raw), self.address.schema
            version = version_of(db, schema, self.place)
            if version < len(MIGRATIONS):
                if self.read_only or not (create or version):
                    check_readable(version, self.place)
                    raise StoreNotFoundError(f"there is no memory bank at {self.place}")
                with raw.transaction():
                    # One bank at a time: two would make the same extension.
                    self._lock(db, "schema")
                    make_schema(db, schema)
                    self._configure(raw)
                    migrate(db, version_of(db, schema, self.place))
            self._path = f'"{schema}", "{extension_schema(db) or "public"}"'

    def _configure(self, raw: Connection) -> None:
        """Prepare a new connection."""
        path = self._path or f'"{self.address.schema}", public'
        raw.execute(f"SET search_path TO {path}")
        raw.execute(f"SET lock_timeout TO '{WAIT_SECONDS:g}s'")
        if self.read_only:
            raw.execute("SET default_transaction_read_only TO on")
        raw.adapters.register_dumper(bool, BoolAsNumber)

    # --- reading --------------------------------------------------------------------------------

    @contextmanager
    def read(self, *, doubted: bool = False) -> Iterator[PostgresConnection]:
        """See `Rows.read`. A server's content is never in doubt."""
        self.check_open()
        with self._translate(), self._pool.connection() as raw:
            yield PostgresConnection(raw)

    @contextmanager
    def one_state(self, *, doubted: bool = False) -> Iterator[PostgresConnection]:
        """See `Rows.one_state`."""
        with self.read() as db:
            db.raw.isolation_level, db.raw.read_only = ONE_STATE, True
            try:
                with db.raw.transaction():
                    yield db
            finally:
                db.raw.isolation_level, db.raw.read_only = None, None

    def snapshot(self) -> AbstractContextManager[PostgresConnection]:
        """See `Rows.snapshot`."""
        return self.one_state()

    # --- writing --------------------------------------------------------------------------------

    @contextmanager
    def write(self, *namespaces: str) -> Iterator[PostgresConnection]:
        """See `Rows.write`. A bank that has no embedding model yet is written as a whole."""
        with self.alone() as db:
            db.raw.isolation_level = SEVERAL_STATES
            try:
                with db.raw.transaction():
                    self._take_turn(db, namespaces)
                    yield db
                    self.copy_vectors(db, namespaces)
            finally:
                db.raw.isolation_level = None

    def copy_vectors(self, db: Database, namespaces: tuple[str, ...]) -> None:
        """Give new intents (their ids only grow) their place among the vectors that are searched.

        None named: those of the whole bank.
        """
        for name in namespaces or (None,):
            where = "" if name is None else " AND {}.namespace = ?"
            after = f"SELECT max(v.id) FROM intent_vectors v WHERE TRUE{where.format('v')}"
            found = db.execute(
                "SELECT i.id, i.namespace, i.vector FROM intents i "
                f"WHERE i.id > greatest(0, ({after})){where.format('i')} ORDER BY i.id",
                () if name is None else (name, name),
            )
            db.executemany(
                "INSERT INTO intent_vectors (id, namespace, embedding) VALUES (?, ?, ?::vector)",
                [(id, space, numbers(to_vector(blob))) for id, space, blob in found.fetchall()],
            )

    def _take_turn(self, db: PostgresConnection, namespaces: tuple[str, ...]) -> None:
        if namespaces and self._knows_model(db):
            keys = sorted(self._key("namespace", name) for name in namespaces)
            locks = ", ".join(["pg_advisory_xact_lock(?)"] * len(keys))
            shared = "pg_advisory_xact_lock_shared(?)"
            db.execute(f"SELECT {shared}, {locks}", (self._key("bank"), *keys))
        else:
            self._lock(db, "bank")

    def _knows_model(self, db: PostgresConnection) -> bool:
        """Whether the bank has its embedding model, which it keeps from then on."""
        self._has_model = self._has_model or count(db, "generation") > 0
        return self._has_model

    @contextmanager
    def alone(self) -> Iterator[PostgresConnection]:
        """A connection outside any transaction, for what PostgreSQL does on its own."""
        with self.read() as db:
            if self.read_only:
                raise StoreError(f"{self.place} was opened read-only; open it without read_only")
            yield db

    @contextmanager
    def dedicated(self) -> Iterator[Connection]:
        """A connection of its own, for what takes long."""
        self.check_open()
        with (
            self._translate(),
            psycopg.connect(self.address.conninfo, autocommit=True) as raw,
        ):
            self._configure(raw)
            raw.execute("SET lock_timeout TO 0")
            yield raw

    def try_lock(self, db: PostgresConnection, *parts: str) -> bool:
        """Take a lock that lasts as long as the connection, unless somebody has it."""
        sql = "SELECT pg_try_advisory_lock(?)"
        return bool(db.execute(sql, (self._key(*parts),)).fetchone()[0])

    def _lock(self, db: PostgresConnection, *parts: str) -> None:
        """Wait for a lock that lasts until the transaction ends."""
        db.execute("SELECT pg_advisory_xact_lock(?)", (self._key(*parts),))

    def _key(self, *parts: str) -> int:
        """A number for a lock; equal ones of different names only wait for each other."""
        text = "\0".join((self.address.schema if parts != ("schema",) else "", *parts))
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)

    # --- open and closed ------------------------------------------------------------------------

    def check_open(self) -> None:
        """See `Rows.check_open`."""
        if os.getpid() != self._process:
            raise StoreError(
                f"the memory bank {self.place} was opened before this process was forked; "
                "open it again in the child"
            )
        if self._is_closed:
            raise StoreError(f"the memory bank {self.place} is closed; open it again")

    def close(self) -> None:
        """Close every connection. Idempotent; a forked child leaves its parent's alone."""
        if os.getpid() == self._process and not self._is_closed:
            self._is_closed = True
            self._pool.close()

    def _translate(self) -> AbstractContextManager[None]:
        return translated(self.place, WAIT_SECONDS)


_used: WeakKeyDictionary[Connection, float] = WeakKeyDictionary()


def _note_use(raw: Connection) -> None:
    """Remember that a connection has just worked."""
    _used[raw] = time.monotonic()


def _check(raw: Connection) -> None:
    """Ask a connection that was idle whether the server still answers."""
    if time.monotonic() - _used.get(raw, -FRESH_SECONDS) >= FRESH_SECONDS:
        ConnectionPool.check_connection(raw)
