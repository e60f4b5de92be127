"""Counters: right after every operation, and read at one price whatever the bank's size."""

import time

import numpy as np
import pytest

from langchain_memrl.errors import WriteConflictError
from langchain_memrl.store.embedded.local import LocalStore


def recounted(memory):
    """The bank's statistics, derived anew from its rows."""
    memory.rebuild_index()
    return memory.stats()


def refuse(memory):
    """A batch of which the second write is refused, so that the first one is undone."""
    twice = [{"intent": "x", "lesson": lesson, "episode_id": "twice"} for lesson in "ab"]
    with pytest.raises(WriteConflictError):
        memory.remember_many(twice)


STEPS = {
    "remember": lambda memory: memory.remember("task", "lesson"),
    "a raw one": lambda memory: memory.remember("task", None, trajectory="done"),
    "recall": lambda memory: memory.recall("task", episode_id="open", k=2),
    "again": lambda memory: memory.recall("another task", episode_id="open", k=2),
    "hold": lambda memory: memory.hold("held", intent="task", trajectory="done"),
    "reinforce": lambda memory: memory.reinforce("held", reward=-1),
    "reward of the shown": lambda memory: memory.reinforce("open", reward=0.5),
    "reward by ids": lambda memory: memory.reinforce(
        "ids", reward=1, ids=[memory.list(limit=1)[0].id]
    ),
    "a lesson for the raw": lambda memory: memory.update(
        memory.list(raw=True, limit=1)[0].id, lesson="learned"
    ),
    "a refused batch": lambda memory: refuse(memory),
    "forget": lambda memory: memory.forget(ids=[memory.list(limit=1)[0].id]),
    "prune": lambda memory: memory.prune(max_q=0, min_updates=1),
    "clear": lambda memory: memory.forget(all=True),
}


def test_the_counters_are_right_after_every_operation(bank):
    seen = []
    for step in STEPS.values():
        step(bank)
        assert bank.verify().problems == ()
        found = bank.stats()
        assert found == recounted(bank)
        seen.append((found.memories, found.raw, found.episodes, found.open_episodes))
    assert seen[:5] == [(1, 0, 1, 0), (2, 1, 2, 0), (2, 1, 3, 1), (2, 1, 3, 1), (2, 1, 4, 2)]
    assert seen[-1] == (0, 0, 0, 0)


def test_quantiles_are_those_of_q_to_two_decimals(bank):
    rng = np.random.default_rng(0)
    made = bank.remember_many([{"intent": f"task {n}", "lesson": "x"} for n in range(40)])
    for number, one in enumerate(made):
        bank.reinforce(f"e{number}", reward=float(rng.uniform(-1, 1)), ids=[one.id])
    exact = np.quantile([one.q_value for one in bank.list(limit=None)], [0, 0.25, 0.5, 0.75, 1])
    assert bank.stats().q_quantiles == pytest.approx(exact, abs=0.01)


def test_looking_at_a_large_bank_costs_what_a_small_one_costs(open_bank, tmp_path):
    """Medians of interleaved calls; a full count of 5,000 rows would be fifty times dearer."""
    banks = [open_bank(tmp_path / name) for name in ("small", "large")]
    for memory, count in zip(banks, (100, 5000), strict=True):
        memory.remember_many([{"intent": "task", "lesson": "x"}] * count)
    times = [[], []]
    for _ in range(200):
        for place, memory in enumerate(banks):
            start = time.perf_counter()
            memory.stats()
            times[place].append(time.perf_counter() - start)
    small, large = map(np.median, times)
    assert large < 5 * small


def test_a_namespace_that_was_never_used_counts_nothing(folder):
    store = LocalStore(folder)
    found = store.stats("nobody")
    assert (found.memories, found.q_quantiles, found.q_at_zero) == (0, (), 0.0)
    store.close()
