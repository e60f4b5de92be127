"""What an episode writes: its memory, once, and the answer that it holds until its reward comes."""

from dataclasses import replace

from langchain_memrl.config import LearningConfig
from langchain_memrl.errors import MemoryNotFoundError, WriteConflictError
from langchain_memrl.store.base import HeldAnswer, NewMemory, Vector
from langchain_memrl.store.database import Database
from langchain_memrl.store.encoding import check, checksum, digest, to_blob, to_vector
from langchain_memrl.store.eviction import make_room
from langchain_memrl.store.quarantine import first_trust
from langchain_memrl.store.recalls import episode_number, open_episode, row_numbers
from langchain_memrl.store.rows import find_episode, insert_memory


def remember(
    db: Database, new: NewMemory, vector: Vector, learning: LearningConfig, now: str
) -> str:
    """Write an episode's memory once; the id of the one that stands is returned."""
    origin = (new.writer, new.trusted, new.derived_from)
    content = digest(
        *(new.intent, new.lesson, new.trajectory, new.outcome, new.source, dict(new.metadata)),
        *(() if origin == ("", None, ()) else (origin,)),
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
    episode = open_episode(db, new.namespace, new.episode_id, now)
    trust = first_trust(db, new, episode)
    if new.parents is None and known is not None and known.memory_ids:
        new = replace(new, parents=known.memory_ids)
    insert_memory(db, new, vector, learning.q_init, trust, now)
    db.execute(
        "INSERT INTO ledger (namespace, episode_id, operation, memory_id, digest, created_at) "
        "VALUES (?, ?, 'remember', ?, ?, ?)",
        (new.namespace, new.episode_id, new.id, content, now),
    )
    return new.id


def hold(
    db: Database, answer: HeldAnswer, vector: Vector, learning: LearningConfig, now: str
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
        "held_checksum = ?, held_writer = ? WHERE seq = ?",
        (*texts, blob, checksum(*texts, blob), answer.writer, number),
    )
    if known is not None and known.reward is not None:
        write_held(db, answer.namespace, answer.episode_id, answer.raw_id, learning, now)


def write_held(
    db: Database,
    namespace: str,
    episode_id: str,
    id: str,
    learning: LearningConfig,
    now: str,
) -> None:
    """Write the held answer verbatim, without a lesson, unless a memory was written already."""
    intent, trajectory, blob, kept, writer = db.execute(
        "SELECT held_intent, held_trajectory, held_vector, held_checksum, held_writer "
        "FROM episodes WHERE seq = ?",
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
        writer=writer,
    )
    make_room(db, namespace, [remember(db, raw, to_vector(blob), learning, now)])


def written_memory(db: Database, namespace: str, episode_id: str) -> str | None:
    """The memory an episode wrote, or None."""
    known = find_episode(db, namespace, episode_id)
    return None if known is None else known.memory_id


def holds_answer(db: Database, episode: int) -> bool:
    """Whether an episode holds an answer that waits for its reward."""
    sql = "SELECT held_intent IS NOT NULL FROM episodes WHERE seq = ?"
    return bool(db.execute(sql, (episode,)).fetchone()[0])
