"""Awaited runs: the event loop is never blocked, and SQLite never runs on its thread."""

import asyncio
import threading

import pytest
from agents import SAME, agent_of, calling, scripted
from langgraph.types import Command
from loops import ask, thread
from watched import WatchedStore

from langchain_memrl import EpisodicMemory
from langchain_memrl.store.embedded.local import LocalStore


@pytest.fixture
def store():
    return WatchedStore(LocalStore(":memory:"))


@pytest.fixture
def bank(store, embeddings):
    with EpisodicMemory(store, embeddings) as memory:
        yield memory


@pytest.mark.parametrize(
    "verdicts",
    [[1.0], [None], [1.0, -1.0], [None, 1.0], [1.0, None]],
    ids=["reward", "none", "conflict", "completed", "late"],
)
async def test_no_path_reaches_the_store_on_the_loops_thread(store, retriever, verdicts):
    left = list(verdicts)
    model = scripted(calling(), "one", calling(), "two")
    agent = agent_of(retriever, model, evaluator=lambda state: left.pop(0))
    store.calls.clear()
    for _ in verdicts:
        await agent.ainvoke(ask(), SAME)
    assert store.count("reinforce") + store.count("hold") > 0
    assert threading.get_ident() not in store.threads


async def test_a_persons_reply_is_settled_off_the_loops_thread(store, retriever, saver):
    agent = agent_of(retriever, evaluator="human", agent={"checkpointer": saver})
    store.calls.clear()
    for given in (ask(), Command(resume="good"), Command(resume=1.0)):
        await agent.ainvoke(given, thread())
    assert store.count("remember") == 1
    assert threading.get_ident() not in store.threads


@pytest.mark.parametrize("effect", ["pools", "record", "reinforce", "remember"])
async def test_the_loop_goes_on_while_a_step_waits_for_the_store(store, retriever, effect):
    agent, loop = agent_of(retriever), asyncio.get_running_loop()
    reached, release = asyncio.Event(), threading.Event()
    store.before[effect] = lambda: (
        loop.call_soon_threadsafe(reached.set),
        release.wait(10) or pytest.fail("the event loop was blocked"),
    )
    running = asyncio.create_task(agent.ainvoke(ask()))
    await asyncio.wait_for(reached.wait(), 10)
    release.set()
    assert (await running)["memrl_reward"] == 1.0


@pytest.mark.parametrize("part", ["evaluator", "summarizer"])
async def test_the_loop_goes_on_while_a_blocking_part_works(retriever, part):
    loop, released = asyncio.get_running_loop(), threading.Event()

    def slow(value):
        loop.call_soon_threadsafe(released.set)
        assert released.wait(10), "the event loop was blocked"
        return 1.0 if part == "evaluator" else "a lesson"

    agent = agent_of(retriever, **{part: slow})
    assert (await agent.ainvoke(ask()))["memrl_reward"] == 1.0
