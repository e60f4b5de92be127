"""Looking at a bank without changing it: history, counts, and whether everything agrees."""

import numpy as np

from langchain_memrl.core.learning import q_step
from langchain_memrl.reports import QChange
from langchain_memrl.store import counters
from langchain_memrl.store.database import Database
from langchain_memrl.store.encoding import checksum, digest, to_time, to_vector
from langchain_memrl.store.revising import Q_TOLERANCE
from langchain_memrl.store.rows import MEMORY_SQL, memory_checksum


def history(db: Database, namespace: str, id: str) -> list[QChange]:
    """Every step of a memory's Q, oldest first."""
    rows = db.execute(
        "SELECT p.episode_id, h.reward, h.before, h.after, h.step_size, h.created_at "
        "FROM q_history h JOIN memories m ON m.seq = h.memory JOIN episodes p ON p.seq = h.episode "
        "WHERE m.id = ? AND +m.namespace = ? ORDER BY h.seq",
        (id, namespace),
    )
    return [
        QChange(episode_id, reward, before, after, step_size, to_time(at))
        for episode_id, reward, before, after, step_size, at in rows
    ]


def file_problems(db: Database) -> list[str]:
    """What SQLite itself finds wrong with its file."""
    found = [
        f"SQLite reports: {row[0]}; restore a backup"
        for row in db.execute("PRAGMA integrity_check")
        if row[0] != "ok"
    ]
    return found + [
        f"a row of table {row[0]} points to a missing row of {row[2]}; restore a backup"
        for row in db.execute("PRAGMA foreign_key_check")
    ]


def problems(db: Database) -> list[str]:
    """Rows that do not agree, one sentence each."""
    return [*_bad_intents(db), *_bad_memories(db), *_bad_q(db), *counters.problems(db)]


def _bad_intents(db: Database) -> list[str]:
    found = []
    sizes = set()
    rows = db.execute(
        "SELECT id, namespace, text, digest, vector, checksum FROM intents WHERE id > 0"
    )
    for id, namespace, text, key, blob, kept in rows:
        if digest(text) != key:
            found.append(f"the text of intent {id} differs from its digest; restore a backup")
        if checksum(namespace, blob) != kept:
            found.append(f"the vector of intent {id} differs from its checksum; restore a backup")
        if len(blob) % 4:
            found.append(f"the vector of intent {id} is cut off; restore a backup")
            continue
        vector = to_vector(blob)
        sizes.add(vector.size)
        if not np.isfinite(vector).all() or abs(float(np.linalg.norm(vector)) - 1) > 1e-3:
            found.append(f"the vector of intent {id} is not a unit vector; restore a backup")
    if len(sizes) > 1:
        found.append(f"vectors have different dimensions {sorted(sizes)}; restore a backup")
    orphans = db.execute(
        "SELECT count(*) FROM intents i WHERE i.id > 0 AND NOT EXISTS "
        "(SELECT 1 FROM memories m WHERE m.intent_id = i.id)"
    ).fetchone()[0]
    if orphans:
        found.append(f"{orphans} intents own no memory; export and import the bank")
    return found


def _bad_memories(db: Database) -> list[str]:
    """Memories and held answers that do not fit their checksums."""
    found = [
        f"the texts of memory {row[0]} differ from their checksum; restore a backup"
        for row in db.execute(MEMORY_SQL)
        if memory_checksum(row) != row[-1]
    ]
    held = db.execute(
        "SELECT episode_id, held_checksum, held_intent, held_trajectory, held_vector "
        "FROM episodes WHERE held_intent IS NOT NULL"
    )
    return found + [
        f"the answer held by episode {episode_id} differs from its checksum; restore a backup"
        for episode_id, kept, *parts in held
        if checksum(*parts) != kept
    ]


def _bad_q(db: Database) -> list[str]:
    """Q and its counter, replayed from the history."""
    found = []
    replayed: dict[int, tuple[float, int]] = {}
    sql = "SELECT m.seq, m.q_init FROM memories m JOIN experiences e ON e.seq = m.seq"
    for seq, q_init in db.execute(sql):
        replayed[seq] = (q_init, 0)
    steps = "SELECT memory, reward, step_size FROM q_history ORDER BY seq"
    for seq, reward, step_size in db.execute(steps):
        if seq in replayed:
            q, count = replayed[seq]
            replayed[seq] = (float(q_step(q, reward, step_size)), count + 1)
    for seq, id, q, updates in db.execute("SELECT seq, id, q, updates FROM memories"):
        expected, count = replayed.get(seq, (q, -1))
        if count < 0:
            found.append(f"memory {id} has lost its text; restore a backup")
        elif abs(expected - q) > Q_TOLERANCE or count != updates:
            found.append(
                f"memory {id} has Q {q:.6f} after {updates} rewards, its history says "
                f"{expected:.6f} after {count}; restore a backup"
            )
    return found
