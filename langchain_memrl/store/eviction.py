"""A namespace that is full: which memory makes room for a new one."""

from collections.abc import Sequence

from langchain_memrl.store.changes import forget
from langchain_memrl.store.database import Database
from langchain_memrl.store.meta import trust_rules


def make_room(db: Database, namespace: str, new: Sequence[str]) -> None:
    """Forget what is beyond the bank's `max_memories`; never the new memories, or a pinned one."""
    most = trust_rules(db).max_memories
    if most is None:
        return
    own = "FROM memories WHERE namespace = ? AND intent_id > 0"
    (count,) = db.execute(f"SELECT count(*) {own}", (namespace,)).fetchone()
    if count > most:
        victims = db.execute(
            f"SELECT id {own} AND pinned = 0 "
            "ORDER BY CASE WHEN trust = 'untrusted' THEN 0 ELSE 1 END, q, seq LIMIT ?",
            (namespace, count - most + len(new)),
        ).fetchall()
        old = [id for (id,) in victims if id not in new]
        forget(db, namespace, old[: count - most])
