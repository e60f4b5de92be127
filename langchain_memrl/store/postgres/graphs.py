"""HNSW graphs over the vectors of large namespaces: one each, made in the background.

A graph of all tenants together would be walked past everybody else's vectors; one per namespace is
as good for a namespace among millions of others' rows as for one alone. Building does not lock
anybody out, and what a broken build left behind is noticed and built again.
"""

import hashlib
import logging
import os
import threading
import time
from contextlib import suppress

import psycopg
from psycopg import sql

from langchain_memrl.errors import StoreError
from langchain_memrl.store.database import Database
from langchain_memrl.store.postgres.connection import Connection, PostgresConnection
from langchain_memrl.store.postgres.server import Server

logger = logging.getLogger("langchain_memrl")

LARGE_NUMBERS = 8_000_000
"""From so many numbers on (20,000 intents of 384) a namespace gets a graph."""
MOST_FULL, MOST_HALF = 2000, 4000
"""Up to how many dimensions pgvector makes graphs: of float32, and of float16 numbers."""
CLOSE_SECONDS = 5.0
KNOWN_SECONDS = 30.0
"""So long what was found out about a namespace is believed: a search stays right without it."""
MOST_KNOWN = 10_000


def kind_of(dimension: int) -> str:
    """The type that a graph compares."""
    return f"{'vector' if dimension <= MOST_FULL else 'halfvec'}({dimension})"


def graph_name(namespace: str, dimension: int) -> str:
    """The name of a namespace's graph."""
    digest = hashlib.blake2b(namespace.encode(), digest_size=12).hexdigest()
    return f"near_{digest}_{dimension}"


class Graphs:
    """Which namespaces have a graph, and the thread that makes them."""

    def __init__(self, server: Server, *, exact: bool) -> None:
        """Use graphs, or none where everything is to be searched exactly."""
        self._server = server
        self._exact = exact
        self._process = os.getpid()
        self._is_closed = False
        self._known: dict[tuple[str, int], tuple[bool, float]] = {}
        self._building: threading.Thread | None = None
        self._connection: Connection | None = None

    def covers(self, db: Database, namespace: str, dimension: int) -> bool:
        """Whether a namespace has a graph; a large one that has none gets one."""
        if self._exact or dimension > MOST_HALF:
            return False
        known, until = self._known.get((namespace, dimension), (False, 0.0))
        if time.monotonic() < until:
            return known
        size, valid = self._state(db, namespace, dimension)
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[namespace, dimension] = bool(valid), time.monotonic() + KNOWN_SECONDS
        is_wanted = size * dimension >= LARGE_NUMBERS or valid is False
        if is_wanted and not valid and not self._server.read_only:
            self._build_later(namespace, dimension)
        return bool(valid)

    def _state(self, db: Database, namespace: str, dimension: int) -> tuple[int, bool | None]:
        """How many intents there are, and whether the graph is usable; None: there is none."""
        row = db.execute(
            "SELECT c.intents, x.indisvalid FROM counters c LEFT JOIN pg_index x "
            "ON x.indexrelid = to_regclass(?) WHERE c.namespace = ?",
            (self._qualified(namespace, dimension), namespace),
        ).fetchone()
        return (0, None) if row is None else (row[0], row[1])

    def _qualified(self, namespace: str, dimension: int) -> str:
        return f"{self._server.address.schema}.{graph_name(namespace, dimension)}"

    # --- building -------------------------------------------------------------------------------

    def _build_later(self, namespace: str, dimension: int) -> None:
        if self._building is None or not self._building.is_alive():
            self._building = threading.Thread(
                target=self._build_quietly, args=(namespace, dimension), daemon=True
            )
            self._building.start()

    def _build_quietly(self, namespace: str, dimension: int) -> None:
        """Build in a thread; what goes wrong is told, and tried again by a later recall."""
        try:
            self.build(namespace, dimension)
        except (psycopg.Error, StoreError) as error:
            if not self._is_closed:
                logger.warning("a vector graph was not built (%s); searches stay exact", error)

    def build(self, namespace: str, dimension: int) -> None:
        """Build the graph of a namespace, unless it is there or somebody builds it."""
        with self._server.dedicated() as raw:
            self._connection, db = raw, PostgresConnection(raw)
            name = graph_name(namespace, dimension)
            try:
                if self._server.try_lock(db, "graph", namespace):
                    _, valid = self._state(db, namespace, dimension)
                    if valid is False:
                        _run(raw, "DROP INDEX CONCURRENTLY IF EXISTS {}", sql.Identifier(name))
                    if not valid:
                        _create(raw, name, namespace, dimension)
                    self._known.pop((namespace, dimension), None)  # what failed is tried later
            finally:
                self._connection = None

    def build_all(self, dimension: int) -> None:
        """Build what is missing, for every large namespace, now."""
        if self._exact or dimension > MOST_HALF:
            return
        with self._server.read() as db:
            large = db.execute(
                "SELECT namespace FROM counters WHERE intents * ? >= ? AND namespace <> ''",
                (dimension, LARGE_NUMBERS),
            ).fetchall()
        for (namespace,) in large:
            self.build(namespace, dimension)

    def drop_all(self, db: Database) -> None:
        """Drop every graph, in the caller's transaction."""
        names = db.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = ? "
            "AND tablename = 'intent_vectors' AND indexdef LIKE '%USING hnsw%'",
            (self._server.address.schema,),
        ).fetchall()
        for (name,) in names:
            db.execute(f'DROP INDEX "{name}"')

    def close(self) -> None:
        """Stop building. What is left of it is noticed by the next recall.

        A forked child leaves its parent's alone.
        """
        if os.getpid() != self._process:
            return
        self._is_closed = True
        connection, building = self._connection, self._building
        if connection is not None:
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=CLOSE_SECONDS)
        if building is not None:
            building.join(CLOSE_SECONDS)


def _create(raw: Connection, name: str, namespace: str, dimension: int) -> None:
    family = "vector" if dimension <= MOST_FULL else "halfvec"
    _run(
        raw,
        f"CREATE INDEX CONCURRENTLY {{}} ON intent_vectors USING hnsw "
        f"((embedding::{kind_of(dimension)}) {family}_ip_ops) WHERE namespace = {{}}",
        sql.Identifier(name),
        sql.Literal(namespace),
    )


def _run(raw: Connection, statement: str, *parts: sql.Composable) -> None:
    raw.execute(sql.SQL(statement).format(*parts))
