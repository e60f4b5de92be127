"""Exactly once: the effects of an episode, each with its ledger row in the same transaction.

Graphs run their steps at least once, callers repeat calls, and processes die between two steps.
So every effect carries (namespace, episode id, operation): the first call does it, a repeat
returns what the first one did, and a different repeat is an error.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace

from langchain_memrl.config import LearningConfig
from langchain_memrl.core.learning import q_step
from langchain_memrl.errors import (
    EpisodeError,
    MemoryNotFoundError,
    RewardConflictError,
    WriteConflictError,
)
from langchain_memrl.store.base import HeldAnswer, NewMemory, RecallRecord, RewardEntry, Vector
from langchain_memrl.store.encoding import check, checksum, digest, load, to_blob, to_vector
from langchain_memrl.store.recalls import (
    count_selections,
    episode_number,
    insert_recall,
    open_episode,
    row_numbers,
)
from langchain_memrl.store.rows import batches, find_episode, insert_memory, marks
from langchain_memrl.types import Credit, Episode, Reinforcement

# --- reinforce ----------------------------------------------------------------------------------


def reinforce(
    db: sqlite3.Connection, entry: RewardEntry, learning: LearningConfig, now: str
) -> Reinforcement:
    """Move Q of what the episode showed, once, and write the answer it holds.

    A repeat is answered before the reward is compared with a range that may have changed since.
    """
    if entry.reward is None:
        return Reinforcement(entry.episode_id, None, applied=False)
    earlier = _earlier_reward(db, entry)
    if earlier is not None:
        return earlier
    learning.reward(entry.reward)
    known = find_episode(db, entry.namespace, entry.episode_id)
    ids = _rewarded_ids(db, entry, known, now)
    episode = open_episode(db, entry.namespace, entry.episode_id, now)
    numbers = row_numbers(db, entry.namespace, ids)
    moved = [id for id in ids if id in numbers]
    credits = _move(db, episode, moved, numbers, entry.reward, learning.step_size, now)
    skipped = tuple(id for id in ids if id not in numbers)
    db.execute(
        "INSERT INTO ledger (namespace, episode_id, operation, reward, skipped, created_at) "
        "VALUES (?, ?, 'reinforce', ?, ?, ?)",
        (entry.namespace, entry.episode_id, entry.reward, json.dumps(skipped), now),
    )
    written = None if known is None else known.memory_id
    if written is None and _holds_answer(db, episode):
        _write_held(db, entry.namespace, entry.episode_id, entry.raw_id, learning, now)
        written = _written_memory(db, entry.namespace, entry.episode_id)
    return Reinforcement(entry.episode_id, entry.reward, True, credits, skipped, written)


def _earlier_reward(db: sqlite3.Connection, entry: RewardEntry) -> Reinforcement | None:
    row = db.execute(
        "SELECT reward, skipped FROM ledger "
        "WHERE namespace = ? AND episode_id = ? AND operation = 'reinforce'",
        (entry.namespace, entry.episode_id),
    ).fetchone()
    if row is None:
        return None
    if row[0] != entry.reward:
        raise RewardConflictError(
            f"episode {entry.episode_id!r} was already rewarded with {row[0]:g}, "
            f"now came {entry.reward:g}; the first reward stands"
        )
    known = find_episode(db, entry.namespace, entry.episode_id)
    _check_same_ids(entry, known.memory_ids if known is not None else ())
    credits = db.execute(
        "SELECT m.id, h.before, h.after FROM q_history h JOIN memories m ON m.seq = h.memory "
        "WHERE h.episode = ? ORDER BY h.seq",
        (episode_number(db, entry.namespace, entry.episode_id),),
    )
    return Reinforcement(
        entry.episode_id,
        row[0],
        False,
        tuple(Credit(*credit) for credit in credits),
        tuple(load("a ledger row", row[1])),
        _written_memory(db, entry.namespace, entry.episode_id),
    )


def _written_memory(db: sqlite3.Connection, namespace: str, episode_id: str) -> str | None:
    """The memory an episode wrote, or None."""
    known = find_episode(db, namespace, episode_id)
    return None if known is None else known.memory_id


def _holds_answer(db: sqlite3.Connection, episode: int) -> bool:
    """Whether an episode holds an answer that waits for its reward."""
    sql = "SELECT held_intent IS NOT NULL FROM episodes WHERE seq = ?"
    return bool(db.execute(sql, (episode,)).fetchone()[0])


def _rewarded_ids(
    db: sqlite3.Connection, entry: RewardEntry, known: Episode | None, now: str
) -> tuple[str, ...]:
    """What the episode recorded; explicit ids open it, or have to be the recorded ones."""
    recorded = known.memory_ids if known is not None else ()
    if entry.ids is None:
        if known is None:
            raise EpisodeError(
                f"episode {entry.episode_id!r} is unknown in namespace {entry.namespace!r}; "
                "recall with this episode id first, or call again if that recall is under way"
            )
        return recorded
    if recorded:
        _check_same_ids(entry, recorded)
    missing = set(entry.ids) - row_numbers(db, entry.namespace, entry.ids).keys()
    if missing and not recorded:
        raise MemoryNotFoundError(
            f"no memory {sorted(missing)} in namespace {entry.namespace!r}; nothing was changed"
        )
    if not recorded:
        explicit = RecallRecord(
            entry.namespace, entry.episode_id, "", "", entry.ids, (), {}, None, False
        )
        insert_recall(db, explicit, now)
        count_selections(db, entry.namespace, entry.ids)
    return entry.ids


def _check_same_ids(entry: RewardEntry, recorded: tuple[str, ...]) -> None:
    """Explicit ids have to be those that the episode recorded."""
    if entry.ids is not None and set(recorded) != set(entry.ids):
        raise EpisodeError(
            f"episode {entry.episode_id!r} recorded other memories than the {len(entry.ids)} "
            "given; call reinforce without ids to reward the recorded ones"
        )


def _move(
    db: sqlite3.Connection,
    episode: int,
    ids: Sequence[str],
    numbers: Mapping[str, int],
    reward: float,
    step_size: float,
    now: str,
) -> tuple[Credit, ...]:
    """Each memory one step toward the reward, with one history row."""
    seqs = [numbers[id] for id in ids]
    found: dict[int, float] = {}
    for part in batches(seqs):
        found.update(db.execute(f"SELECT seq, q FROM memories WHERE seq IN ({marks(part)})", part))
    before = [found[seq] for seq in seqs]
    after = q_step(before, reward, step_size).tolist()
    db.executemany(
        "UPDATE memories SET q = ?, updates = updates + 1 WHERE seq = ?",
        zip(after, seqs, strict=True),
    )
    db.executemany(
        "INSERT INTO q_history (memory, episode, reward, before, after, step_size, created_at) "
        f"VALUES (?, {episode}, ?, ?, ?, ?, ?)",
        [
            (seq, reward, old, new, step_size, now)
            for seq, old, new in zip(seqs, before, after, strict=True)
        ],
    )
    return tuple(map(Credit, ids, before, after))


# --- remember and hold --------------------------------------------------------------------------


def remember(
    db: sqlite3.Connection, new: NewMemory, vector: Vector, learning: LearningConfig, now: str
) -> str:
    """Write an episode's memory once; the id of the one that stands is returned."""
    content = digest(
        new.intent, new.lesson, new.trajectory, new.outcome, new.source, dict(new.metadata)
    )
    row = db.execute(
        "SELECT memory_id, digest FROM ledger "
        "WHERE namespace = ? AND episode_id = ? AND operation = 'remember'",
        (new.namespace, new.episode_id),
    ).fetchone()
    if row is not None:
        if row[1] != content:
            raise WriteConflictError(
                f"episode {new.episode_id!r} already wrote memory {row[0]}; an episode writes one "
                "memory: use update to change it, or another episode id"
            )
        if not row_numbers(db, new.namespace, [row[0]]):
            raise MemoryNotFoundError(
                f"there is no memory {row[0]!r} in namespace {new.namespace!r}: episode "
                f"{new.episode_id!r} wrote it, and it was forgotten since"
            )
        return str(row[0])
    known = find_episode(db, new.namespace, new.episode_id)
    open_episode(db, new.namespace, new.episode_id, now)
    if new.parents is None and known is not None and known.memory_ids:
        new = replace(new, parents=known.memory_ids)
    insert_memory(db, new, vector, learning.q_init, now)
    db.execute(
        "INSERT INTO ledger (namespace, episode_id, operation, memory_id, digest, created_at) "
        "VALUES (?, ?, 'remember', ?, ?, ?)",
        (new.namespace, new.episode_id, new.id, content, now),
    )
    return new.id


def hold(
    db: sqlite3.Connection, answer: HeldAnswer, vector: Vector, learning: LearningConfig, now: str
) -> None:
    """Keep an episode's answer until its reward comes; write it at once if that came first."""
    number = open_episode(db, answer.namespace, answer.episode_id, now)
    sql = "SELECT held_intent, held_trajectory FROM episodes WHERE seq = ?"
    held = db.execute(sql, (number,)).fetchone()
    if held == (answer.intent, answer.trajectory):
        return
    if held != (None, None):
        raise WriteConflictError(
            f"episode {answer.episode_id!r} already holds another answer; "
            "use a new episode id for a new attempt"
        )
    known = find_episode(db, answer.namespace, answer.episode_id)
    if known is not None and known.memory_id is not None:
        return  # its memory is written, and perhaps forgotten since
    texts, blob = (answer.intent, answer.trajectory), to_blob(vector)
    db.execute(
        "UPDATE episodes SET held_intent = ?, held_trajectory = ?, held_vector = ?, "
        "held_checksum = ? WHERE seq = ?",
        (*texts, blob, checksum(*texts, blob), number),
    )
    if known is not None and known.reward is not None:
        _write_held(db, answer.namespace, answer.episode_id, answer.raw_id, learning, now)


def _write_held(
    db: sqlite3.Connection,
    namespace: str,
    episode_id: str,
    id: str,
    learning: LearningConfig,
    now: str,
) -> None:
    """Write the held answer verbatim, without a lesson, unless a memory was written already."""
    intent, trajectory, blob, kept = db.execute(
        "SELECT held_intent, held_trajectory, held_vector, held_checksum FROM episodes "
        "WHERE seq = ?",
        (episode_number(db, namespace, episode_id),),
    ).fetchone()
    known = find_episode(db, namespace, episode_id)
    if intent is None or known is None or known.memory_id is not None:
        return
    check(f"the answer held by episode {episode_id!r}", kept, intent, trajectory, blob)
    raw = NewMemory(
        id=id,
        namespace=namespace,
        intent=intent,
        lesson="",
        trajectory=trajectory,
        outcome=learning.outcome(known.reward),
        episode_id=episode_id,
        parents=known.memory_ids,
        source="agent",
        metadata={},
    )
    remember(db, raw, to_vector(blob), learning, now)
