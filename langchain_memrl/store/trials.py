"""Episodes in which chance decided whether memories were shown."""

import json
import sqlite3

from langchain_memrl.store.base import Trial
from langchain_memrl.store.rows import batches, marks

_TRIALS = """
    SELECT p.episode_id, r.holdout, r.withheld = 'held_out', l.reward,
           json_extract(r.settings, '$.k'), r.candidates
    FROM recalls r JOIN episodes p ON p.seq = r.episode
    LEFT JOIN ledger l ON l.namespace = p.namespace AND l.episode_id = p.episode_id
        AND l.operation = 'reinforce'
    WHERE p.namespace = ? AND r.holdout > 0 AND r.withheld <> 'harmful' AND r.candidates <> '[]'
    ORDER BY r.seq
"""


def find_trials(db: sqlite3.Connection, namespace: str, *, chosen: bool) -> list[Trial]:
    """One trial per episode, oldest first; what was chosen only where it is asked for.

    An episode without any candidate is none: there was nothing to show or to hold back.
    """
    found: dict[str, Trial] = {}
    rows: dict[str, list[int]] = {}
    for id, holdout, held_out, reward, k, candidates in db.execute(_TRIALS, (namespace,)):
        found.setdefault(id, Trial(id, holdout, bool(held_out), reward, ()))
        if chosen:
            rows.setdefault(id, []).extend(item[0] for item in json.loads(candidates)[:k])
    if not chosen:
        return list(found.values())
    names: dict[int, str] = {}
    for part in batches(sorted({number for numbers in rows.values() for number in numbers})):
        names.update(db.execute(f"SELECT seq, id FROM memories WHERE seq IN ({marks(part)})", part))
    return [
        trial._replace(chosen=tuple(dict.fromkeys(names[one] for one in rows[id] if one in names)))
        for id, trial in found.items()
    ]
