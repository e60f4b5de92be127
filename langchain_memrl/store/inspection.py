"""Looking at a bank without changing it: history, counts, and whether everything agrees."""

import sqlite3
from datetime import datetime

import numpy as np

from langchain_memrl.core.learning import q_step
from langchain_memrl.reports import QChange, Stats
from langchain_memrl.store.rows import count_intents, digest, to_vector

Q_TOLERANCE = 1e-9


def history(db: sqlite3.Connection, namespace: str, id: str) -> list[QChange]:
    """Every step of a memory's Q, oldest first."""
    rows = db.execute(
        "SELECT p.episode_id, h.reward, h.before, h.after, h.step_size, h.created_at "
        "FROM q_history h JOIN memories m ON m.seq = h.memory JOIN episodes p ON p.seq = h.episode "
        "WHERE m.id = ? AND +m.namespace = ? ORDER BY h.seq",
        (id, namespace),
    )
    return [
        QChange(episode_id, reward, before, after, step_size, datetime.fromisoformat(at))
        for episode_id, reward, before, after, step_size, at in rows
    ]


def stats(db: sqlite3.Connection, namespace: str) -> Stats:
    """What a namespace holds."""
    rows = db.execute(
        "SELECT q, updates, selections FROM memories WHERE namespace = ?", (namespace,)
    ).fetchall()
    q, updates, selections = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    (raw,) = db.execute(
        "SELECT count(*) FROM experiences e JOIN memories m ON m.seq = e.seq "
        "WHERE m.namespace = ? AND e.lesson = ''",
        (namespace,),
    ).fetchone()
    episodes, waiting = db.execute(
        "SELECT count(*), coalesce(sum(l.episode_id IS NULL AND (p.held_intent IS NOT NULL OR "
        "EXISTS (SELECT 1 FROM recalls r WHERE r.episode = p.seq))), 0) "
        "FROM episodes p LEFT JOIN ledger l ON l.namespace = p.namespace "
        "AND l.episode_id = p.episode_id AND l.operation = 'reinforce' WHERE p.namespace = ?",
        (namespace,),
    ).fetchone()
    size = max(len(rows), 1)
    return Stats(
        namespace=namespace,
        memories=len(rows),
        intents=count_intents(db, namespace),
        raw=raw,
        episodes=episodes,
        open_episodes=waiting,
        updates=int(updates.sum()),
        selections=int(selections.sum()),
        never_injected=int((selections == 0).sum()),
        never_rewarded=int((updates == 0).sum()),
        q_above_zero=float((q > 0).sum()) / size,
        q_at_zero=float((q == 0).sum()) / size,
        q_below_zero=float((q < 0).sum()) / size,
        q_quantiles=tuple(np.quantile(q, [0, 0.25, 0.5, 0.75, 1]).tolist()) if len(rows) else (),
    )


def problems(db: sqlite3.Connection) -> list[str]:
    """Everything in the database that does not agree, one sentence each."""
    found = [
        f"SQLite reports: {row[0]}; restore a backup"
        for row in db.execute("PRAGMA integrity_check")
        if row[0] != "ok"
    ]
    found += [
        f"a row of table {row[0]} points to a missing row of {row[2]}; restore a backup"
        for row in db.execute("PRAGMA foreign_key_check")
    ]
    return found + _bad_intents(db) + _bad_q(db)


def _bad_intents(db: sqlite3.Connection) -> list[str]:
    found = []
    sizes = set()
    for id, text, key, blob in db.execute("SELECT id, text, digest, vector FROM intents"):
        if digest(text) != key:
            found.append(f"the text of intent {id} differs from its digest; restore a backup")
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
        "SELECT count(*) FROM intents i WHERE NOT EXISTS "
        "(SELECT 1 FROM memories m WHERE m.intent_id = i.id)"
    ).fetchone()[0]
    if orphans:
        found.append(f"{orphans} intents own no memory; export and import the bank")
    return found


def _bad_q(db: sqlite3.Connection) -> list[str]:
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
