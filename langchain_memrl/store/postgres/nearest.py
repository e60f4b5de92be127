"""Nearest intents through pgvector: every vector of a small namespace, a graph of a large one.

The vectors that are searched are copies of those in `intents`, in a narrow table of their own. The
server finds candidates in float32; their cosines are computed again here, in float64, from the
kept vectors. So a search without a graph gives the answers of `NumpyIndex`, ties included.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import psycopg

from langchain_memrl.core.calibration import Calibration
from langchain_memrl.core.scoring import cosines
from langchain_memrl.core.selection import nearest
from langchain_memrl.store.base import FLOAT32_SLACK, Hits, Ids, Vector
from langchain_memrl.store.database import Database
from langchain_memrl.store.filter_sql import Clause
from langchain_memrl.store.postgres.connection import Connection, numbers, translated_sql
from langchain_memrl.store.postgres.graphs import Graphs, kind_of
from langchain_memrl.store.rows import checked_vector, find_calibration

EF_SEARCH, EF_MOST = 200, 1000
"""How many candidates a walk keeps; more find more, and 1000 is the most that pgvector takes."""
SPARE = 4
"""So many times more candidates than asked for, of which the nearest are found exactly."""


class PgVectors:
    """`Nearest` over the table `intent_vectors`."""

    def __init__(self, graphs: Graphs) -> None:
        self._graphs = graphs

    def calibration(self, db: Database, namespace: str) -> Calibration | None:
        """See `Nearest.calibration`."""
        return find_calibration(db, namespace)

    def search(
        self,
        db: Database,
        namespace: str,
        query: Vector,
        limit: int,
        clause: Clause | None,
        excluded: Ids,
    ) -> Hits:
        """See `Nearest.search`."""
        rest = _Rest(clause, excluded)
        if self._graphs.covers(db, namespace, query.size):
            found = _walk(db, namespace, query, SPARE * limit, rest)
            if len(found) >= limit:
                return _nearest(found, query, limit)
        return _nearest(_scan(db, namespace, query, limit, rest), query, limit)


class _Rest:
    """What else an intent `v` has to fulfil, as SQL with its values."""

    def __init__(self, clause: Clause | None, excluded: Ids) -> None:
        self.sql = ""
        self.values: tuple[Any, ...] = ()
        if clause is not None:
            self.sql = (
                " AND EXISTS (SELECT 1 FROM memories m JOIN experiences e ON e.seq = m.seq "
                f"WHERE m.intent_id = v.id AND {clause.sql})"
            )
            self.values = clause.values
        if excluded.size:
            self.sql += " AND v.id <> ALL(?::bigint[])"
            self.values = (*self.values, excluded.tolist())


Row = tuple[int, str, bytes, int]


def _nearest(rows: Sequence[Row], query: Vector, limit: int) -> Hits:
    """The nearest of some intents, by their kept vectors."""
    if not rows:
        return Hits(np.empty(0, dtype=np.int64), np.empty(0))
    ids = np.array([row[0] for row in rows], dtype=np.int64)
    similarity = cosines(np.stack([checked_vector(*row) for row in rows]), query)
    best = nearest(similarity, ids, limit)
    return Hits(ids[best], similarity[best])


def _scan(db: Database, namespace: str, query: Vector, limit: int, rest: _Rest) -> list[Row]:
    """All that may be among the `limit` nearest, by one product each."""
    return db.execute(
        "WITH near AS MATERIALIZED (SELECT v.id, v.embedding <#> ?::vector AS distance "
        f"FROM intent_vectors v WHERE v.namespace = ?{rest.sql}), "
        "last AS (SELECT distance FROM near ORDER BY distance LIMIT 1 OFFSET ?) "
        "SELECT i.id, i.namespace, i.vector, i.checksum FROM near JOIN intents i ON i.id = near.id "
        "WHERE near.distance <= coalesce((SELECT distance FROM last) + ?, 'infinity') "
        "ORDER BY i.id",
        (numbers(query), namespace, *rest.values, limit - 1, FLOAT32_SLACK),
    ).fetchall()


def _walk(db: Database, namespace: str, query: Vector, limit: int, rest: _Rest) -> list[Row]:
    """Probably the nearest ones, along the namespace's graph.

    The values are written into the statement, so that the planner knows the graph is for them.
    """
    raw: Connection = db.raw  # type: ignore[attr-defined]
    kind = kind_of(query.size)
    statement = translated_sql(
        "SELECT i.id, i.namespace, i.vector, i.checksum FROM ("
        f"SELECT v.id FROM intent_vectors v WHERE v.namespace = ?{rest.sql} "
        f"ORDER BY (v.embedding::{kind}) <#> ?::{kind} LIMIT ?) near "
        "JOIN intents i ON i.id = near.id ORDER BY i.id"
    )
    effort = min(EF_MOST, max(EF_SEARCH, limit))
    with psycopg.ClientCursor(raw) as cursor:
        cursor.execute(
            f"SET LOCAL hnsw.ef_search = {effort}; "
            f"SET LOCAL hnsw.iterative_scan = relaxed_order; {statement}",
            (namespace, *rest.values, numbers(query), limit),
        )
        while cursor.nextset():
            pass
        return cursor.fetchall()
