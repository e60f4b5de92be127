"""Rows to records and back: intents, memories, episodes.

A `+` before a column keeps SQLite from using that column's index: an id is always the faster way.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from langchain_memrl.core.calibration import Calibration, calibrate, is_due, sample_positions
from langchain_memrl.errors import StoreCorruptError
from langchain_memrl.store.base import NewMemory, Vector
from langchain_memrl.store.counters import count_intents
from langchain_memrl.store.database import Database
from langchain_memrl.store.encoding import (
    RESTORE,
    check,
    checksum,
    digest,
    load,
    to_blob,
    to_time,
    to_vector,
)
from langchain_memrl.store.filter_sql import Clause
from langchain_memrl.store.meta import fingerprint, next_change
from langchain_memrl.types import Episode, Memory, Trust

BATCH = 500
EVERY = 2**62
"""As a limit: all of them."""
DOCUMENTS = 0
"""The intent of every document. Other retrievers find documents, so it has no namespace and no
vector; `id > 0` are the intents that this bank finds."""
DOCUMENT = "document"
"""Its text, and the source of the memories that it owns."""
MEMORY_SQL = """
    SELECT m.id, m.namespace, i.text, e.lesson, e.trajectory, m.outcome, m.q, m.updates,
           m.selections, e.parents, e.derived_from, e.episode_id, m.source, m.trust,
           m.created_at, e.updated_at, m.disabled, m.pinned, e.metadata, m.writer, e.checksum
    FROM memories m JOIN experiences e ON e.seq = m.seq JOIN intents i ON i.id = m.intent_id
"""


def utc_now() -> datetime:
    """The current time, aware."""
    return datetime.now(UTC)


def stamp(now: datetime) -> str:
    """A time as stored: UTC, microseconds, so that text order is time order."""
    return now.astimezone(UTC).isoformat(timespec="microseconds")


def marks(values: Sequence[Any]) -> str:
    """Placeholders for an IN list."""
    return ",".join("?" * len(values))


def batches(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Slices small enough for one statement."""
    for start in range(0, len(values), BATCH):
        yield values[start : start + BATCH]


def memory_checksum(row: Sequence[Any]) -> int:
    """The checksum of a row of `MEMORY_SQL`: all but the numbers and marks that come and go."""
    return checksum(*row[:6], *row[9:16], row[18], row[19])


def seal(db: Database, seq: int) -> None:
    """Keep the checksum of a memory that was just written."""
    row = db.execute(f"{MEMORY_SQL} WHERE m.seq = ?", (seq,)).fetchone()
    db.execute("UPDATE experiences SET checksum = ? WHERE seq = ?", (memory_checksum(row), seq))


def to_memory(row: tuple[Any, ...]) -> Memory:
    """A row of `MEMORY_SQL`, whose columns stand in the order of the fields.

    Raises:
        StoreCorruptError: It does not fit its checksum.
    """
    if memory_checksum(row) != row[-1]:
        raise StoreCorruptError(f"memory {row[0]!r} does not fit its checksum; {RESTORE}")
    values = list(row[:-1])  # in the order of Memory's own fields
    values[9:11] = _ids(row[9]), _ids(row[10])
    values[14:16] = to_time(row[14]), to_time(row[15])
    values[16:18] = bool(row[16]), bool(row[17])
    values[18] = {} if row[18] == "{}" else json.loads(row[18])
    return Memory(*values)


def _ids(text: str) -> tuple[str, ...]:
    return () if text == "[]" else tuple(json.loads(text))


def find_memories(db: Database, namespace: str, ids: Sequence[str]) -> dict[str, Memory]:
    """Those of the ids that exist in this namespace."""
    found: dict[str, Memory] = {}
    for part in batches(ids):
        sql = f"{MEMORY_SQL} WHERE m.id IN ({marks(part)}) AND +m.namespace = ?"
        for row in db.execute(sql, (*part, namespace)):
            found[row[0]] = to_memory(row)
    return found


def page_of_memories(
    db: Database, namespace: str, clause: Clause, before: int, limit: int
) -> tuple[list[Memory], int]:
    """Memories older than `before`, newest first, and the number to continue with."""
    sql = MEMORY_SQL.replace("SELECT m.id", "SELECT m.seq, m.id", 1)
    rows = db.execute(
        f"{sql} WHERE m.namespace = ? AND m.seq < ? AND {clause.sql} ORDER BY m.seq DESC LIMIT ?",
        (namespace, before, *clause.values, limit),
    ).fetchall()
    return [to_memory(row[1:]) for row in rows], rows[-1][0] if rows else 0


def find_intent(db: Database, namespace: str, text: str) -> tuple[int, Vector] | None:
    """Id and unit vector of a text that is already an intent.

    Raises:
        StoreCorruptError: The vector does not fit its checksum.
    """
    row = db.execute(
        "SELECT id, vector, checksum FROM intents WHERE namespace = ? AND digest = ?",
        (namespace, digest(text)),
    ).fetchone()
    return None if row is None else (row[0], checked_vector(row[0], namespace, *row[1:]))


def checked_vector(id: int, namespace: str, blob: bytes, kept: int) -> Vector:
    """An intent's unit vector.

    Raises:
        StoreCorruptError: It does not fit its checksum.
    """
    check(f"the vector of intent {id}", kept, namespace, blob)
    return to_vector(blob)


def insert_memory(
    db: Database, new: NewMemory, vector: Vector | None, q_init: float, trust: Trust, now: str
) -> None:
    """Write one memory, and its intent where that is new; a document comes without a vector."""
    if vector is None:
        intent_id = insert_documents_intent(db)
    else:
        known = find_intent(db, new.namespace, new.intent)
        intent_id = known[0] if known else _insert_intent(db, new, vector)
    (seq,) = db.execute(
        "INSERT INTO memories (id, namespace, intent_id, q_init, q, outcome, source, trust, "
        "writer, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq",
        (
            *(new.id, new.namespace, intent_id, q_init, q_init, new.outcome, new.source),
            *(trust, new.writer, now),
        ),
    ).fetchone()
    parents, metadata = json.dumps(new.parents or ()), json.dumps(new.metadata, ensure_ascii=False)
    derived = json.dumps(new.derived_from)
    texts = (new.id, new.namespace, new.intent, new.lesson, new.trajectory, new.outcome)
    origin = (parents, derived, new.episode_id, new.source, trust, now, now)
    db.execute(
        "INSERT INTO experiences (seq, episode_id, parents, derived_from, updated_at, "
        "metadata, lesson, trajectory, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            seq,
            new.episode_id,
            parents,
            derived,
            now,
            metadata,
            new.lesson,
            new.trajectory,
            checksum(*texts, *origin, metadata, new.writer),  # see `memory_checksum`
        ),
    )


def insert_documents_intent(db: Database) -> int:
    """Write the intent of documents unless it is there; its change 0 is older than any other."""
    db.execute(
        "INSERT INTO intents (id, namespace, digest, text, vector, checksum, change) "
        "VALUES (?, '', ?, ?, ?, ?, 0) ON CONFLICT DO NOTHING",
        (DOCUMENTS, digest(DOCUMENT), DOCUMENT, b"", checksum("", b"")),
    )
    return DOCUMENTS


def _insert_intent(db: Database, new: NewMemory, vector: Vector) -> int:
    blob, key = to_blob(vector), digest(new.intent)
    (id,) = db.execute(
        "INSERT INTO intents (namespace, digest, text, vector, checksum, change) "
        "VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
        (new.namespace, key, new.intent, blob, checksum(new.namespace, blob), next_change(db)),
    ).fetchone()
    count = count_intents(db, new.namespace)
    if is_due(count):
        calibrate_namespace(db, new.namespace, count)
    return int(id)


def calibrate_namespace(db: Database, namespace: str, count: int) -> None:
    """Measure the namespace's similarities and save them."""
    ids = [
        row[0]
        for row in db.execute(
            "SELECT id FROM intents WHERE namespace = ? ORDER BY id", (namespace,)
        )
    ]
    sample = [ids[position] for position in sample_positions(count)]
    sql = f"SELECT vector FROM intents WHERE id IN ({marks(sample)}) ORDER BY id"
    vectors = np.stack([to_vector(row[0]) for row in db.execute(sql, sample)])
    model = fingerprint(db)
    if model is None or model.probes.shape[1] != vectors.shape[1]:
        raise StoreCorruptError(f"the bank's embedding model does not fit its vectors; {RESTORE}")
    db.execute(
        "INSERT INTO calibrations (namespace, intents, mean, std, threshold) "
        "VALUES (?, ?, ?, ?, ?) ON CONFLICT (namespace) DO UPDATE SET intents = excluded.intents, "
        "mean = excluded.mean, std = excluded.std, threshold = excluded.threshold",
        (namespace, *calibrate(count, vectors, model.probes)),
    )


def find_calibration(db: Database, namespace: str) -> Calibration | None:
    """The namespace's similarity statistics."""
    row = db.execute(
        "SELECT intents, mean, std, threshold FROM calibrations WHERE namespace = ?", (namespace,)
    ).fetchone()
    return None if row is None else Calibration(*row)


def find_episode(db: Database, namespace: str, episode_id: str) -> Episode | None:
    """One episode with what it recorded and what was learned from it."""
    row = db.execute(
        "SELECT seq, created_at FROM episodes WHERE namespace = ? AND episode_id = ?",
        (namespace, episode_id),
    ).fetchone()
    if row is None:
        return None
    recalls = db.execute(
        "SELECT intent, memory_ids FROM recalls WHERE episode = ? ORDER BY seq", (row[0],)
    ).fetchall()
    ledger: Mapping[str, tuple[Any, ...]] = {
        entry[0]: entry[1:]
        for entry in db.execute(
            "SELECT operation, reward, memory_id FROM ledger "
            "WHERE namespace = ? AND episode_id = ?",
            (namespace, episode_id),
        )
    }
    return Episode(
        episode_id=episode_id,
        namespace=namespace,
        intents=tuple(intent for intent, _ in recalls if intent),
        memory_ids=tuple(dict.fromkeys(id for _, ids in recalls for id in load("a recall", ids))),
        reward=ledger["reinforce"][0] if "reinforce" in ledger else None,
        memory_id=ledger["remember"][1] if "remember" in ledger else None,
        created_at=to_time(row[1]),
    )
