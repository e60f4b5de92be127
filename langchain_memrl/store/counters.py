"""What `stats` tells, counted by SQLite itself in the transaction of each change.

Triggers keep one row of numbers per namespace and a histogram of Q, so that `stats` reads the same
few rows whatever the size of the bank. `recount` derives the same numbers from the rows themselves.
"""

from collections.abc import Iterator

import numpy as np

from langchain_memrl.reports import Stats
from langchain_memrl.store.database import Database

COLUMNS = (
    "memories",
    "intents",
    "raw",
    "episodes",
    "open_episodes",
    "updates",
    "selections",
    "never_injected",
    "never_rewarded",
    "q_above",
    "q_at",
    "q_below",
)
QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
BINS_PER_UNIT = 100
"""The histogram keeps Q to two decimals."""


def _bin(row: str) -> str:
    return f"CAST(round(CAST({row}.q * {BINS_PER_UNIT} AS NUMERIC)) AS INTEGER)"


def _one_if(condition: str) -> str:
    """1 where a condition holds, else 0."""
    return f"CAST(({condition}) AS INTEGER)"


_OPEN = _one_if("""
    (held_intent IS NOT NULL OR EXISTS (SELECT 1 FROM recalls r WHERE r.episode = episodes.seq))
    AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.namespace = episodes.namespace
        AND l.episode_id = episodes.episode_id AND l.operation IN ('reinforce', 'expire'))
""")
"""Whether an episode still waits for a reward."""


def _of_memory(row: str) -> dict[str, str]:
    """What one memory adds to each counter."""
    return {
        "memories": "1",
        "updates": f"{row}.updates",
        "selections": f"{row}.selections",
        "never_injected": _one_if(f"{row}.selections = 0"),
        "never_rewarded": _one_if(f"{row}.updates = 0"),
        "q_above": _one_if(f"{row}.q > 0"),
        "q_at": _one_if(f"{row}.q = 0"),
        "q_below": _one_if(f"{row}.q < 0"),
    }


def _count(namespace: str, **changes: str) -> str:
    """The statement that adds to a namespace's counters."""
    sums = ", ".join(f"{name} = {name} + {change}" for name, change in changes.items())
    return f"UPDATE counters SET {sums} WHERE namespace = {namespace};"


def _first(namespace: str) -> str:
    """The statement that makes a namespace's counters where it has none yet."""
    return f"INSERT INTO counters (namespace) VALUES ({namespace}) ON CONFLICT DO NOTHING;"


def _put(row: str, step: str) -> str:
    """The statements that move a memory into or out of its bin."""
    return (
        f"INSERT INTO q_bins (namespace, bin) VALUES ({row}.namespace, {_bin(row)}) "
        "ON CONFLICT DO NOTHING; "
        f"UPDATE q_bins SET memories = memories {step} "
        f"WHERE namespace = {row}.namespace AND bin = {_bin(row)};"
    )


_NEW, _OLD = _of_memory("new"), _of_memory("old")
_MOVED = {
    name: f"{_NEW[name]} - {_OLD[name]}"
    for name in ("updates", "never_rewarded", "q_above", "q_at", "q_below")
}
_SHOWN = {name: f"{_NEW[name]} - {_OLD[name]}" for name in ("selections", "never_injected")}
_OWNER = "(SELECT namespace FROM memories WHERE seq = new.seq)"
_IS_RAW = "(SELECT count(*) FROM experiences e WHERE e.seq = old.seq AND e.lesson = '')"

TRIGGERS = {
    "memory_added AFTER INSERT ON memories": (
        _first("new.namespace") + _count("new.namespace", **_NEW) + _put("new", "+ 1")
    ),
    "memory_shown AFTER UPDATE OF selections ON memories": _count("new.namespace", **_SHOWN),
    "memory_moved AFTER UPDATE OF q, updates ON memories": _count("new.namespace", **_MOVED),
    f"bin_changed AFTER UPDATE OF q ON memories WHEN {_bin('new')} <> {_bin('old')}": (
        _put("old", "- 1") + _put("new", "+ 1")
    ),
    # Before, because the experience goes with its memory.
    "memory_dropped BEFORE DELETE ON memories": (
        _count("old.namespace", **{name: f"-{value}" for name, value in _OLD.items()})
        + _count("old.namespace", raw=f"-{_IS_RAW}")
        + _put("old", "- 1")
    ),
    "experience_added AFTER INSERT ON experiences WHEN new.lesson = ''": _count(_OWNER, raw="1"),
    "lesson_changed AFTER UPDATE OF lesson ON experiences": _count(
        _OWNER, raw=f"""{_one_if("new.lesson = ''")} - {_one_if("old.lesson = ''")}"""
    ),
    "intent_added AFTER INSERT ON intents": (
        _first("new.namespace") + _count("new.namespace", intents="1")
    ),
    "intent_dropped AFTER DELETE ON intents": _count("old.namespace", intents="-1"),
    "episode_added AFTER INSERT ON episodes": (
        _first("new.namespace")
        + _count("new.namespace", episodes="1")
        + f"UPDATE episodes SET open = {_OPEN} WHERE seq = new.seq;"
    ),
    "episode_dropped AFTER DELETE ON episodes": _count(
        "old.namespace", episodes="-1", open_episodes="-old.open"
    ),
    "episode_opened AFTER UPDATE OF open ON episodes": _count(
        "new.namespace", open_episodes="new.open - old.open"
    ),
    "answer_held AFTER UPDATE OF held_intent ON episodes": (
        f"UPDATE episodes SET open = {_OPEN} WHERE seq = new.seq;"
    ),
    "recall_recorded AFTER INSERT ON recalls": (
        f"UPDATE episodes SET open = {_OPEN} WHERE seq = new.episode;"
    ),
    "episode_rewarded AFTER INSERT ON ledger WHEN new.operation IN ('reinforce', 'expire')": (
        "UPDATE episodes SET open = 0 "
        "WHERE namespace = new.namespace AND episode_id = new.episode_id AND open = 1;"
    ),
}

_SUMS = ", ".join(f"CAST(sum({name}) AS BIGINT)" for name in COLUMNS)
_RECOUNT = f"""
    SELECT namespace, {_SUMS} FROM (
        SELECT m.namespace, {
    ", ".join(f"{value} AS {name}" for name, value in _of_memory("m").items())
}, CAST((e.lesson = '') AS INTEGER) AS raw, 0 AS intents, 0 AS episodes,
            0 AS open_episodes
        FROM memories m LEFT JOIN experiences e ON e.seq = m.seq
        UNION ALL SELECT namespace, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0 FROM intents
        UNION ALL SELECT namespace, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, {_OPEN} FROM episodes
    ) AS added GROUP BY namespace ORDER BY namespace
"""
_REBIN = f"SELECT namespace, {_bin('m')}, count(*) FROM memories m GROUP BY 1, 2 ORDER BY 1, 2"


def create(connection: Database) -> None:
    """Make counters and triggers for a database that may hold rows already."""
    counters = ", ".join(f"{name} INTEGER NOT NULL DEFAULT 0" for name in COLUMNS)
    connection.execute(
        f"CREATE TABLE counters (namespace TEXT PRIMARY KEY, {counters}) WITHOUT ROWID"
    )
    connection.execute(
        "CREATE TABLE q_bins (namespace TEXT NOT NULL, bin INTEGER NOT NULL, "
        "memories INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (namespace, bin)) WITHOUT ROWID"
    )
    connection.execute("ALTER TABLE episodes ADD COLUMN open INTEGER NOT NULL DEFAULT 0")
    connection.execute("CREATE INDEX episodes_open ON episodes (namespace, seq) WHERE open = 1")
    recount(connection)
    renew_triggers(connection)


def renew_triggers(connection: Database) -> None:
    """Make every trigger as it is now."""
    for name, statements in TRIGGERS.items():
        connection.execute(f"DROP TRIGGER IF EXISTS {name.split()[0]}")
        connection.execute(f"CREATE TRIGGER {name} BEGIN {statements} END")


def recount(connection: Database) -> None:
    """Derive every number anew from the rows."""
    connection.execute(f"UPDATE episodes SET open = {_OPEN}")
    connection.execute("DELETE FROM counters")
    connection.execute("DELETE FROM q_bins")
    connection.execute(f"INSERT INTO counters (namespace, {', '.join(COLUMNS)}) {_RECOUNT}")
    connection.execute(f"INSERT INTO q_bins (namespace, bin, memories) {_REBIN}")


def stats(db: Database, namespace: str) -> Stats:
    """What a namespace holds, from its counters."""
    row = db.execute(
        f"SELECT {', '.join(COLUMNS)} FROM counters WHERE namespace = ?", (namespace,)
    ).fetchone()
    counted = dict(zip(COLUMNS, row or [0] * len(COLUMNS), strict=True))
    size = max(counted["memories"], 1)
    shares = {f"{name}_zero": counted.pop(name) / size for name in ("q_above", "q_at", "q_below")}
    return Stats(namespace=namespace, **counted, **shares, q_quantiles=_quantiles(db, namespace))


def _quantiles(db: Database, namespace: str) -> tuple[float, ...]:
    """Quantiles of Q, each memory standing at the middle of its bin."""
    bins = db.execute(
        "SELECT bin, memories FROM q_bins WHERE namespace = ? AND memories > 0 ORDER BY bin",
        (namespace,),
    ).fetchall()
    if not bins:
        return ()
    values, sizes = np.array(bins, dtype=np.float64).T
    ends = np.cumsum(sizes)
    places = np.array(QUANTILES) * (ends[-1] - 1)
    low, high = (
        values[np.searchsorted(ends, place, side="right")] / BINS_PER_UNIT
        for place in (np.floor(places), np.ceil(places))
    )
    return tuple(np.round(low + (places - np.floor(places)) * (high - low), 4).tolist())


def count_intents(db: Database, namespace: str) -> int:
    """How many intents a namespace has."""
    row = db.execute("SELECT intents FROM counters WHERE namespace = ?", (namespace,)).fetchone()
    return 0 if row is None else int(row[0])


def problems(db: Database) -> Iterator[str]:
    """Counters that differ from the rows, one sentence each."""
    for table, columns, counted in (
        ("counters", ("namespace", *COLUMNS), _RECOUNT),
        ("q_bins", ("namespace", "bin", "memories"), _REBIN),
    ):
        key = 1 if table == "counters" else 2
        kept = {row[:key]: row for row in db.execute(f"SELECT {', '.join(columns)} FROM {table}")}
        for row in db.execute(counted).fetchall():
            kept_row = kept.pop(row[:key], None)
            if kept_row != row:
                yield _difference(columns[key:], row[0], kept_row and kept_row[key:], row[key:])
        for row in kept.values():
            if any(row[key:]):
                yield _difference(columns[key:], row[0], row[key:], None)


def _difference(
    names: tuple[str, ...],
    namespace: str,
    kept: tuple[int, ...] | None,
    counted: tuple[int, ...] | None,
) -> str:
    none = (0,) * len(names)
    told = [
        f"{name} {one}, counted {other}"
        for name, one, other in zip(names, kept or none, counted or none, strict=True)
        if one != other
    ]
    return f"the counters of namespace {namespace!r} say {'; '.join(told)}; call rebuild_index()"
