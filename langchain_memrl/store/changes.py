"""Changing and deleting memories. Q and history stay with a changed memory."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_memrl.store.database import Database
from langchain_memrl.store.encoding import load
from langchain_memrl.store.meta import next_change
from langchain_memrl.store.rows import batches, find_memories, marks, seal


def update(db: Database, namespace: str, id: str, changes: Mapping[str, Any], now: str) -> bool:
    """Change lesson, trajectory or metadata; whether the memory exists."""
    if not find_memories(db, namespace, [id]):  # which compares its checksum
        return False
    (seq,) = db.execute("SELECT seq FROM memories WHERE id = ?", (id,)).fetchone()
    values = {
        name: json.dumps(value, ensure_ascii=False) if name == "metadata" else value
        for name, value in changes.items()
    }
    values["updated_at"] = now
    columns = ", ".join(f"{name} = ?" for name in values)
    db.execute(f"UPDATE experiences SET {columns} WHERE seq = ?", (*values.values(), seq))
    seal(db, seq)
    return True


def mark(db: Database, namespace: str, id: str, name: str, value: bool) -> bool:
    """Set `disabled` or `pinned` of a memory; whether it exists."""
    column = {"disabled": "disabled", "pinned": "pinned"}[name]
    cursor = db.execute(
        f"UPDATE memories SET {column} = ? WHERE id = ? AND +namespace = ?", (value, id, namespace)
    )
    return cursor.rowcount == 1


def useless(db: Database, namespace: str, max_q: float, min_updates: int) -> tuple[str, ...]:
    """Memories with `Q <= max_q` after at least `min_updates` rewards that are not pinned."""
    rows = db.execute(
        "SELECT id FROM memories WHERE namespace = ? AND q <= ? AND updates >= ? AND pinned = 0 "
        "ORDER BY seq",
        (namespace, max_q, min_updates),
    )
    return tuple(row[0] for row in rows)


def family(db: Database, namespace: str, ids: Sequence[str]) -> tuple[str, ...]:
    """The ids and, transitively, the memories whose text was made from them."""
    children: dict[str, list[str]] = {}
    rows = db.execute(
        "SELECT m.id, e.derived_from FROM memories m JOIN experiences e ON e.seq = m.seq "
        "WHERE m.namespace = ? AND e.derived_from <> '[]'",
        (namespace,),
    )
    for child, sources in rows:
        for source in load("a memory", sources):
            children.setdefault(source, []).append(child)
    found = dict.fromkeys(ids)
    waiting = list(found)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found[child] = None
                waiting.append(child)
    return tuple(found)


def forget(db: Database, namespace: str, ids: Sequence[str]) -> None:
    """Delete memories, the texts of the episodes that wrote them, and intents left empty.

    Ledger rows stay: a forgotten episode is not learned a second time.
    """
    for part in batches(ids):
        where = f"WHERE m.id IN ({marks(part)}) AND +m.namespace = ?"
        values = (*part, namespace)
        episodes = db.execute(
            "SELECT p.seq FROM episodes p JOIN experiences e ON e.episode_id = p.episode_id "
            f"JOIN memories m ON m.seq = e.seq {where} AND p.namespace = m.namespace",
            values,
        ).fetchall()
        forget_episode_texts(db, [row[0] for row in episodes])
        db.execute(
            f"DELETE FROM memories WHERE seq IN (SELECT m.seq FROM memories m {where})", values
        )
    _drop_empty_intents(db, namespace)


def forget_episode_texts(db: Database, episodes: Sequence[int]) -> None:
    """Blank the task texts and held answers of episodes; ids and numbers stay."""
    for part in batches(episodes):
        db.execute(
            "UPDATE episodes SET held_intent = NULL, held_vector = NULL, held_trajectory = NULL, "
            f"held_checksum = NULL WHERE seq IN ({marks(part)})",
            part,
        )
        db.execute(f"UPDATE recalls SET intent = '' WHERE episode IN ({marks(part)})", part)


def _drop_empty_intents(db: Database, namespace: str) -> None:
    empty = (
        "FROM intents WHERE namespace = ? AND NOT EXISTS "
        "(SELECT 1 FROM memories m WHERE m.intent_id = intents.id)"
    )
    if db.dialect.counts_changes:
        db.execute(
            "INSERT INTO forgotten_intents (id, namespace, change) "
            f"SELECT id, namespace, ? {empty}",
            (next_change(db), namespace),
        )
    db.execute(f"DELETE {empty}", (namespace,))


def clear(db: Database, namespace: str) -> None:
    """Delete everything of a namespace, its ledger too."""
    db.execute("DELETE FROM memories WHERE namespace = ?", (namespace,))
    _drop_empty_intents(db, namespace)
    for table in ("episodes", "ledger", "calibrations"):
        db.execute(f"DELETE FROM {table} WHERE namespace = ?", (namespace,))
