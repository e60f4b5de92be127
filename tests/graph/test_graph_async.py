"""Awaited runs: the event loop is never blocked, and SQLite never runs on its thread."""

import asyncio
import threading

import pytest
from langgraph.types import Command
from loops import ask, thread
from watched import WatchedStore

from langchain_memrl import EpisodicMemory, create_memrl_builder
from langchain_memrl.store.embedded.local import LocalStore


@pytest.fixture
def store():
    return WatchedStore(LocalStore(":memory:"))


@pytest.fixture
def bank(store, embeddings):
    with EpisodicMemory(store, embeddings) as memory:
        yield memory


def loop_of(retriever, verdicts, **options):
    settings = {
        "evaluator": lambda state: verdicts.pop(0),
        "summarizer": lambda attempt: f"lesson {len(verdicts)}",
    } | options
    return create_memrl_builder(lambda messages: f"answer {len(verdicts)}", retriever, **settings)


SAME = {"metadata": {"memrl_episode_id": "job-42"}}


@pytest.mark.parametrize(
    "verdicts",
    [[1.0], [None], [1.0, -1.0], [None, None], [None, 1.0], [1.0, None]],
    ids=["reward", "none", "conflict", "other answer", "completed", "late"],
)
async def test_no_path_of_the_loop_reaches_the_store_on_the_loops_thread(
    store, retriever, verdicts
):
    graph = loop_of(retriever, verdicts).compile()
    store.calls.clear()
    for _ in range(len(verdicts)):
        await graph.ainvoke(ask(), SAME)
    assert store.count("pools") == 1
    assert store.count("reinforce") + store.count("hold") > 0
    assert threading.get_ident() not in store.threads


async def test_a_persons_reply_is_settled_off_the_loops_thread(store, retriever, saver):
    graph = loop_of(retriever, [], evaluator="human").compile(checkpointer=saver)
    store.calls.clear()
    await graph.ainvoke(ask(), thread())
    await graph.ainvoke(Command(resume="good"), thread())
    await graph.ainvoke(Command(resume=1.0), thread())
    assert store.count("remember") == 1
    assert threading.get_ident() not in store.threads


@pytest.mark.parametrize("effect", ["pools", "record", "reinforce", "remember"])
async def test_the_loop_goes_on_while_a_step_waits_for_the_store(store, retriever, effect):
    graph, loop = loop_of(retriever, [1.0]).compile(), asyncio.get_running_loop()
    reached, release = asyncio.Event(), threading.Event()
    store.before[effect] = lambda: (
        loop.call_soon_threadsafe(reached.set),
        release.wait(10) or pytest.fail("the event loop was blocked"),
    )
    running = asyncio.create_task(graph.ainvoke(ask()))
    await asyncio.wait_for(reached.wait(), 10)
    release.set()
    assert (await running)["reward"] == 1.0


@pytest.mark.parametrize("part", ["agent", "evaluator", "summarizer"])
async def test_the_loop_goes_on_while_a_blocking_part_works(retriever, part):
    loop, released = asyncio.get_running_loop(), threading.Event()

    def slow(value):
        loop.call_soon_threadsafe(released.set)
        assert released.wait(10), "the event loop was blocked"
        return {"agent": "an answer", "evaluator": 1.0, "summarizer": "a lesson"}[part]

    parts = {"evaluator": lambda state: 1.0, "summarizer": lambda attempt: "x"}
    agent = slow if part == "agent" else (lambda messages: "an answer")
    parts |= {} if part == "agent" else {part: slow}
    graph = create_memrl_builder(agent, retriever, **parts).compile()
    assert (await graph.ainvoke(ask()))["reward"] == 1.0


async def test_many_awaited_runs_share_one_bank(store, bank, retriever, seed):
    graph = loop_of(retriever, [1.0] * 20).compile()
    await asyncio.gather(*(graph.ainvoke(ask(f"task {n}")) for n in range(20)))
    assert bank.get(seed.id).updates == 20
    assert bank.stats().memories == 21
