"""The candidate pool of a recall: gate by similarity, then every live memory behind the gate."""

import sqlite3
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from langchain_memrl.core.calibration import Calibration
from langchain_memrl.errors import StoreCorruptError
from langchain_memrl.store import rows
from langchain_memrl.store.base import Pool, PoolQuery
from langchain_memrl.store.encoding import RESTORE
from langchain_memrl.store.filters import Clause
from langchain_memrl.store.index import Ids
from langchain_memrl.store.vectors import VectorCache

EVERYTHING = Clause("1", ())
COLUMNS = 6
N = TypeVar("N", np.int64, np.float64)


def find_pool(
    db: sqlite3.Connection, vectors: VectorCache, query: PoolQuery, clause: Clause | None
) -> Pool:
    """The `fetch_k` nearest intents above the threshold, and the memories they own."""
    calibration = vectors.calibration(db, query.namespace)
    threshold = _threshold(query, calibration)
    hits = vectors.search(
        db,
        query.namespace,
        query.vector,
        query.fetch_k,
        _allowed(db, query.namespace, clause),
        _excluded(db, query),
    )
    passed = hits.similarity >= (-np.inf if threshold is None else threshold)
    similarity = dict(zip(hits.ids[passed].tolist(), hits.similarity[passed].tolist(), strict=True))
    members = _members(db, list(similarity), clause or EVERYTHING)
    columns = list(zip(*members, strict=True)) or [()] * COLUMNS
    q_values = _numbers(columns[3], np.float64)
    if not np.isfinite(q_values).all():
        raise StoreCorruptError(f"a memory's Q is no finite number; {RESTORE}")
    return Pool(
        ids=columns[0],
        age=_numbers(columns[1], np.int64),
        similarity=np.array([similarity[intent] for intent in columns[2]], dtype=np.float64),
        q_values=q_values,
        updates=_numbers(columns[4], np.int64),
        selections=_numbers(columns[5], np.int64),
        similarity_max=float(hits.similarity[0]) if hits.similarity.size else None,
        threshold=threshold,
        calibration=calibration,
    )


def _numbers(column: Sequence[Any], kind: type[N]) -> NDArray[N]:
    """A column as an array, shape (n,).

    Raises:
        StoreCorruptError: It holds something else than numbers.
    """
    try:
        return np.array(column, dtype=kind)
    except (TypeError, ValueError, OverflowError) as error:
        raise StoreCorruptError(f"a memory's numbers are damaged ({error}); {RESTORE}") from error


def _threshold(query: PoolQuery, calibration: Calibration | None) -> float | None:
    if not isinstance(query.score_threshold, str):
        return query.score_threshold
    return None if calibration is None else calibration.threshold


def _allowed(db: sqlite3.Connection, namespace: str, clause: Clause | None) -> Ids | None:
    """Intents that own a live memory the filter lets through; None means all of them."""
    if clause is None:
        some_disabled = (
            "SELECT 1 FROM memories WHERE namespace = ? AND disabled = 1 AND intent_id > 0 LIMIT 1"
        )
        if db.execute(some_disabled, (namespace,)).fetchone() is None:
            return None
        clause = EVERYTHING
    found = db.execute(
        "SELECT DISTINCT m.intent_id FROM memories m JOIN experiences e ON e.seq = m.seq "
        f"WHERE m.namespace = ? AND m.disabled = 0 AND {clause.sql} ORDER BY 1",
        (namespace, *clause.values),
    ).fetchall()
    return np.array(found, dtype=np.int64).reshape(-1)


def _excluded(db: sqlite3.Connection, query: PoolQuery) -> Ids:
    known = [rows.find_intent(db, query.namespace, text) for text in query.exclude_intents]
    return np.array([intent[0] for intent in known if intent is not None], dtype=np.int64)


def _members(
    db: sqlite3.Connection, intents: Sequence[int], clause: Clause
) -> list[tuple[Any, ...]]:
    """Numbers of the live memories of some intents, filtered again."""
    join = "" if clause is EVERYTHING else "JOIN experiences e ON e.seq = m.seq"
    found: list[tuple[Any, ...]] = []
    for part in rows.batches(intents):
        found += db.execute(
            "SELECT m.id, m.seq, m.intent_id, m.q, m.updates, m.selections "
            f"FROM memories m {join} WHERE m.intent_id IN ({rows.marks(part)}) "
            f"AND m.disabled = 0 AND {clause.sql}",
            (*part, *clause.values),
        ).fetchall()
    return found
