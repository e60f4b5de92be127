"""What is deleted is gone: from answers, from places among the nearest, wholly or not at all."""

import random
import shutil

import numpy as np
import pytest
from children import PROCESSES
from fakes import FakeEmbeddings
from workers import forget_all, open_bank

from langchain_memrl.core.scoring import cosines
from langchain_memrl.errors import MemoryNotFoundError

TASK = "what is looked for"
NEAREST = {"k": 10, "fetch_k": 10, "q_weight": 0, "score_threshold": None}
SIZES = {"user 1": 250, "user 2": 1, "user 3": 0}


def brute_force(memory):
    """The ten nearest of what is listed, by NumPy alone."""
    found = memory.list(limit=None)
    if not found:
        return []
    vectors = np.array([FakeEmbeddings().vector(one.intent) for one in found], dtype=np.float32)
    near = cosines(vectors, np.array(FakeEmbeddings().vector(TASK), dtype=np.float32))
    order = sorted(range(len(found)), key=lambda place: (-near[place], place))[:10]
    return [(found[place].id, pytest.approx(near[place], abs=2e-6)) for place in order]


def nearest(memory):
    return [(hit.id, hit.similarity) for hit in memory.recall(TASK, **NEAREST).memories]


def test_the_nearest_can_be_deleted_again_and_again_until_nothing_is_left(folder):
    with open_bank(folder) as memory:
        for number in range(100):
            memory.remember(f"task {number}", "lesson")
    for left in range(100, 0, -10):
        with open_bank(folder) as memory:
            first = nearest(memory)
            assert len(first) == 10
            assert first == brute_force(memory)
            memory.forget(ids=[id for id, _ in first])
            assert nearest(memory) == brute_force(memory)
            if left % 30 == 10:
                memory.compact()
            assert memory.verify().problems == ()
            assert memory.verify().intents == left - 10
    with open_bank(folder) as memory:
        assert nearest(memory) == []
        made = memory.remember("the first one again", "lesson")
        assert nearest(memory)[0][0] == made.id


def test_a_deleted_memory_is_unknown_to_every_call(bank):
    id = bank.remember("task", "lesson").id
    bank.forget(ids=[id])
    for call in (
        lambda: bank.get(id),
        lambda: bank.history(id),
        lambda: bank.update(id, lesson="other"),
        lambda: bank.disable(id),
        lambda: bank.pin(id),
        lambda: bank.forget(ids=[id]),
        lambda: bank.reinforce("e", reward=1, ids=[id]),
    ):
        with pytest.raises(MemoryNotFoundError, match=id):
            call()
    assert bank.list() == []
    assert bank.verify().ok


def test_deleting_a_tenant_is_all_or_nothing_under_kill_9_and_a_repeat_finishes_it(
    folder, tmp_path, much
):
    with open_bank(folder) as memory:
        for name, size in SIZES.items():
            drafts = [{"intent": f"task {n}", "lesson": f"of {name}"} for n in range(size)]
            memory.remember_many(drafts, namespace=name)
        others = {name: memory.list(namespace=name) for name in SIZES if name != "user 1"}
    rng, left = random.Random(2), []
    for attempt in range(much(15, 300)):
        copy = tmp_path / str(attempt)
        shutil.copytree(folder, copy)
        ready = PROCESSES.Barrier(2)
        child = PROCESSES.Process(target=forget_all, args=(copy, "user 1", ready))
        child.start()
        ready.wait()
        child.join(timeout=rng.uniform(0, 0.015))
        child.kill()
        child.join()
        with open_bank(copy) as memory:
            left.append(memory.stats(namespace="user 1").memories)
            assert len(memory.forget(all=True, namespace="user 1")) == left[-1]
            assert memory.list(namespace="user 1") == []
            assert {name: memory.list(namespace=name) for name in others} == others
            assert memory.verify().problems == ()
        shutil.rmtree(copy)
    assert set(left) <= {0, 250}
    assert 250 in left
