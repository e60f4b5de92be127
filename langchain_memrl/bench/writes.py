"""What is written, on disk when the call returns: rewards and memories; and counting them."""

import itertools
from collections.abc import Iterator

from langchain_memrl.bench.data import Filled
from langchain_memrl.bench.floors import synced_write
from langchain_memrl.bench.rows import Goal, Row
from langchain_memrl.bench.timing import in_turns
from langchain_memrl.store.embedded.bare import BareSqlite

REWARD_GOALS = {5: Goal(1.15), 160: Goal(1.3)}
PAGE = 4096
"""Bytes a database writes at least."""


def rewards(bank: Filled) -> Iterator[Row]:
    """An episode's reward, beside the same rows in bare SQLite."""
    place = bank.folder / "rewards"
    place.mkdir()
    bare, ids = BareSqlite(place), [one.id for one in bank.memory.list(limit=1000)]
    number = itertools.count()
    for count, goal in REWARD_GOALS.items():

        def ours(n: int, count: int = count) -> None:
            shown = [ids[(n * count + place) % len(ids)] for place in range(count)]
            bank.memory.reinforce(f"w{next(number)}", reward=1.0, ids=shown)

        def theirs(n: int, count: int = count) -> None:
            bare.reward(n, count)

        times = in_turns({"ours": ours, "bare": theirs}, bank.rounds)
        beside = ("bare SQLite", times["bare"], goal)
        yield bank.row(f"reinforce {count} memories", times["ours"], *beside)
    bare.close()


def inserts(bank: Filled) -> Iterator[Row]:
    """One new memory, and the slowest of them: a store that grows by doubling would stall there."""
    number, dimension = itertools.count(), bank.tasks.vectors.shape[1]
    with synced_write(bank.folder, PAGE + 4 * dimension) as write:
        times = in_turns(
            {
                "ours": lambda n: bank.memory.remember(
                    f"new task {next(number)}", "what it taught"
                ),
                "write": write,
            },
            4 * bank.rounds,
        )
    beside = ("write, fdatasync", times["write"])
    yield bank.row("remember", times["ours"], *beside, Goal(2.0))
    yield bank.row("remember, 99 %", times["ours"], *beside, of="p99")
    yield bank.row("remember, slowest", times["ours"], *beside, of="largest")


def counting(bank: Filled) -> Row:
    """What the bank holds, counted."""
    return bank.row("stats", in_turns({"ours": lambda n: bank.memory.stats()}, bank.rounds)["ours"])
