"""Exactly once: the effects of an episode, each with its ledger row in the same transaction.

Graphs run their steps at least once, callers repeat calls, and processes die between two steps.
So every effect carries (namespace, episode id, operation): the first call does it, a repeat
returns what the first one did, and a different repeat is an error.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from langchain_memrl.config import LearningConfig
from langchain_memrl.core.learning import q_step
from langchain_memrl.errors import (
    EpisodeError,
    MemoryNotFoundError,
    RewardConflictError,
)
from langchain_memrl.store import meta, revising
from langchain_memrl.store.base import RecallRecord, RewardEntry
from langchain_memrl.store.citations import check_same_citations, citations, cited, cited_digest
from langchain_memrl.store.database import Database
from langchain_memrl.store.encoding import load
from langchain_memrl.store.quarantine import review
from langchain_memrl.store.recalls import (
    count_selections,
    early_reward,
    episode_number,
    insert_recall,
    open_episode,
    row_numbers,
)
from langchain_memrl.store.rows import batches, find_episode, marks
from langchain_memrl.store.writing import holds_answer, write_held, written_memory
from langchain_memrl.types import Credit, Episode, Reinforcement


def reinforce(
    db: Database, entry: RewardEntry, learning: LearningConfig, now: str
) -> Reinforcement:
    """Move Q of what the episode showed, once, and write the answer it holds.

    A repeat is answered before the reward is compared with a range that may have changed since.
    """
    if entry.reward is None:
        return Reinforcement(entry.episode_id, None, applied=False)
    standing = _standing_reward(db, entry)
    if standing is not None:
        return _again(db, entry, standing, learning, now)
    learning.reward(entry.reward)
    known = find_episode(db, entry.namespace, entry.episode_id)
    if known is None and entry.early and entry.ids is None and entry.cited is None:
        revising.keep_early(db, entry, now)
        return Reinforcement(entry.episode_id, entry.reward, applied=False, early=True)
    ids = cited(entry, _rewarded_ids(db, entry, known, now))
    episode = open_episode(db, entry.namespace, entry.episode_id, now)
    numbers = row_numbers(db, entry.namespace, ids)
    moved = [id for id in ids if id in numbers]
    credits = _move(db, episode, moved, numbers, entry.reward, learning, now)
    skipped = tuple(id for id in ids if id not in numbers)
    db.execute(
        "INSERT INTO ledger (namespace, episode_id, operation, reward, skipped, digest, "
        "created_at) VALUES (?, ?, 'reinforce', ?, ?, ?, ?)",
        (
            entry.namespace,
            entry.episode_id,
            entry.reward,
            json.dumps(skipped),
            cited_digest(entry, ids),
            now,
        ),
    )
    written = None if known is None else known.memory_id
    if written is None and holds_answer(db, episode):
        write_held(db, entry.namespace, entry.episode_id, entry.raw_id, learning, now)
        written = written_memory(db, entry.namespace, entry.episode_id)
    return Reinforcement(entry.episode_id, entry.reward, True, credits, skipped, written)


def _standing_reward(db: Database, entry: RewardEntry) -> float | None:
    """The reward that an episode has, or None."""
    row = db.execute(
        "SELECT reward FROM ledger "
        "WHERE namespace = ? AND episode_id = ? AND operation = 'reinforce'",
        (entry.namespace, entry.episode_id),
    ).fetchone()
    return None if row is None else float(row[0])


def _again(
    db: Database,
    entry: RewardEntry,
    standing: float,
    learning: LearningConfig,
    now: str,
) -> Reinforcement:
    """A repeat changes nothing, a revision replaces the reward, anything else is a conflict."""
    repeated = standing == entry.reward
    if not repeated and not entry.revise and not revising.was_replaced(db, entry):
        raise RewardConflictError(
            f"episode {entry.episode_id!r} was already rewarded with {standing:g}, "
            f"now came {entry.reward:g}; the first reward stands, revise=True replaces it"
        )
    known = find_episode(db, entry.namespace, entry.episode_id)
    recorded = known.memory_ids if known is not None else ()
    _check_same_ids(entry, recorded)
    check_same_citations(db, entry, recorded)
    if repeated or not entry.revise:
        return _result(db, entry, standing)
    revising.revise(db, entry, standing, learning, now)
    return replace(_result(db, entry, entry.reward), applied=True, revised_from=standing)


def _result(db: Database, entry: RewardEntry, standing: float | None) -> Reinforcement:
    """What stands for an episode that was rewarded."""
    (skipped,) = db.execute(
        "SELECT skipped FROM ledger "
        "WHERE namespace = ? AND episode_id = ? AND operation = 'reinforce'",
        (entry.namespace, entry.episode_id),
    ).fetchone()
    credits = db.execute(
        "SELECT m.id, h.before, h.after FROM q_history h JOIN memories m ON m.seq = h.memory "
        "WHERE h.episode = ? ORDER BY h.seq",
        (episode_number(db, entry.namespace, entry.episode_id),),
    )
    return Reinforcement(
        entry.episode_id,
        standing,
        False,
        tuple(Credit(*credit) for credit in credits),
        tuple(load("a ledger row", skipped)),
        written_memory(db, entry.namespace, entry.episode_id),
    )


def _rewarded_ids(
    db: Database, entry: RewardEntry, known: Episode | None, now: str
) -> tuple[str, ...]:
    """What the episode recorded; explicit ids open it, or have to be the recorded ones."""
    recorded = known.memory_ids if known is not None else ()
    if entry.ids is None:
        if known is None:
            raise EpisodeError(
                f"episode {entry.episode_id!r} is unknown in namespace {entry.namespace!r}; "
                "recall with this episode id first; early=True lets the reward wait for it"
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
    db: Database,
    episode: int,
    ids: Sequence[str],
    numbers: Mapping[str, int],
    reward: float,
    learning: LearningConfig,
    now: str,
) -> tuple[Credit, ...]:
    """Each memory one step toward the reward, with one history row."""
    seqs = [numbers[id] for id in ids]
    found: dict[int, float] = {}
    for part in batches(seqs):
        found.update(db.execute(f"SELECT seq, q FROM memories WHERE seq IN ({marks(part)})", part))
    before = [found[seq] for seq in seqs]
    after = q_step(before, reward, learning.step_size).tolist()
    db.executemany(
        "UPDATE memories SET q = ?, updates = updates + 1 WHERE seq = ?",
        zip(after, seqs, strict=True),
    )
    db.executemany(
        "INSERT INTO q_history (memory, episode, reward, before, after, step_size, created_at) "
        f"VALUES (?, {episode}, ?, ?, ?, ?, ?)",
        [
            (seq, reward, old, new, learning.step_size, now)
            for seq, old, new in zip(seqs, before, after, strict=True)
        ],
    )
    review(db, seqs, learning)
    return tuple(map(Credit, ids, before, after))


def settle(
    db: Database,
    namespace: str,
    episode_id: str,
    now: str,
    *,
    shown: Sequence[str] = (),
    raw_id: str = "",
) -> None:
    """Apply the reward that came before its episode was known, if there is one.

    What a later recall of such an episode shows gets the reward that stands by then.

    Args:
        db: The connection.
        namespace: The episode's.
        episode_id: The episode.
        now: The time.
        shown: What was just recorded.
        raw_id: Names the memory of an answer that the episode holds.
    """
    reward = early_reward(db, namespace, episode_id)
    if reward is None:
        return
    learning = meta.learning(db)
    entry = RewardEntry(namespace, episode_id, reward, None, raw_id)
    standing = _standing_reward(db, entry)
    low, high = learning.reward_range
    if standing is None:
        if low <= reward <= high:  # else the range was changed since: it waits on
            reinforce(db, entry, learning, now)
        return
    if citations(db, entry) is not None:
        return  # somebody said what was used, and that was not shown yet
    episode = episode_number(db, namespace, episode_id)
    moved = "SELECT m.id FROM q_history h JOIN memories m ON m.seq = h.memory WHERE h.episode = ?"
    known = {row[0] for row in db.execute(moved, (episode,))}
    numbers = row_numbers(db, namespace, shown)
    fresh = [id for id in shown if id in numbers and id not in known]
    _move(db, episode, fresh, numbers, standing, learning, now)
