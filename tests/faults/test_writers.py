"""Many writers on one bank: every reward counts once, and nobody waits for long."""

import random
import signal
import sqlite3
import time
from contextlib import closing

import pytest
from children import PROCESSES
from workers import (
    add_many,
    everything_sent,
    open_bank,
    reward_in_threads,
    reward_many,
    search_many,
)

from langchain_memrl.store.embedded.sidecar import FILE_NAME

STEP = 0.3
SLOWEST = 10
"""Seconds that no single call may take."""


@pytest.fixture
def shared_ids(folder):
    """A bank with ten memories."""
    with open_bank(folder) as memory:
        return [memory.remember(f"task {n}", "lesson").id for n in range(10)]


@pytest.fixture
def start():
    """Starts processes, and kills what a failed test leaves behind."""
    started = []

    def start_(target, *arguments):
        started.append(PROCESSES.Process(target=target, args=arguments))
        started[-1].start()
        return started[-1]

    yield start_
    for child in started:
        child.kill()
        child.join()


def assert_rewarded(folder, ids, count):
    """Q_n = r + (1 - a)^n (Q_0 - r) with r = 1, Q_0 = 0."""
    with open_bank(folder) as memory:
        for id in ids:
            found = memory.get(id)
            assert found.updates == count
            assert found.q_value == pytest.approx(1 - (1 - STEP) ** count, abs=1e-9)
        assert memory.verify().problems == ()


def test_four_processes_of_four_threads_reward_exactly_and_none_waits_long(
    folder, shared_ids, start, much
):
    count, ready, reports = much(250, 500), PROCESSES.Barrier(4), PROCESSES.Queue()
    for name in "abcd":
        start(reward_in_threads, folder, shared_ids, name, 4, count, ready, reports)
    told = [reports.get(timeout=240) for _ in range(4)]
    waits = sorted(wait for one in told for wait in one.waits)
    print("each process done after", [f"{one.seconds:.1f} s" for one in told])
    print(f"99 % below {waits[int(0.99 * len(waits))]:.3f} s, slowest {waits[-1]:.3f} s")
    assert [error for one in told for error in one.errors] == []
    assert len(waits) == 16 * count
    assert waits[-1] < SLOWEST
    assert_rewarded(folder, shared_ids, 16 * count)


def test_writers_wait_for_an_outside_lock_and_count_once(folder, shared_ids, start):
    """Two processes of one thread and one of sixteen; another program keeps the lock for 3 s."""
    count, ready, reports = 10, PROCESSES.Barrier(4), PROCESSES.Queue()
    for name, threads in (("a", 1), ("b", 1), ("c", 16)):
        start(reward_in_threads, folder, shared_ids, name, threads, count, ready, reports)
    ready.wait()
    with closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as outside:
        outside.execute("BEGIN IMMEDIATE")
        ready.wait()
        time.sleep(3)
        outside.execute("ROLLBACK")
    told = [reports.get(timeout=60) for _ in range(3)]
    assert [error for one in told for error in one.errors] == []
    assert all(1 < max(one.waits) < SLOWEST for one in told)
    assert_rewarded(folder, shared_ids, 18 * count)


TARGETS = {"adding": add_many, "rewarding": reward_many, "searching": search_many}


@pytest.mark.parametrize("victim", [None, *TARGETS])
def test_of_an_adder_a_rewarder_and_a_searcher_any_may_be_killed(folder, shared_ids, start, victim):
    rng, count, readers, children = random.Random(f"{victim}"), 300, {}, {}
    for name in rng.sample([*TARGETS], 3):
        readers[name], writer = PROCESSES.Pipe(duplex=False)
        children[name] = start(TARGETS[name], folder, shared_ids, count, writer)
        writer.close()
    told = {name: [] for name in TARGETS}
    if victim:
        told[victim] = [readers[victim].recv() for _ in range(rng.randrange(50, 250))]
        children[victim].kill()
    for name, reader in readers.items():
        told[name] += everything_sent(reader)
        children[name].join()
        assert children[name].exitcode == (-signal.SIGKILL if name == victim else 0)
        assert name == victim or len(told[name]) == count
    with open_bank(folder) as memory:
        added = {one.id for one in memory.list(limit=None)} - set(shared_ids)
        assert added >= set(told["adding"])
        rewards = memory.get(shared_ids[0]).updates
    assert len(added) - len(told["adding"]) in ((0, 1) if victim == "adding" else (0,))
    assert rewards - len(told["rewarding"]) in ((0, 1) if victim == "rewarding" else (0,))
    assert_rewarded(folder, shared_ids, rewards)
