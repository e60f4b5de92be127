"""Bare PostgreSQL: what the bench measures a bank on a server beside."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import psycopg
from psycopg import sql

from langchain_memrl.store.embedded.bare import RECALL_BYTES
from langchain_memrl.store.postgres.address import parse_address
from langchain_memrl.store.postgres.connection import Connection

TABLES = (
    "CREATE TABLE q (id INTEGER PRIMARY KEY, q DOUBLE PRECISION, updates INTEGER)",
    "CREATE TABLE history (memory INTEGER, reward DOUBLE PRECISION, step DOUBLE PRECISION)",
    "CREATE TABLE ledger (episode TEXT PRIMARY KEY, body TEXT)",
)


class BarePostgres:
    """One transaction with the rows that the same call of a bank needs, and no more.

    The rows of a call go in one batch, so a transaction is three round trips.
    """

    def __init__(self, raw: Connection, memories: int = 1000) -> None:
        self._db = raw
        self._memories = memories
        for table in TABLES:
            raw.execute(table)
        with raw.cursor() as cursor:
            cursor.executemany("INSERT INTO q VALUES (%s, 0, 0)", [(n,) for n in range(memories)])

    @classmethod
    @contextmanager
    def open(cls, location: str) -> Iterator[Self]:
        """A new schema with the tables; dropped afterwards, like the bank's own schema."""
        address = parse_address(location)
        bare = sql.Identifier(f"{address.schema}_bare")
        with psycopg.connect(address.conninfo, autocommit=True) as raw:
            raw.execute(sql.SQL("CREATE SCHEMA {}").format(bare))
            try:
                raw.execute(sql.SQL("SET search_path TO {}").format(bare))
                yield cls(raw)
            finally:
                for name in (bare, sql.Identifier(address.schema)):
                    raw.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(name))

    def reward(self, number: int, count: int) -> None:
        """Move Q of `count` memories."""
        ids = [((number * count + place) % self._memories,) for place in range(count)]
        with self._db.transaction(), self._db.cursor() as cursor:
            cursor.executemany(
                "UPDATE q SET q = q + .3 * (1 - q), updates = updates + 1 WHERE id = %s", ids
            )
            cursor.executemany("INSERT INTO history VALUES (%s, 1, .3)", ids)
            cursor.execute("INSERT INTO ledger VALUES (%s, '')", (f"reward {count} {number}",))

    def record(self, number: int) -> None:
        """Keep what a recall showed."""
        body = (f"recall {number}", "x" * RECALL_BYTES)
        with self._db.transaction():
            self._db.execute("INSERT INTO ledger VALUES (%s, %s)", body)
