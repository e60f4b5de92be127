"""Episodes and what their recalls showed: only what is recorded here is ever rewarded."""

import json
from collections.abc import Mapping, Sequence

from langchain_memrl.errors import EpisodeError
from langchain_memrl.store.base import RecallRecord
from langchain_memrl.store.database import Database
from langchain_memrl.store.documents import register
from langchain_memrl.store.encoding import digest, load
from langchain_memrl.store.rows import batches, find_episode, marks
from langchain_memrl.types import Candidate

QUARANTINE = "quarantine"
"""Among the settings of a recall: it showed a memory that was in quarantine then."""


def open_episode(db: Database, namespace: str, episode_id: str, now: str) -> int:
    """The episode's row number; the row is made where it is new."""
    made = db.execute(
        "INSERT INTO episodes (namespace, episode_id, created_at) VALUES (?, ?, ?) "
        "ON CONFLICT DO NOTHING RETURNING seq",
        (namespace, episode_id, now),
    ).fetchone()
    return episode_number(db, namespace, episode_id) if made is None else int(made[0])


def episode_number(db: Database, namespace: str, episode_id: str) -> int:
    """The episode's row number, 0 where it is unknown."""
    row = db.execute(
        "SELECT seq FROM episodes WHERE namespace = ? AND episode_id = ?", (namespace, episode_id)
    ).fetchone()
    return 0 if row is None else int(row[0])


def early_reward(db: Database, namespace: str, episode_id: str) -> float | None:
    """The reward that came before its episode was known, or None."""
    row = db.execute(
        "SELECT reward FROM ledger WHERE namespace = ? AND episode_id = ? AND operation = 'early'",
        (namespace, episode_id),
    ).fetchone()
    return None if row is None else float(row[0])


def row_numbers(db: Database, namespace: str, ids: Sequence[str]) -> dict[str, int]:
    """Row numbers of those ids that exist in this namespace."""
    found: dict[str, int] = {}
    for part in batches(ids):
        sql = f"SELECT id, seq FROM memories WHERE id IN ({marks(part)}) AND +namespace = ?"
        found.update(db.execute(sql, (*part, namespace)))
    return found


def shows_untrusted(db: Database, namespace: str, ids: Sequence[str]) -> bool:
    """Whether one of some memories is in quarantine."""
    return any(
        db.execute(
            f"SELECT 1 FROM memories WHERE id IN ({marks(part)}) AND +namespace = ? "
            "AND trust = 'untrusted' LIMIT 1",
            (*part, namespace),
        ).fetchone()
        for part in batches(ids)
    )


def was_shown_untrusted(db: Database, episode: int) -> bool:
    """Whether an episode was shown a memory that was in quarantine then."""
    found = db.execute("SELECT settings FROM recalls WHERE episode = ?", (episode,)).fetchall()
    return any(load("a recall", row[0]).get(QUARANTINE) for row in found)


def record(db: Database, record: RecallRecord, now: str) -> RecallRecord:
    """Write what reached an episode's prompt; a repeat for the same intent returns the first."""
    keys = record.document_keys
    earlier = find_record(db, record.namespace, record.episode_id, record.intent, keys)
    if earlier is not None:
        return earlier
    known = find_episode(db, record.namespace, record.episode_id)
    rewarded = known is not None and known.reward is not None
    if rewarded and early_reward(db, record.namespace, record.episode_id) is None:
        raise EpisodeError(
            f"episode {record.episode_id!r} was already rewarded; "
            "use a new episode id for a new task"
        )
    shown = known.memory_ids if known is not None else ()
    if keys is not None:
        register(db, record, row_numbers(db, record.namespace, [*keys]), now)
    insert_recall(db, record, now)
    fresh = [id for id in record.memory_ids if id not in shown]
    count_selections(db, record.namespace, fresh)
    return record


def insert_recall(db: Database, record: RecallRecord, now: str) -> None:
    """Write one recall of an episode, its candidates as rows of numbers.

    Explicit ids come without a recall and a task; their key is one that no task has.
    """
    episode = open_episode(db, record.namespace, record.episode_id, now)
    numbers = row_numbers(db, record.namespace, [candidate.id for candidate in record.candidates])
    rows = [
        (
            numbers[item.id],
            *(round(value, 6) for value in (item.similarity, item.q_value)),
            item.updates,
            *(round(value, 6) for value in (item.similarity_part, item.q_part)),
            *(round(value, 6) for value in (item.score, item.probability)),
        )
        for item in record.candidates
        if item.id in numbers
    ]
    settings = dict(record.settings)
    # Explicit ids come without settings; a recall that did not ask for quarantine shows none.
    asked = settings.get("untrusted", True)
    if asked and shows_untrusted(db, record.namespace, record.memory_ids):
        settings[QUARANTINE] = True
    db.execute(
        "INSERT INTO recalls (episode, recall_id, digest, intent, memory_ids, candidates, "
        "settings, similarity_max, explored, created_at, holdout, withheld) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            episode,
            record.recall_id,
            _key(record.intent, record.document_keys) if record.recall_id else digest(),
            record.intent,
            json.dumps(record.memory_ids),
            json.dumps(rows, separators=(",", ":")),
            json.dumps(settings),
            record.similarity_max,
            record.explored,
            now,
            record.holdout,
            record.withheld,
        ),
    )


def count_selections(db: Database, namespace: str, ids: Sequence[str]) -> None:
    """Count that memories reached a prompt."""
    db.executemany(
        "UPDATE memories SET selections = selections + 1 WHERE id = ? AND +namespace = ?",
        [(id, namespace) for id in ids],
    )


def _key(intent: str, document_keys: Mapping[str, str] | None) -> bytes:
    """What makes a recall of an episode the same: the task, and the documents it chose among."""
    return digest(intent) if document_keys is None else digest(intent, sorted(document_keys))


def find_record(
    db: Database,
    namespace: str,
    episode_id: str,
    intent: str,
    document_keys: Mapping[str, str] | None = None,
) -> RecallRecord | None:
    """What an episode recorded for an intent. Forgotten memories are no longer among it."""
    row = db.execute(
        "SELECT recall_id, memory_ids, candidates, settings, similarity_max, explored, holdout, "
        "withheld "
        "FROM recalls WHERE episode = ? AND digest = ?",
        (episode_number(db, namespace, episode_id), _key(intent, document_keys)),
    ).fetchone()
    if row is None:
        return None
    ids = load("a recall", row[1])
    rows = load("a recall", row[2])
    names: dict[int, str] = {}
    for part in batches([item[0] for item in rows]):
        names.update(db.execute(f"SELECT seq, id FROM memories WHERE seq IN ({marks(part)})", part))
    alive = row_numbers(db, namespace, ids)
    return RecallRecord(
        namespace=namespace,
        episode_id=episode_id,
        recall_id=row[0],
        intent=intent,
        memory_ids=tuple(id for id in ids if id in alive),
        candidates=tuple(Candidate(names[item[0]], *item[1:]) for item in rows if item[0] in names),
        settings=load("a recall", row[3]),
        similarity_max=row[4],
        explored=bool(row[5]),
        holdout=row[6],
        withheld=row[7],
        document_keys=document_keys,
    )
