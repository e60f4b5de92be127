"""After the first reward, or instead of it: revised rewards, early rewards, expired episodes.

A revised reward is put in the place of the first one, and Q is replayed from the history. So every
memory stands where it would stand had the new reward been given then: with m later updates Q moves
by `step_size * (1 - step_size)^m * (new - old)`.
"""

from collections.abc import Sequence

from langchain_memrl.config import LearningConfig
from langchain_memrl.core.learning import q_step
from langchain_memrl.errors import RewardConflictError
from langchain_memrl.store.base import RewardEntry
from langchain_memrl.store.database import Database
from langchain_memrl.store.quarantine import review
from langchain_memrl.store.recalls import early_reward, episode_number
from langchain_memrl.store.rows import EVERY, batches, find_episode, marks, seal
from langchain_memrl.types import Episode

REVISED = "revised"
"""Ledger rows `revised 1`, `revised 2` ... keep the rewards that were replaced."""
Q_TOLERANCE = 1e-9
LATER = "~"
"""Stands after every time."""


def replay(db: Database, memory: int) -> None:
    """Set Q, its counter and the steps' before and after from the history, in its order."""
    (q,) = db.execute("SELECT q_init FROM memories WHERE seq = ?", (memory,)).fetchone()
    steps = db.execute(
        "SELECT seq, reward, step_size FROM q_history WHERE memory = ? ORDER BY seq", (memory,)
    ).fetchall()
    for seq, reward, step_size in steps:
        before, q = q, float(q_step(q, reward, step_size))
        db.execute("UPDATE q_history SET before = ?, after = ? WHERE seq = ?", (before, q, seq))
    db.execute("UPDATE memories SET q = ?, updates = ? WHERE seq = ?", (q, len(steps), memory))


def was_replaced(db: Database, entry: RewardEntry) -> bool:
    """Whether a reward stood once: a late repeat of it is no conflict."""
    sql = (
        "SELECT 1 FROM ledger WHERE namespace = ? AND episode_id = ? AND reward = ? "
        "AND operation LIKE 'revised %'"
    )
    found = db.execute(sql, (entry.namespace, entry.episode_id, entry.reward)).fetchone()
    return found is not None


def revise(
    db: Database, entry: RewardEntry, old: float, learning: LearningConfig, now: str
) -> None:
    """Put a reward in the place of the one that stands.

    Raises:
        RewardError: It is outside the range.
        RewardConflictError: A later step of one of the memories follows another rule.
    """
    new = learning.reward(entry.reward)
    episode = episode_number(db, entry.namespace, entry.episode_id)
    moved = db.execute("SELECT memory, seq FROM q_history WHERE episode = ?", (episode,)).fetchall()
    for memory, seq in moved:
        _check_rule(db, memory, seq)
    db.execute("UPDATE q_history SET reward = ? WHERE episode = ?", (new, episode))
    for memory, _ in moved:
        replay(db, memory)
    review(db, [memory for memory, _ in moved], learning)
    key = (entry.namespace, entry.episode_id)
    (count,) = db.execute(
        "SELECT count(*) FROM ledger WHERE namespace = ? AND episode_id = ? "
        "AND operation LIKE 'revised %'",
        key,
    ).fetchone()
    db.execute(
        "INSERT INTO ledger (namespace, episode_id, operation, reward, created_at) "
        "VALUES (?, ?, ?, ?, ?)",
        (*key, f"{REVISED} {count + 1}", old, now),
    )
    db.execute(
        "UPDATE ledger SET reward = ? WHERE namespace = ? AND episode_id = ? "
        "AND operation = 'reinforce'",
        (new, *key),
    )
    _correct_outcome(db, entry, learning.outcome(old), learning.outcome(new), now)


def _check_rule(db: Database, memory: int, first: int) -> None:
    """Every step from `first` on has to be the one that replaying it gives."""
    steps = db.execute(
        "SELECT before, after, reward, step_size FROM q_history WHERE memory = ? AND seq >= ?",
        (memory, first),
    )
    for before, after, reward, step_size in steps:
        if abs(float(q_step(before, reward, step_size)) - after) > Q_TOLERANCE:
            (id,) = db.execute("SELECT id FROM memories WHERE seq = ?", (memory,)).fetchone()
            raise RewardConflictError(
                f"the reward cannot be revised: Q of memory {id!r} was moved by another rule "
                "since; the reward stands"
            )


def _correct_outcome(db: Database, entry: RewardEntry, old: str, new: str, now: str) -> None:
    """The outcome of the memory that the episode wrote, where it followed from the old reward."""
    known = find_episode(db, entry.namespace, entry.episode_id)
    if known is None or known.memory_id is None or old == new:
        return
    row = db.execute(
        "UPDATE memories SET outcome = ? WHERE id = ? AND +namespace = ? AND outcome = ? "
        "RETURNING seq",
        (new, known.memory_id, entry.namespace, old),
    ).fetchone()
    if row is not None:
        db.execute("UPDATE experiences SET updated_at = ? WHERE seq = ?", (now, row[0]))
        seal(db, row[0])


# --- a reward that comes before its episode -----------------------------------------------------


def keep_early(db: Database, entry: RewardEntry, now: str) -> None:
    """Keep a reward for an episode that nobody has seen yet.

    Raises:
        RewardConflictError: Another one is kept already, and this is no revision.
    """
    kept = early_reward(db, entry.namespace, entry.episode_id)
    if kept is not None and kept != entry.reward and not entry.revise:
        raise RewardConflictError(
            f"a reward of {kept:g} already waits for episode {entry.episode_id!r}, now came "
            f"{entry.reward:g}; the first one stands, revise=True replaces it"
        )
    db.execute(
        "INSERT INTO ledger (namespace, episode_id, operation, reward, created_at) "
        "VALUES (?, ?, 'early', ?, ?) ON CONFLICT (namespace, episode_id, operation) "
        "DO UPDATE SET reward = excluded.reward, created_at = excluded.created_at",
        (entry.namespace, entry.episode_id, entry.reward, now),
    )


# --- episodes that wait -------------------------------------------------------------------------


def open_episodes(
    db: Database, namespace: str, before: str | None, limit: int | None
) -> list[Episode]:
    """Episodes without a reward, oldest first; `before` is when they were first seen."""
    rows = db.execute(
        "SELECT episode_id FROM episodes WHERE namespace = ? AND open = 1 "
        "AND created_at < ? ORDER BY seq LIMIT ?",
        (namespace, before or LATER, EVERY if limit is None else limit),
    ).fetchall()
    found = (find_episode(db, namespace, row[0]) for row in rows)
    return [episode for episode in found if episode is not None]


def expire(db: Database, namespace: str, episode_ids: Sequence[str], now: str) -> None:
    """Wait for these episodes no longer, and drop the answers they hold."""
    db.executemany(
        "INSERT INTO ledger (namespace, episode_id, operation, created_at) "
        "VALUES (?, ?, 'expire', ?) ON CONFLICT DO NOTHING",
        [(namespace, id, now) for id in episode_ids],
    )
    for part in batches(episode_ids):
        db.execute(
            "UPDATE episodes SET held_intent = NULL, held_trajectory = NULL, held_vector = NULL, "
            f"held_checksum = NULL WHERE namespace = ? AND episode_id IN ({marks(part)})",
            (namespace, *part),
        )
