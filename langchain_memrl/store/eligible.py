"""Which intents of a namespace a recall may find."""

import numpy as np

from langchain_memrl.store.database import Database
from langchain_memrl.store.filter_sql import ALWAYS, Clause
from langchain_memrl.store.index import Ids


def eligible(db: Database, namespace: str, clause: Clause | None) -> Ids | None:
    """Intents that own a live memory the filter lets through; None means all of them."""
    if clause is None:
        if not some_disabled(db, namespace):
            return None
        clause = ALWAYS
    found = db.execute(
        "SELECT DISTINCT m.intent_id FROM memories m JOIN experiences e ON e.seq = m.seq "
        f"WHERE m.namespace = ? AND m.disabled = 0 AND {clause.sql} ORDER BY 1",
        (namespace, *clause.values),
    ).fetchall()
    return np.array(found, dtype=np.int64).reshape(-1)


def some_disabled(db: Database, namespace: str) -> bool:
    """Whether a namespace holds a memory that may not be recalled."""
    sql = "SELECT 1 FROM memories WHERE namespace = ? AND disabled = 1 AND intent_id > 0 LIMIT 1"
    return db.execute(sql, (namespace,)).fetchone() is not None
