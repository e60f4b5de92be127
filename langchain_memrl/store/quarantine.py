"""Trust: what a new memory starts with, and how one leaves quarantine.

No memory is more trusted than what it was made of, and none becomes trusted by being rewritten. One
in quarantine leaves it when enough episodes that were shown it succeeded; it goes back when such a
reward is revised.
"""

from collections.abc import Sequence

from langchain_memrl.config import LearningConfig
from langchain_memrl.errors import MemoryNotFoundError
from langchain_memrl.store.base import NewMemory
from langchain_memrl.store.database import Database
from langchain_memrl.store.meta import trust_rules
from langchain_memrl.store.recalls import shows_untrusted, was_shown_untrusted
from langchain_memrl.store.rows import DOCUMENT, batches, find_memories, marks, seal
from langchain_memrl.types import Trust


def first_trust(db: Database, new: NewMemory, episode: int) -> Trust:
    """What a new memory starts with.

    What the episode was shown counts as it was trusted then: its own reward may have released it
    meanwhile, and it may have been forgotten.

    Args:
        db: The connection.
        new: The memory; it vouches for itself, or its source does.
        episode: The episode that writes it.

    Raises:
        MemoryNotFoundError: It is made of a memory that does not exist here.
    """
    inputs = find_memories(db, new.namespace, new.derived_from)
    missing = [id for id in new.derived_from if id not in inputs]
    if missing:
        raise MemoryNotFoundError(
            f"derived_from names {missing}, which do not exist in namespace {new.namespace!r}"
        )
    trusted = trust_rules(db).trusts(new.source) if new.trusted is None else new.trusted
    made_of_trusted = all(one.trust == "trusted" for one in inputs.values())
    doubted = was_shown_untrusted(db, episode) or shows_untrusted(
        db, new.namespace, new.parents or ()
    )
    return "trusted" if trusted and made_of_trusted and not doubted else "untrusted"


def review(db: Database, memories: Sequence[int], learning: LearningConfig) -> None:
    """Let memories leave quarantine, or put them back, by the rewards that they have now."""
    needed = 0
    for part in batches(memories):
        doubted = db.execute(
            "SELECT m.seq, m.trust, e.episode_id FROM memories m JOIN experiences e "
            f"ON e.seq = m.seq WHERE m.seq IN ({marks(part)}) AND m.trust <> 'trusted'",
            part,
        ).fetchall()
        for memory, trust, writer in doubted:
            needed = needed or trust_rules(db).release_after
            enough = _successes(db, memory, writer, learning) >= needed
            set_trust(db, memory, trust, "released" if enough else "untrusted")


def _successes(db: Database, memory: int, writer: str, learning: LearningConfig) -> int:
    """How many episodes succeeded that were shown a memory and did not write it."""
    (count,) = db.execute(
        "SELECT count(*) FROM q_history h JOIN episodes p ON p.seq = h.episode "
        "WHERE h.memory = ? AND h.reward > ? AND p.episode_id <> ?",
        (memory, sum(learning.reward_range) / 2, writer),
    ).fetchone()
    return int(count)


def set_trust(db: Database, memory: int, before: str, after: Trust) -> None:
    """Change what a memory is trusted with."""
    if before != after:
        db.execute("UPDATE memories SET trust = ? WHERE seq = ?", (after, memory))
        seal(db, memory)


def release(db: Database, namespace: str, id: str) -> bool:
    """Trust a memory because a person says so; whether it exists."""
    found = find_memories(db, namespace, [id]).get(id)  # which compares its checksum
    if found is None or found.source == DOCUMENT:
        return found is not None
    (memory,) = db.execute("SELECT seq FROM memories WHERE id = ?", (id,)).fetchone()
    set_trust(db, memory, found.trust, "trusted")
    return True
