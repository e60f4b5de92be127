"""The candidate pool of a recall: gate by similarity, then every live memory behind the gate."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from langchain_memrl.core.calibration import Calibration
from langchain_memrl.errors import StoreCorruptError
from langchain_memrl.store import rows
from langchain_memrl.store.base import Hits, Ids, Pool, PoolQuery, Vector
from langchain_memrl.store.database import Database
from langchain_memrl.store.eligible import live, wanted
from langchain_memrl.store.encoding import RESTORE
from langchain_memrl.store.filter_sql import Clause

COLUMNS = 6
N = TypeVar("N", np.int64, np.float64)


class Nearest(Protocol):
    """Finds the intents that are nearest to a vector."""

    def calibration(self, db: Database, namespace: str) -> Calibration | None:
        """The namespace's similarity statistics; None where it has no intent."""

    def search(
        self,
        db: Database,
        namespace: str,
        query: Vector,
        limit: int,
        clause: Clause | None,
        excluded: Ids,
    ) -> Hits:
        """The nearest intents that own a memory `clause` lets through (None: any)."""


def find_pool(db: Database, nearest: Nearest, query: PoolQuery, clause: Clause | None) -> Pool:
    """The `fetch_k` nearest intents above the threshold, and the memories they own."""
    calibration = nearest.calibration(db, query.namespace)
    threshold = _threshold(query, calibration)
    untrusted = query.untrusted
    hits = nearest.search(
        db,
        query.namespace,
        query.vector,
        query.fetch_k,
        wanted(db, query.namespace, clause, untrusted=untrusted),
        _excluded(db, query),
    )
    passed = hits.similarity >= (-np.inf if threshold is None else threshold)
    similarity = dict(zip(hits.ids[passed].tolist(), hits.similarity[passed].tolist(), strict=True))
    members = _members(
        db, list(similarity), live(clause, untrusted=untrusted), texts=clause is not None
    )
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


def _excluded(db: Database, query: PoolQuery) -> Ids:
    known = [rows.find_intent(db, query.namespace, text) for text in query.exclude_intents]
    return np.array([intent[0] for intent in known if intent is not None], dtype=np.int64)


def _members(
    db: Database, intents: Sequence[int], clause: Clause, *, texts: bool
) -> list[tuple[Any, ...]]:
    """Numbers of the live memories of some intents; `texts`: the clause asks for metadata."""
    join = "JOIN experiences e ON e.seq = m.seq" if texts else ""
    found: list[tuple[Any, ...]] = []
    for part in rows.batches(intents):
        found += db.execute(
            "SELECT m.id, m.seq, m.intent_id, m.q, m.updates, m.selections "
            f"FROM memories m {join} WHERE m.intent_id IN ({rows.marks(part)}) "
            f"AND {clause.sql}",
            (*part, *clause.values),
        ).fetchall()
    return found
