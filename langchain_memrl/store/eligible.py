"""Which memories of a namespace a recall may find, and which intents own one of them."""

import numpy as np

from langchain_memrl.store.base import Ids
from langchain_memrl.store.database import Database
from langchain_memrl.store.filter_sql import Clause


def live(clause: Clause | None, *, untrusted: bool) -> Clause:
    """The memories that a filter lets through, without the disabled ones and without quarantine."""
    seen = "m.disabled = 0" if untrusted else "m.disabled = 0 AND m.trust <> 'untrusted'"
    return Clause(seen, ()) if clause is None else Clause(f"{seen} AND {clause.sql}", clause.values)


def wanted(
    db: Database, namespace: str, clause: Clause | None, *, untrusted: bool
) -> Clause | None:
    """The same, or None where that is every memory of the namespace."""
    if clause is None and not _some_hidden(db, namespace):
        return None
    return live(clause, untrusted=untrusted)


def _some_hidden(db: Database, namespace: str) -> bool:
    """Whether a namespace holds a memory that not every recall may find."""
    sql = (
        "SELECT 1 FROM memories WHERE namespace = ? AND (disabled = 1 OR trust = 'untrusted') "
        "AND intent_id > 0 LIMIT 1"
    )
    return db.execute(sql, (namespace,)).fetchone() is not None


def owners(db: Database, namespace: str, clause: Clause) -> Ids:
    """The intents that own such a memory."""
    found = db.execute(
        "SELECT DISTINCT m.intent_id FROM memories m JOIN experiences e ON e.seq = m.seq "
        f"WHERE m.namespace = ? AND {clause.sql} ORDER BY 1",
        (namespace, *clause.values),
    ).fetchall()
    return np.array(found, dtype=np.int64).reshape(-1)
