"""What is measured: every kind of call beside the least that the same work can cost."""

import asyncio
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from langchain_memrl.bench.data import Tasks, fill
from langchain_memrl.bench.floors import NoOpRetriever, numpy_product, synced_write
from langchain_memrl.bench.rivals import open_rivals
from langchain_memrl.bench.rows import Found, Goal, Row
from langchain_memrl.bench.timing import in_turns, sum_of, summary
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.retriever import MemRLRetriever
from langchain_memrl.store.bare import BareSqlite, flat_faiss

K = 5
OPEN_ROUNDS = 5


def measure(size: int, dimension: int, *, rounds: int, peers: bool) -> Found:
    """Measure banks of one size.

    Args:
        size: Memories.
        dimension: Numbers per vector.
        rounds: How often each call is timed.
        peers: Whether other stores are filled and measured too.
    """
    tasks = Tasks(size, dimension)
    with tempfile.TemporaryDirectory(prefix="memrl-bench-") as name:
        folder = Path(name)
        start = time.perf_counter()
        with EpisodicMemory.open(folder / "bank", embeddings=tasks) as memory:
            fill(memory, tasks)
            filled = 1000 * (time.perf_counter() - start) / size
            memory.recall(tasks.texts[0])
            rows = [
                Row("load, per memory", size, dimension, summary([filled])),
                *_recall(memory, tasks, folder, rounds),
                *_learn(memory, tasks, folder, rounds),
                *_adapters(memory, tasks, rounds),
            ]
        rows += _open(folder / "bank", tasks)
        missing: dict[str, str] = {}
        if peers:
            found = _peers(folder, tasks, rounds)
            rows, missing = rows + found.rows, found.missing
    return Found(rows, missing)


def _recall(memory: EpisodicMemory, tasks: Tasks, folder: Path, rounds: int) -> Iterator[Row]:
    size, dimension = tasks.vectors.shape
    text = _chooser(tasks)
    number = itertools.count()
    times = in_turns(
        {
            "recall": lambda n: memory.recall(text(n), k=K),
            "faiss": _at(flat_faiss(tasks.vectors, 10), size),
            "numpy": _at(numpy_product(tasks.vectors, 10), size),
        },
        rounds,
    )
    floor = min(("faiss", "numpy"), key=lambda name: times[name].median)
    names = {"faiss": "IndexFlatIP.search", "numpy": "NumPy product"}
    yield Row(
        "recall", size, dimension, times["recall"], names[floor], times[floor], Goal(1.25, 0.2)
    )
    bare = BareSqlite(folder)
    times = in_turns(
        {
            "ours": lambda n: memory.recall(text(n), k=K, episode_id=f"r{next(number)}"),
            "recall": lambda n: memory.recall(text(n), k=K),
            "bare": bare.record,
        },
        rounds,
    )
    bare.close()
    both = sum_of(times["recall"], times["bare"])
    yield Row(
        "recall in an episode", size, dimension, times["ours"], "recall + bare SQLite write", both
    )


def _learn(memory: EpisodicMemory, tasks: Tasks, folder: Path, rounds: int) -> Iterator[Row]:
    size, dimension = tasks.vectors.shape
    place = folder / "learn"
    place.mkdir()
    bare, ids = BareSqlite(place), [one.id for one in memory.list(limit=1000)]
    number = itertools.count()
    for count, factor in ((5, 1.15), (160, 1.3)):
        calls = {"ours": partial(_reward, memory, ids, number, count)}
        times = in_turns(calls | {"bare": partial(bare.reward, count=count)}, rounds)
        yield Row(
            f"reinforce {count} memories",
            size,
            dimension,
            times["ours"],
            "bare SQLite, same rows",
            times["bare"],
            Goal(factor),
        )
    bare.close()
    times = in_turns(
        {
            "ours": lambda n: memory.remember(f"a new task {next(number)}", "what it taught"),
            "floor": synced_write(place, 4096 + 4 * dimension),
        },
        rounds,
    )
    yield Row(
        "remember", size, dimension, times["ours"], "write and fdatasync", times["floor"], Goal(2.0)
    )
    times = in_turns({"ours": lambda n: memory.stats()}, rounds)
    yield Row("stats", size, dimension, times["ours"])


def _reward(
    memory: EpisodicMemory, ids: list[str], number: Iterator[int], count: int, n: int
) -> None:
    """Reward an episode that showed `count` memories."""
    shown = [ids[(n * count + place) % len(ids)] for place in range(count)]
    memory.reinforce(f"w{next(number)}", reward=1.0, ids=shown)


def _adapters(memory: EpisodicMemory, tasks: Tasks, rounds: int) -> Iterator[Row]:
    size, dimension = tasks.vectors.shape
    text, retriever, no_op = _chooser(tasks), MemRLRetriever(memory=memory, k=K), NoOpRetriever()
    with asyncio.Runner() as runner:
        times = in_turns(
            {
                "invoke": lambda n: retriever.invoke(text(n)),
                "no-op": lambda n: no_op.invoke(text(n)),
                "recall": lambda n: memory.recall(text(n), k=K),
                "ainvoke": lambda n: runner.run(retriever.ainvoke(text(n))),
                "no-op awaited": lambda n: runner.run(no_op.ainvoke(text(n))),
            },
            rounds,
        )
    core = times["recall"].median
    for name, floor in (("invoke", "no-op"), ("ainvoke", "no-op awaited")):
        yield Row(
            f"retriever.{name}",
            size,
            dimension,
            times[name],
            f"{floor} retriever",
            times[floor],
            Goal(1.4, core),
        )
    yield _graph(memory, retriever, tasks, rounds)


def _graph(memory: EpisodicMemory, retriever: MemRLRetriever, tasks: Tasks, rounds: int) -> Row:
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.runnables import Runnable, RunnableLambda

    from langchain_memrl.graph import create_memrl_graph
    from langchain_memrl.graph.bare import no_op_graph
    from langchain_memrl.summarizers import verbatim

    size, dimension = tasks.vectors.shape
    text, number, empty = _chooser(tasks), itertools.count(), no_op_graph()
    agent: Runnable[Any, Any] = RunnableLambda(lambda messages: AIMessage("done"))
    graph = create_memrl_graph(agent, retriever, evaluator=lambda state: 1.0, summarizer=verbatim)

    def by_hand(n: int) -> None:
        episode = f"hand {next(number)}"
        memory.recall(text(n), k=K, episode_id=episode)
        memory.reinforce(episode, reward=1.0)
        memory.remember(text(n), "done", trajectory="done", episode_id=episode)

    times = in_turns(
        {
            "ours": lambda n: graph.invoke({"messages": [HumanMessage(text(n))]}),
            "no-op": lambda n: empty.invoke({"messages": [HumanMessage(text(n))]}),
            "store": by_hand,
        },
        rounds,
    )
    return Row(
        "whole graph loop",
        size,
        dimension,
        times["ours"],
        "no-op graph",
        times["no-op"],
        Goal(1.25, times["store"].median),
    )


def _open(folder: Path, tasks: Tasks) -> Iterator[Row]:
    size, dimension = tasks.vectors.shape
    opened, first = [], []
    for _ in range(OPEN_ROUNDS):
        start = time.perf_counter()
        with EpisodicMemory.open(folder, embeddings=tasks, read_only=True) as memory:
            opened.append(1000 * (time.perf_counter() - start))
            memory.recall(tasks.texts[0])
            first.append(1000 * (time.perf_counter() - start))
    yield Row("open", size, dimension, summary(opened))
    yield Row("open and first recall", size, dimension, summary(first))


def _peers(folder: Path, tasks: Tasks, rounds: int) -> Found:
    size, dimension = tasks.vectors.shape
    place = folder / "peers"
    place.mkdir()
    with open_rivals(tasks, place) as (rivals, missing):
        floor = _at(flat_faiss(tasks.vectors, 10), size)
        searches = {name: _at(rival.search, size) for name, rival in rivals.items()}
        times = in_turns({"faiss": floor, **searches}, min(rounds, 20))
        updates = in_turns(
            {name: _at(rival.update, size) for name, rival in rivals.items()}, min(rounds, 20)
        )
    rows = []
    for name, rival in rivals.items():
        kept = "" if rival.durable else " (not durable)"
        rows += [
            Row(
                f"peer: {name}", size, dimension, times[name], "IndexFlatIP.search", times["faiss"]
            ),
            Row(f"peer update: {name}{kept}", size, dimension, updates[name]),
        ]
    return Found(rows, missing)


def _chooser(tasks: Tasks) -> Callable[[int], str]:
    """Another stored task at every call, from all over the bank."""
    return lambda n: tasks.texts[(n * 7919) % len(tasks.texts)]


def _at(search: Callable[[int], object], size: int) -> Callable[[int], object]:
    return lambda n: search((n * 7919) % size)
