"""What happens at the same time, in threads, event loops and processes, stays consistent."""

import asyncio
import itertools
import random
import threading
import time

import pytest
from children import PROCESSES
from fakes import AwaitedMemory, FakeEmbeddings
from langchain_core.embeddings import Embeddings
from workers import open_bank, reward_in, search_while_changing, write_in

from langchain_memrl.errors import EpisodeError, MemoryNotFoundError
from langchain_memrl.store.embedded.local import LocalStore

NEAREST = {"score_threshold": None, "q_weight": 0}


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_searching_while_others_add_and_delete_never_crashes_the_interpreter(folder, awaited, much):
    """In a process of its own: a fault inside FAISS would kill it."""
    reader, writer = PROCESSES.Pipe(duplex=False)
    arguments = (folder, much(2, 60), awaited, writer)
    child = PROCESSES.Process(target=search_while_changing, args=arguments)
    child.start()
    writer.close()
    child.join()
    assert child.exitcode == 0
    searches, changes, errors = reader.recv()
    assert errors == []
    assert searches > 10
    assert changes > 10
    with open_bank(folder) as memory:
        assert memory.verify().problems == ()


class SlowEmbeddings(FakeEmbeddings):
    """A model without an async form that answers for one text when it is told to."""

    aembed_documents = Embeddings.aembed_documents

    def __init__(self):
        super().__init__()
        self.go_on = threading.Event()

    def embed_documents(self, texts):
        assert "slow" not in texts or self.go_on.wait(30)
        return super().embed_documents(texts)


def test_no_awaited_call_stops_the_loop_or_waits_for_a_slow_one(open_bank):
    embeddings, turns = SlowEmbeddings(), itertools.count()
    memory = open_bank(embeddings=embeddings)
    id = memory.remember("task 0", "lesson").id

    async def tick():
        for _ in turns:
            await asyncio.sleep(0.001)

    async def work():
        ticker = asyncio.create_task(tick())
        slow = asyncio.create_task(memory.aremember("slow", "lesson"))
        await asyncio.gather(
            *(memory.arecall(f"task {n}", episode_id=f"e {n}") for n in range(50)),
            *(memory.areinforce(f"r {n}", reward=1, ids=[id]) for n in range(50)),
        )
        assert memory.recall("task 0", **NEAREST).ids == (id,)  # blocking, inside a coroutine
        assert not slow.done()
        assert next(turns) > 10
        embeddings.go_on.set()
        await slow
        ticker.cancel()

    asyncio.run(work(), debug=True)
    assert memory.get(id).updates == 50
    assert memory.stats().memories == 2
    assert memory.verify().ok


def test_a_memory_deleted_while_it_is_rewarded_is_gone_and_never_made_anew(open_bank):
    memory = open_bank()
    rng = random.Random(12)
    for round_number in range(30):
        made = [memory.remember(f"task {n}", "lesson").id for n in range(3)]
        start, results = threading.Barrier(4), []

        def run(call, start=start, results=results):
            start.wait()
            time.sleep(rng.uniform(0, 0.002))
            try:
                results.append(call())
            except (MemoryNotFoundError, EpisodeError) as error:
                results.append(error)

        calls = [
            lambda ids=made: memory.forget(ids=[ids[1]]),
            lambda ids=made: memory.forget(ids=ids[1:]),
            lambda ids=made, n=round_number: memory.reinforce(f"a {n}", reward=1, ids=ids),
            lambda ids=made, n=round_number: memory.reinforce(f"b {n}", reward=1, ids=ids[1:]),
        ]
        threads = [threading.Thread(target=run, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        left = memory.list()
        # Either both were deleted, or only the first, where the other call came too late.
        assert [one.id for one in left] in ([made[0]], [made[2], made[0]])
        rewards = len(memory.history(made[0]))
        assert memory.get(made[0]).updates == rewards
        assert memory.get(made[0]).q_value == pytest.approx(1 - 0.7**rewards, abs=1e-12)
        assert made[1] not in memory.recall("task 1", **NEAREST).ids
        assert memory.verify().problems == ()
        with pytest.raises(MemoryNotFoundError):
            memory.reinforce(f"late {round_number}", reward=1, ids=[made[1]])
        with pytest.raises(MemoryNotFoundError):
            memory.forget(ids=[made[1]])
        memory.forget(all=True)


def in_two_processes(target, *arguments):
    """Run it in two processes at once; what each of them tells."""
    start, answers = PROCESSES.Barrier(2), PROCESSES.Queue()
    children = [
        PROCESSES.Process(target=target, args=(*arguments, name, start, answers)) for name in "ab"
    ]
    for child in children:
        child.start()
    told = [answers.get(timeout=60) for _ in children]
    for child in children:
        child.join()
    return told


def test_two_processes_writing_for_one_episode_write_one_memory(folder):
    open_bank(folder).close()
    told = in_two_processes(write_in, folder, 30)
    assert told[0] == told[1]
    with open_bank(folder) as memory:
        assert [one.id for one in reversed(memory.list())] == told[0]
        for one in memory.list():
            assert memory.recall(one.intent, k=1, **NEAREST).ids == (one.id,)
        assert memory.verify().ok


def test_a_reward_that_comes_before_its_recall_may_be_repeated_and_counts_once(folder):
    """One process recalls, the other one rewards and asks again until the recall is there."""
    with open_bank(folder) as memory:
        id = memory.remember("task", "lesson").id
    told = in_two_processes(reward_in, folder, 30)
    assert sorted(told)[0] == "recalled"
    with open_bank(folder) as memory:
        found = memory.get(id)
        assert (found.updates, found.selections) == (30, 30)
        assert found.q_value == pytest.approx(1 - 0.7**30, abs=1e-12)


@pytest.mark.parametrize("form", [lambda memory: memory, AwaitedMemory], ids=["plain", "awaited"])
def test_a_view_and_its_bank_share_every_lock(open_bank, form):
    memory = open_bank()
    views = [form(memory.in_namespace(name)) for name in ("acme", "globex")]
    ids = [view.remember("task", "lesson").id for view in views]

    def work(view, id):
        for number in range(20):
            view.reinforce(f"e {number}", reward=1, ids=[id])

    threads = [threading.Thread(target=work, args=pair) for pair in zip(views, ids, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [view.get(id).updates for view, id in zip(views, ids, strict=True)] == [20, 20]


def test_a_deletion_in_the_middle_of_a_recall_takes_no_place(open_bank, monkeypatch):
    memory = open_bank()
    ids = [memory.remember(f"task {n}", "lesson").id for n in range(20)]
    original = LocalStore.memories

    def memories(store, namespace, wanted):
        monkeypatch.setattr(LocalStore, "memories", original)
        memory.forget(ids=[wanted[0]])
        return original(store, namespace, wanted)

    monkeypatch.setattr(LocalStore, "memories", memories)
    found = memory.recall("task 3", k=5, fetch_k=20, score_threshold=None, q_weight=0)
    assert len(ids) == 20
    assert len(found.ids) == 5
