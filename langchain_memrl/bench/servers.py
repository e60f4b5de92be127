"""A bank on a PostgreSQL server, in turns with one in a folder and with a bare transaction."""

import itertools
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

from langchain_memrl.bench.data import Filled, Tasks, fill
from langchain_memrl.bench.rows import SERVER, Row, Say
from langchain_memrl.bench.timing import Times, in_turns
from langchain_memrl.memory import EpisodicMemory

LIMIT = 10_000
"""Larger banks take too long to fill."""
K, SHOWN = 5, 5
Call = Callable[[int], object]


def on_server(location: str, folder: Path, tasks: Tasks, rounds: int, say: Say) -> list[Row]:
    """Measure a bank that is made on the server and dropped afterwards.

    Args:
        location: `postgresql://...`; the bank gets a schema of its own there.
        folder: Where the bank beside it goes, which must not exist.
        tasks: What both hold.
        rounds: How often each call is timed.
        say: Told what comes next.

    Returns:
        A row per call beside the same call on disk, and beside a bare transaction.
    """
    from langchain_memrl.store.postgres.bare import BarePostgres

    sign = "&" if "?" in location else "?"
    place = f"{location}{sign}schema=memrl_bench_{secrets.token_hex(4)}"
    say("PostgreSQL: filling the banks")
    with (
        BarePostgres.open(place) as bare,
        EpisodicMemory.open(place, embeddings=tasks) as there,
        EpisodicMemory.open(folder, embeddings=tasks) as here,
    ):
        for memory in (there, here):
            fill(memory, tasks)
        say("PostgreSQL: its calls")
        bank = Filled(there, tasks, folder, rounds)
        return [*_reading(bank, here), *_writing(bank, here, bare.record, bare.reward)]


def _reading(bank: Filled, here: EpisodicMemory) -> Iterator[Row]:
    task = bank.tasks.text
    calls = {"there": lambda n: bank.memory.recall(task(n), k=K)}
    yield from _rows(bank, "recall", calls | {"here": lambda n: here.recall(task(n), k=K)})


def _writing(
    bank: Filled, here: EpisodicMemory, record: Call, reward: Callable[[int, int], object]
) -> Iterator[Row]:
    number = itertools.count()
    task = bank.tasks.text
    shown = {memory: [one.id for one in memory.list(limit=1000)] for memory in (bank.memory, here)}

    def recall(memory: EpisodicMemory) -> Call:
        return lambda n: memory.recall(task(n), k=K, episode_id=f"r{next(number)}")

    def reinforce(memory: EpisodicMemory) -> Call:
        ids = shown[memory]
        return lambda n: memory.reinforce(
            f"w{next(number)}",
            reward=1.0,
            ids=[ids[(n * SHOWN + place) % len(ids)] for place in range(min(SHOWN, len(ids)))],
        )

    def remember(memory: EpisodicMemory) -> Call:
        return lambda n: memory.remember(f"new task {next(number)}", "what it taught")

    for what, call, bare in (
        ("recall in an episode", recall, record),
        (f"reinforce {SHOWN} memories", reinforce, lambda n: reward(n, SHOWN)),
        ("remember", remember, lambda n: record(next(number) + 10**9)),
    ):
        calls = {"there": call(bank.memory), "here": call(here), "bare": bare}
        yield from _rows(bank, what, calls)


def _rows(bank: Filled, what: str, calls: dict[str, Call]) -> Iterator[Row]:
    times: dict[str, Times] = in_turns(calls, bank.rounds)
    yield bank.row(f"{SERVER}{what}", times["there"], "the same on disk", times["here"])
    if "bare" in times:
        yield bank.row(f"{SERVER}{what}", times["there"], "bare transaction", times["bare"])
