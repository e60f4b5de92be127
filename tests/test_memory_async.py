"""Awaited calls: one logic, SQLite off the loop's thread, cancelling undoes and repeats nothing."""

import asyncio
import sqlite3
import threading

import pytest
from fakes import FakeEmbeddings

from langchain_memrl.errors import StoreError
from langchain_memrl.store.embedded.sidecar import FILE_NAME


class WaitingEmbeddings(FakeEmbeddings):
    """Answers new texts only once `answer` is set."""

    def __init__(self):
        super().__init__()
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    async def aembed_documents(self, texts):
        if "slow" in texts:
            self.asked.set()
            await self.answer.wait()
        return self.embed_documents(texts)


@pytest.fixture
def locked(folder):
    """A second connection that can keep the write lock."""
    connections = []

    def lock():
        connections.append(sqlite3.connect(folder / FILE_NAME, isolation_level=None))
        connections[-1].execute("BEGIN IMMEDIATE")
        return connections[-1]

    yield lock
    for connection in connections:
        connection.close()


def watch_writes(memory):
    """An event that is set when a write begins in the bank's thread."""
    begun, loop = asyncio.Event(), asyncio.get_running_loop()

    def traced(sql):
        if sql.startswith("BEGIN IMMEDIATE") and not loop.is_closed():
            loop.call_soon_threadsafe(begun.set)

    with memory._store._sidecar.read() as db:
        db.set_trace_callback(traced)
    return begun


async def is_waiting(task, begun):
    """Give the loop many turns until a write has begun, and some more while it waits."""
    await begun.wait()
    for _ in range(100):
        await asyncio.sleep(0)
    return not task.done()


# --- one logic --------------------------------------------------------------------------------


async def test_awaited_calls_give_what_blocking_calls_give(open_bank):
    results = []
    for awaited in (True, False):
        memory = open_bank(":memory:", seed=1)

        async def call(verb, *args, memory=memory, awaited=awaited, **kwargs):
            if awaited:
                return await getattr(memory, f"a{verb}")(*args, **kwargs)
            return getattr(memory, verb)(*args, **kwargs)

        for text in ("reset a router", "bake a cake"):
            await call("remember", text, "lesson", episode_id=f"w {text}")
        recall = await call("recall", "reset a router", episode_id="e", epsilon=0.5)
        reward = await call("reinforce", "e", reward=1)
        await call("hold", "h", intent="mend a bicycle", trajectory="done")
        raw = await call("reinforce", "h", reward=-1)
        many = await call("recall_many", ["bake a cake", "mend a bicycle"])
        results.append(
            (
                [(hit.memory.intent, hit.score) for hit in recall.memories],
                [credit.after for credit in reward.credits],
                memory.get(raw.memory_id).outcome,
                [[hit.memory.intent for hit in one.memories] for one in many],
                (await call("episode", "e")).reward,
            )
        )
    assert results[0] == results[1]


def test_one_bank_serves_several_event_loops_one_after_another(open_bank):
    memory = open_bank()
    made = asyncio.run(memory.aremember("reset a router", "lesson"))
    for n in range(4):
        recall = asyncio.run(memory.arecall("reset a router", episode_id=f"e{n}"))
        assert recall.ids == (made.id,)
        assert asyncio.run(memory.areinforce(f"e{n}", reward=1)).applied
    assert memory.get(made.id).updates == 4


def test_one_bank_serves_several_event_loops_at_once(open_bank):
    memory = open_bank()
    made = memory.remember("reset a router", "lesson")
    start = threading.Barrier(4)

    def run(name):
        async def work():
            for n in range(10):
                await memory.arecall("reset a router", episode_id=f"{name} {n}")
                await memory.areinforce(f"{name} {n}", reward=1)

        start.wait()
        asyncio.run(work())

    threads = [threading.Thread(target=run, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory.get(made.id).updates == 40
    assert memory.get(made.id).q_value == pytest.approx(1 - 0.7**40, abs=1e-12)


async def test_many_awaited_calls_at_once_count_once_each(open_bank):
    memory = open_bank(":memory:")
    made = await memory.aremember("reset a router", "lesson")
    same = await asyncio.gather(
        *(memory.areinforce("e", reward=1, ids=[made.id]) for _ in range(50))
    )
    assert sum(result.applied for result in same) == 1
    await asyncio.gather(*(memory.areinforce(f"e{n}", reward=1, ids=[made.id]) for n in range(49)))
    assert memory.get(made.id).updates == 50
    assert memory.get(made.id).q_value == pytest.approx(1 - 0.7**50, abs=1e-12)


async def test_a_blocking_call_inside_a_coroutine_works(open_bank):
    memory = open_bank()
    made = memory.remember("reset a router", "lesson")
    await memory.arecall("reset a router")
    assert memory.recall("reset a router").ids == (made.id,)


# --- the loop stays free ----------------------------------------------------------------------


async def test_sqlite_never_runs_on_the_threads_of_event_loops(open_bank):
    memory = open_bank()
    statements = []
    with memory._store._sidecar.read() as db:
        db.set_trace_callback(lambda _: statements.append(threading.get_ident()))
    made = await memory.aremember("reset a router", "lesson")
    recall = await memory.arecall("reset the router", episode_id="e", record=False)
    await memory.arecord(recall)
    await memory.arecall_many(["reset a router", "bake a cake"], episode_ids=["f", None])
    await memory.areinforce("e", reward=1)
    await memory.areinforce_many([{"episode_id": "g", "reward": 1, "ids": [made.id]}])
    await memory.aremember_many([{"intent": "bake a cake", "lesson": "lesson"}])
    await memory.ahold("h", intent="mend a bicycle", trajectory="done")
    await memory.aepisode("e")
    assert len(statements) > 30
    assert threading.get_ident() not in statements


async def test_a_write_that_waits_for_a_lock_does_not_stop_the_loop(open_bank, locked):
    memory = open_bank()
    made = memory.remember("reset a router", "lesson")
    begun, other = watch_writes(memory), locked()
    reward = asyncio.create_task(memory.areinforce("e", reward=1, ids=[made.id]))
    assert await is_waiting(reward, begun)
    other.execute("ROLLBACK")
    assert (await reward).applied


async def test_an_embedder_that_waits_stops_neither_the_loop_nor_other_calls(open_bank):
    embeddings = WaitingEmbeddings()
    memory = open_bank(":memory:", embeddings=embeddings)
    made = await memory.aremember("reset a router", "lesson")
    slow = asyncio.create_task(memory.aremember("slow", "lesson"))
    await embeddings.asked.wait()
    assert (await memory.arecall("reset a router")).ids == (made.id,)
    assert (await memory.areinforce("e", reward=1, ids=[made.id])).applied
    await memory.aremember("bake a cake", "lesson")
    assert not slow.done()
    embeddings.answer.set()
    assert (await slow).intent == "slow"


# --- cancelled --------------------------------------------------------------------------------


async def test_cancelling_does_not_undo_a_write_that_was_handed_over(open_bank, locked):
    memory = open_bank()
    made = memory.remember("reset a router", "lesson")
    begun, other = watch_writes(memory), locked()
    reward = asyncio.create_task(memory.areinforce("e", reward=1, ids=[made.id]))
    assert await is_waiting(reward, begun)
    reward.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reward
    other.execute("ROLLBACK")
    again = await memory.areinforce("e", reward=1, ids=[made.id])
    assert not again.applied
    assert memory.get(made.id).updates == 1
    assert memory.verify().ok


async def test_cancelled_calls_and_their_repeats_count_once(open_bank, locked):
    memory = open_bank()
    made = memory.remember("reset a router", "lesson")
    begun, other = watch_writes(memory), locked()
    tasks = [
        asyncio.create_task(memory.areinforce(f"e{n}", reward=1, ids=[made.id])) for n in range(5)
    ]
    tasks += [
        asyncio.create_task(memory.aremember("reset a router", f"lesson {n}", episode_id=f"w{n}"))
        for n in range(5)
    ]
    assert await is_waiting(tasks[0], begun)
    for task in tasks:
        task.cancel()
    other.execute("ROLLBACK")
    await asyncio.gather(*tasks, return_exceptions=True)
    for n in range(5):
        await memory.areinforce(f"e{n}", reward=1, ids=[made.id])
        await memory.aremember("reset a router", f"lesson {n}", episode_id=f"w{n}")
    assert memory.get(made.id).updates == 5
    assert memory.get(made.id).q_value == pytest.approx(1 - 0.7**5, abs=1e-12)
    assert memory.stats().memories == 6
    assert memory.verify().ok


async def test_cancelling_while_the_embedder_works_writes_nothing(open_bank):
    embeddings = WaitingEmbeddings()
    memory = open_bank(":memory:", embeddings=embeddings)
    slow = asyncio.create_task(memory.aremember("slow", "lesson", episode_id="e"))
    await embeddings.asked.wait()
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert memory.stats().memories == 0
    embeddings.answer.set()
    assert (await memory.aremember("slow", "lesson", episode_id="e")).intent == "slow"


async def test_a_timed_out_call_can_be_repeated(open_bank, locked):
    memory = open_bank()
    made = memory.remember("reset a router", "lesson")
    other = locked()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(memory.areinforce("e", reward=1, ids=[made.id]), timeout=0.05)
    other.execute("ROLLBACK")
    await memory.areinforce("e", reward=1, ids=[made.id])
    assert memory.get(made.id).updates == 1


def test_closing_finishes_what_was_handed_over(open_bank, locked):
    memory = open_bank()
    made = memory.remember("reset a router", "lesson")
    other = locked()

    async def hand_over():
        begun = watch_writes(memory)
        task = asyncio.create_task(memory.areinforce("e", reward=1, ids=[made.id]))
        assert await is_waiting(task, begun)
        task.cancel()

    asyncio.run(hand_over())
    other.execute("ROLLBACK")
    memory.close()
    assert open_bank().get(made.id).updates == 1


async def test_a_bank_that_is_being_closed_refuses_new_awaited_calls(open_bank, locked):
    memory = open_bank()
    memory.remember("task", "lesson")
    with locked():
        writing = asyncio.create_task(memory.aremember("another", "lesson"))
        await asyncio.sleep(0.05)
        closing = asyncio.create_task(asyncio.to_thread(memory.close))
        await asyncio.sleep(0.05)
        with pytest.raises(StoreError, match="is being closed"):
            await memory.arecall("task")
    await closing
    assert (await writing).intent == "another"
