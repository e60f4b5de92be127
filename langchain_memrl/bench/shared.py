"""Four processes that reward the same memories at once: none may be lost, none may starve."""

import json
import tempfile
import time
from pathlib import Path

from langchain_memrl.bench.children import Child, meet
from langchain_memrl.bench.data import Tasks, fill
from langchain_memrl.bench.rows import Goal, Row
from langchain_memrl.bench.timing import summary
from langchain_memrl.memory import EpisodicMemory

PROCESSES = 4
SHOWN = 5
SIZE, DIMENSION = 100, 16
REWARD = """
import sys
from langchain_memrl.bench.shared import reward_and_tell
reward_and_tell(*sys.argv[1:])
"""
GOAL = Goal(0, 250)
REWARD_VALUE = 1.0


def processes(updates: int, processes: int = PROCESSES) -> Row:
    """Each process rewards the same five memories `updates` times; every one has to count.

    Args:
        updates: Rewards per process.
        processes: How many run at once.

    Returns:
        How long the calls took; an error where a memory's count, its history or its Q is wrong.
    """
    tasks = Tasks(SIZE, DIMENSION)
    with tempfile.TemporaryDirectory(prefix="memrl-bench-") as name:
        folder = Path(name) / "bank"
        with EpisodicMemory.open(folder, embeddings=tasks) as memory:
            fill(memory, tasks)
            ids = [one.id for one in memory.list(limit=SHOWN)]
        waits = _run(folder, ids, updates, processes)
        error = _wrong(folder, ids, updates * processes)
    what = f"{processes} x {updates:,} rewards at once, 99 %"
    return Row(what, SIZE, 0, summary(waits), goal=GOAL, of="p99", error=error)


def _run(folder: Path, ids: list[str], updates: int, processes: int) -> list[float]:
    children = [
        Child(REWARD, folder, f"process {number}", updates, *ids) for number in range(processes)
    ]
    for child in children:
        child.wait_until_started()
    for child in children:
        child.go()
    return [wait for child in children for wait in child.answer()]


def reward_and_tell(folder: str, name: str, updates: str, *ids: str) -> None:
    """In the child: reward the memories, and print how long each call took (ms)."""
    waits = []
    with EpisodicMemory.open(folder, create=False) as memory:
        meet()
        for number in range(int(updates)):
            start = time.perf_counter()
            memory.reinforce(f"{name}, {number}", reward=REWARD_VALUE, ids=ids)
            waits.append(1000 * (time.perf_counter() - start))
    print(json.dumps(waits))  # noqa: T201 (this is how parent and child speak)


def _wrong(folder: Path, ids: list[str], expected: int) -> str:
    """What is wrong with the rewarded memories; empty for nothing."""
    with EpisodicMemory.open(folder, read_only=True) as memory:
        found = [memory.get(id) for id in ids]
        steps = [len(memory.history(id)) for id in ids]
        learning = memory.learning
    q_value = learning.q_init
    for _ in range(expected):
        q_value += learning.step_size * (REWARD_VALUE - q_value)
    counts = [one.updates for one in found]
    if set(counts) != {expected} or set(steps) != {expected}:
        return f"expected {expected:,} rewards of each memory, got {counts}, in history {steps}"
    if any(abs(one.q_value - q_value) > 1e-9 for one in found):
        return f"expected Q {q_value:.9f}, got {[one.q_value for one in found]}"
    return ""
