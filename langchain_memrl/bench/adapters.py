"""The retriever and the whole graph loop, beside a retriever and a graph that do nothing."""

import asyncio
import itertools
import time
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda

from langchain_memrl.bench.data import Filled, Tasks
from langchain_memrl.bench.floors import NoOpRetriever
from langchain_memrl.bench.rows import Goal, Row
from langchain_memrl.bench.timing import in_turns, summary
from langchain_memrl.retriever import MemRLRetriever

K = 5
TICK = 0.001
TICKED_CALLS = 50


def retriever(bank: Filled) -> Iterator[Row]:
    """`invoke` and `ainvoke`: what LangChain adds to a recall."""
    text, ours, no_op = bank.tasks.text, MemRLRetriever(memory=bank.memory, k=K), NoOpRetriever()
    with asyncio.Runner() as runner:
        times = in_turns(
            {
                "invoke": lambda n: ours.invoke(text(n)),
                "no-op": lambda n: no_op.invoke(text(n)),
                "recall": lambda n: bank.memory.recall(text(n), k=K),
                "ainvoke": lambda n: runner.run(ours.ainvoke(text(n))),
                "no-op, awaited": lambda n: runner.run(no_op.ainvoke(text(n))),
            },
            bank.rounds,
        )
        held = summary(runner.run(_gaps(ours, bank.tasks)))
        free = summary(runner.run(_gaps(no_op, bank.tasks)))
    goal = Goal(1.4, times["recall"].median)
    beside = ("no-op retriever", times["no-op"], goal)
    yield bank.row("retriever.invoke", times["invoke"], *beside)
    awaited = ("no-op, awaited", times["no-op, awaited"], goal)
    yield bank.row("retriever.ainvoke", times["ainvoke"], *awaited)
    yield bank.row("event loop held by ainvoke", held, "no-op, awaited", free, of="largest")


async def _gaps(one: BaseRetriever, tasks: Tasks) -> list[float]:
    """How much later than asked a task that sleeps 1 ms came to run, beside 50 calls (ms)."""
    late: list[float] = []

    async def tick() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(TICK)
            late.append(1000 * (time.perf_counter() - start - TICK))

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(TICK)
    for number in range(TICKED_CALLS):
        await one.ainvoke(tasks.text(number))
        await asyncio.sleep(0)
    await asyncio.sleep(2 * TICK)
    ticker.cancel()
    return late


def graph(bank: Filled) -> Row:
    """The loop from task to written memory, with an agent that answers at once."""
    from langchain_memrl.graph import create_memrl_graph
    from langchain_memrl.graph.bare import no_op_graph
    from langchain_memrl.summarizers import verbatim

    text, number, empty, memory = bank.tasks.text, itertools.count(), no_op_graph(), bank.memory
    agent: Runnable[Any, Any] = RunnableLambda(lambda messages: AIMessage("done"))
    ours = create_memrl_graph(
        agent,
        MemRLRetriever(memory=memory, k=K),
        evaluator=lambda state: 1.0,
        summarizer=verbatim,
    )

    def by_hand(n: int) -> None:
        episode = f"hand {next(number)}"
        memory.recall(text(n), k=K, episode_id=episode)
        memory.reinforce(episode, reward=1.0)
        memory.remember(text(n), "done", trajectory="done", episode_id=episode)

    times = in_turns(
        {
            "ours": lambda n: ours.invoke({"messages": [HumanMessage(text(n))]}),
            "no-op": lambda n: empty.invoke({"messages": [HumanMessage(text(n))]}),
            "store": by_hand,
        },
        bank.rounds,
    )
    goal = Goal(1.25, times["store"].median)
    return bank.row("whole graph loop", times["ours"], "no-op graph", times["no-op"], goal)
