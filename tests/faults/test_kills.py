"""SIGKILL at random moments: what was acknowledged is there, and nothing is there by half.

Three oracles after every kill. The bank is what the acknowledged operations make of it, with the
one in flight wholly done or not at all. Every Q is the closed form of the rewards counted. A recall
is the brute-force answer over the rows.
"""

import random
import sqlite3
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pytest
from children import PROCESSES, SHARED
from workers import OPERATIONS, everything_sent, open_bank, work

from langchain_memrl import EpisodicMemory
from langchain_memrl.errors import EpisodeError
from langchain_memrl.store.embedded.sidecar import FILE_NAME

STEP = 0.3
BANKS, KILLS = 4, 50
STARTING = threading.Lock()


@dataclass(frozen=True)
class Row:
    """What is known of a memory."""

    intent: str
    lesson: str
    updates: int = 0
    selections: int = 0

    def shown(self):
        return replace(self, selections=self.selections + 1)

    def rewarded(self):
        return replace(self, updates=self.updates + 1)


def done(state, kind, details, result):
    """The rows by id after one operation that had this result."""
    if kind == "add":
        return state | {result: Row(details["intent"], details["lesson"])}
    if kind == "delete":
        return {id: row for id, row in state.items() if id != details["id"]}
    if kind == "update":
        changed = {details["id"]: replace(state[details["id"]], lesson=details["lesson"])}
    elif kind == "reward":
        changed = {id: state[id].shown().rewarded() for id in details["ids"]}
    elif kind == "recall":
        changed = {id: state[id].shown() for id in result}
    else:
        changed = {}
    return state | changed


def after(state, told):
    """What the acknowledged operations make of a state, and the one in flight, if any."""
    for (kind, details), (_, result) in zip(told[::2], told[1::2], strict=False):
        state = done(state, kind, details, result)
    return state, told[-1] if len(told) % 2 else None


def stored(memory):
    return {
        one.id: Row(one.intent, one.lesson, one.updates, one.selections)
        for one in memory.list(limit=None)
    }


def completed(memory, state, rows, in_flight):
    """The state with the operation in flight done; its result is read from the bank."""
    kind, details = in_flight
    if kind == "add":
        (result,) = (rows.keys() - state.keys()) or {"not there"}
    elif kind == "recall":
        result = shown_in(memory, details["episode_id"])
    else:
        result = None
    return done(state, kind, details, result)


def shown_in(memory, episode_id):
    try:
        return memory.episode(episode_id).memory_ids
    except EpisodeError:
        return ()


def killed(folder, name, rng):
    """Start a worker and kill it; all it had told. Some are killed while they still open."""
    reader, writer = PROCESSES.Pipe(duplex=False)
    child = PROCESSES.Process(target=work, args=(folder, writer, name))
    with STARTING:
        child.start()
    writer.close()
    told = [reader.recv() for _ in range(rng.choice((0, 1, 2, 4, 6, 8)))]
    child.join(timeout=rng.uniform(0, 0.05))
    child.kill()
    child.join()
    return told + everything_sent(reader)


def answer(memory):
    recalled = memory.recall(SHARED, k=5, fetch_k=50, q_weight=0, score_threshold=None)
    return [(hit.id, hit.similarity) for hit in recalled.memories]


def nearest(folder, task):
    """Ids and cosines with a vector, nearest first, from the rows alone."""
    connection = sqlite3.connect(folder / FILE_NAME)
    rows = connection.execute(
        "SELECT m.id, m.seq, m.selections, i.vector FROM memories m "
        "JOIN intents i ON i.id = m.intent_id"
    ).fetchall()
    connection.close()
    vectors = np.stack([np.frombuffer(row[3], dtype="<f4") for row in rows]).astype(float)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(task)
    cosines = np.round(np.clip(vectors @ task / lengths, -1, 1), 6) + 0.0
    order = sorted(range(len(rows)), key=lambda n: (-cosines[n], rows[n][2], -rows[n][1]))
    return [(rows[n][0], cosines[n]) for n in order]


def check(folder, state, told):
    """Ask a bank after a kill whether all three oracles agree; the state it is in now."""
    expected, in_flight = after(state, told)
    with open_bank(folder) as memory:
        found = stored(memory)
        if in_flight is None or found != expected:
            expected = completed(memory, expected, found, in_flight) if in_flight else expected
        assert found == expected
        for one in memory.list(limit=None):
            # Q_n = r + (1 - a)^n (Q_0 - r) with r = 1, Q_0 = 0
            assert one.q_value == pytest.approx(1 - (1 - STEP) ** one.updates, abs=1e-9)
        assert memory.verify().problems == ()
        task = np.array(memory.embedder.embed([SHARED])[0], dtype=float)
        first = answer(memory)
        assert first == nearest(folder, task)[:5]
    with open_bank(folder) as memory:
        assert (stored(memory), answer(memory)) == (found, first)
    return found


def a_bank_that_is_killed_again_and_again(folder, number):
    """One bank and fifty kills; how many operations of each kind were acknowledged."""
    rng, counts = random.Random(number), Counter()
    with open_bank(folder) as memory:
        memory.remember(SHARED, "lesson")
        state = stored(memory)
    for kill in range(KILLS):
        told = killed(folder, f"bank {number}, kill {kill}", rng)
        state = check(folder, state, told)
        counts.update(kind for (kind, _), _ in zip(told[::2], told[1::2], strict=False))
        assert_complete_or_absent(folder.parent / "export.jsonl")
    return counts


def assert_complete_or_absent(export):
    if export.exists():
        EpisodicMemory.import_jsonl(export, ":memory:").close()
        export.unlink()


def test_no_acknowledged_operation_is_lost_by_kill_9(tmp_path, much):
    folders = [tmp_path / str(number) / "bank" for number in range(much(BANKS, 60))]
    with ThreadPoolExecutor(BANKS) as lanes:
        counts = sum(
            lanes.map(a_bank_that_is_killed_again_and_again, folders, range(len(folders))),
            Counter(),
        )
    assert counts.keys() == OPERATIONS.keys()
    assert counts.total() > KILLS * len(folders)
