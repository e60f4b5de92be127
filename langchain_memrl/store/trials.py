"""Episodes in which chance decided whether memories were shown."""

import json

from langchain_memrl.store.base import Trial
from langchain_memrl.store.database import Database
from langchain_memrl.store.rows import batches, marks

_TRIALS = """
    SELECT p.episode_id, r.holdout, r.withheld, l.reward,
           r.settings, r.candidates
    FROM recalls r JOIN episodes p ON p.seq = r.episode
    LEFT JOIN ledger l ON l.namespace = p.namespace AND l.episode_id = p.episode_id
        AND l.operation = 'reinforce'
    WHERE p.namespace = ? AND r.candidates <> '[]'
        AND r.episode IN (SELECT episode FROM recalls WHERE holdout > 0)
    ORDER BY r.seq
"""


def find_trials(db: Database, namespace: str, *, chosen: bool) -> list[Trial]:
    """One trial per episode, oldest first; what was chosen only where it is asked for.

    An episode is none without any candidate, for there was nothing to show or to hold back, and
    where one of its recalls showed something and another did not.
    """
    found: dict[str, Trial] = {}
    rows: dict[str, list[int]] = {}
    mixed: set[str] = set()
    for id, holdout, withheld, reward, settings, candidates in db.execute(_TRIALS, (namespace,)):
        held_out = withheld == "held_out"
        first = found.setdefault(id, Trial(id, holdout, held_out, reward, ()))
        if first.held_out != held_out or withheld == "harmful":
            mixed.add(id)
        if not first.holdout and holdout:
            found[id] = first._replace(holdout=holdout)
        if chosen:
            k = json.loads(settings).get("k")
            rows.setdefault(id, []).extend(item[0] for item in json.loads(candidates)[:k])
    found = {id: trial for id, trial in found.items() if id not in mixed}
    if not chosen:
        return list(found.values())
    numbers = sorted({number for id in found for number in rows[id]})
    names: dict[int, str] = {}
    for part in batches(numbers):
        names.update(db.execute(f"SELECT seq, id FROM memories WHERE seq IN ({marks(part)})", part))
    return [
        trial._replace(chosen=tuple(dict.fromkeys(names[one] for one in rows[id] if one in names)))
        for id, trial in found.items()
    ]
