"""The rows of a bank on a PostgreSQL server: connections, transactions, locks.

Writers of one namespace take turns, writers of several do not wait for each other, and what
concerns the whole bank waits for all of them: advisory locks, held until the commit. A writer gets
its lock before it reads, so that what it reads is what its predecessor left.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import psycopg

from langchain_memrl.errors import StoreError, StoreNotFoundError
from langchain_memrl.store.database import Database, check_usable
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
from langchain_memrl.store.postgres.pool import Pool
from langchain_memrl.store.postgres.schema import (
    MIGRATIONS,
    check_encoding,
    check_readable,
    extension_schema,
    make_schema,
    migrate,
    version_of,
)

WAIT_SECONDS = 30.0
MOST_CONNECTIONS = 16
COPIED_ROWS = 1000
SEVERAL_STATES = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
ONE_STATE = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
SETTINGS = """
    SET search_path TO {path}; SET lock_timeout TO {milliseconds};
    SET extra_float_digits TO 1; SET jit TO off; SET default_transaction_read_only TO {read_only}
"""
"""What a role or a database may have set otherwise."""


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
        self._pool = Pool(self._connect, MOST_CONNECTIONS, WAIT_SECONDS)

    def _make(self, *, create: bool) -> None:
        """Look at the schema, on a connection of its own, and bring it up to date."""
        with self._translate(), self._connect() as raw:
            check_encoding(raw, self.place)
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
                    self._find_extension(db)
                    self._configure(raw)
                    migrate(db, version_of(db, schema, self.place))
            self._find_extension(db)

    def _find_extension(self, db: PostgresConnection) -> None:
        self._path = f'"{self.address.schema}", "{extension_schema(db) or "public"}"'

    def _connect(self) -> Connection:
        """A new connection, prepared."""
        raw = psycopg.connect(self.address.conninfo, autocommit=True)
        raw.adapters.register_dumper(bool, BoolAsNumber)
        try:
            self._configure(raw)
        except BaseException:
            raw.close()
            raise
        return raw

    def _configure(self, raw: Connection) -> None:
        raw.execute(
            SETTINGS.format(
                path=self._path or f'"{self.address.schema}", public',
                milliseconds=round(1000 * WAIT_SECONDS),
                read_only="on" if self.read_only else "off",
            )
        )

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
        with self.read() as db, self._transaction(db, ONE_STATE):
            yield db

    def snapshot(self) -> AbstractContextManager[PostgresConnection]:
        """See `Rows.snapshot`."""
        return self.one_state()

    # --- writing --------------------------------------------------------------------------------

    @contextmanager
    def write(self, *namespaces: str) -> Iterator[PostgresConnection]:
        """See `Rows.write`. A bank that has no embedding model yet is written as a whole."""
        with self.alone() as db:
            if not (namespaces and self._knows_model(db)):
                namespaces = ()
            with self._transaction(db, SEVERAL_STATES, *self._turn(namespaces)):
                yield db
                if db.has_new_intents:
                    self.copy_vectors(db, namespaces)

    def copy_vectors(self, db: Database, namespaces: tuple[str, ...]) -> None:
        """Give new intents (their ids only grow) their place among the vectors that are searched.

        None named: those of the whole bank.
        """
        for name in namespaces or (None,):
            where = "" if name is None else " AND {}.namespace = ?"
            last = f"SELECT coalesce(max(v.id), 0) FROM intent_vectors v WHERE TRUE{where}"
            own = () if name is None else (name,)
            (after,) = db.execute(last.format("v"), own).fetchone()
            while after is not None:
                after = self._copy_after(db, after, where.format("i"), own)

    def _copy_after(
        self, db: Database, after: int, where: str, values: tuple[str, ...]
    ) -> int | None:
        """Copy the vectors of the next intents; the id to go on with, None where all are copied."""
        found = db.execute(
            "SELECT i.id, i.namespace, i.vector FROM intents i "
            f"WHERE i.id > ?{where} ORDER BY i.id LIMIT {COPIED_ROWS}",
            (after, *values),
        ).fetchall()
        db.executemany(
            "INSERT INTO intent_vectors (id, namespace, embedding) VALUES (?, ?, ?::vector)",
            [(id, space, numbers(to_vector(blob))) for id, space, blob in found],
        )
        return found[-1][0] if len(found) == COPIED_ROWS else None

    def _turn(self, namespaces: tuple[str, ...]) -> Iterator[str]:
        """The locks of these namespaces; none named: of the whole bank."""
        if not namespaces:
            yield f"pg_advisory_xact_lock({self._key('bank')})"
            return
        yield f"pg_advisory_xact_lock_shared({self._key('bank')})"
        for key in sorted(self._key("namespace", name) for name in namespaces):
            yield f"pg_advisory_xact_lock({key})"

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
        with self._translate(), self._connect() as raw:
            raw.execute("SET lock_timeout TO 0; SET statement_timeout TO 0")
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

    @contextmanager
    def _transaction(self, db: PostgresConnection, begin: str, *locks: str) -> Iterator[None]:
        """One transaction; it begins, and gets its locks, in one round trip.

        Raises:
            StoreError: The connection looks elsewhere: what was set for it was set for another one.
        """
        try:
            cursor = db.raw.execute(f"{begin}; SELECT {', '.join(('current_schema()', *locks))}")
            while cursor.nextset():
                pass
            self._check_schema(cursor.fetchone())
            yield
            ended = db.raw.execute("COMMIT").statusmessage
        except BaseException:
            with suppress(psycopg.Error):
                db.raw.execute("ROLLBACK")
            raise
        if ended != "COMMIT":
            raise StoreError(f"{self.place}: a statement failed; nothing of this call was written")

    def _check_schema(self, found: tuple[Any, ...] | None) -> None:
        if found is None or found[0] != self.address.schema:
            raise StoreError(
                f"{self.place}: a connection pooler mixes up sessions; let it keep one server "
                "connection per session (PgBouncer: pool_mode = session), or connect directly"
            )

    # --- open and closed ------------------------------------------------------------------------

    def check_open(self) -> None:
        """See `Rows.check_open`."""
        check_usable(self.place, self._process, closed=self._is_closed)

    def close(self) -> None:
        """Close every connection. Idempotent; a forked child leaves its parent's alone."""
        if os.getpid() == self._process and not self._is_closed:
            self._is_closed = True
            self._pool.close()

    def _translate(self) -> AbstractContextManager[None]:
        return translated(self.place)
