"""Several processes on one bank: at once, one after another, and forked."""

import asyncio
import threading

import pytest
from children import PROCESSES, SHARED, do, make_bank, open_shared, reward_often, run_all

STEP = 0.3


@pytest.mark.parametrize("attempt", range(3))
def test_processes_may_make_the_same_bank_at_once(folder, attempt):
    start = PROCESSES.Barrier(4)
    codes = run_all(make_bank, [(folder, start, f"process {n}") for n in range(4)])
    assert codes == [0, 0, 0, 0]
    with open_shared(folder) as memory:
        assert memory.stats().memories == 4
        assert memory.verify().ok


def test_four_processes_reward_one_memory_exactly_as_often_as_they_say(folder):
    count = 40
    with open_shared(folder) as memory:
        id = memory.remember(SHARED, "lesson").id
    start = PROCESSES.Barrier(4)
    run_all(reward_often, [(folder, start, id, f"process {n}", count) for n in range(4)])
    with open_shared(folder) as memory:
        found = memory.get(id)
        assert found.updates == 4 * count
        # Q_n = r + (1 - a)^n (Q_0 - r) with r = 1, Q_0 = 0
        assert found.q_value == pytest.approx(1 - (1 - STEP) ** (4 * count), abs=1e-9)
        assert memory.verify().ok


def test_the_next_recall_sees_what_another_process_wrote(folder):
    with open_shared(folder) as memory:
        memory.remember("reset a router", "first")
        assert len(memory.recall("reset a router").ids) == 1
        run_all(do, [(folder, "remember", {"intent": "reset a router", "lesson": "second"})])
        run_all(do, [(folder, "remember", {"intent": "bake a cake", "lesson": "third"})])
        assert len(memory.recall("reset a router").ids) == 2
        assert len(memory.recall("bake a cake").ids) == 1


def test_the_next_recall_does_not_see_what_another_process_forgot(folder):
    with open_shared(folder) as memory:
        gone = memory.remember("reset a router", "first").id
        kept = memory.remember("reset the router", "second").id
        assert set(memory.recall("reset a router").ids) == {gone, kept}
        run_all(do, [(folder, "forget", {"ids": [gone]})])
        assert memory.recall("reset a router", k=1, q_weight=0).ids == (kept,)


def test_the_next_recall_ranks_by_the_q_that_another_process_moved(folder):
    with open_shared(folder) as memory:
        older = memory.remember("reset a router", "first").id
        newer = memory.remember("reset a router", "second").id
        assert memory.recall("reset a router").ids == (newer, older)
        run_all(do, [(folder, "reinforce", {"episode_id": "e", "reward": 1, "ids": [older]})])
        assert memory.recall("reset a router").ids == (older, newer)


# --- forked -----------------------------------------------------------------------------------


@pytest.fixture(params=["disk", "memory"])
def used(request, open_bank):
    """A bank whose verbs were used, awaited too, so that its thread is running."""
    memory = open_bank(":memory:") if request.param == "memory" else open_bank()
    memory.remember("reset a router", "lesson")
    asyncio.run(memory.arecall("reset a router"))
    return memory


def test_a_forked_child_is_refused(used, in_child):
    for call in (lambda: used.recall("reset a router"), used.stats, used.verify):
        answer = in_child(call)
        assert answer.startswith("raised StoreError")
        assert "before this process was forked; open it again" in answer


def test_a_forked_child_that_awaits_is_refused(used, in_child):
    answer = in_child(lambda: asyncio.run(used.arecall("reset a router")))
    assert "before this process was forked; open it again" in answer


def test_a_forked_child_is_refused_although_another_thread_was_writing(used, in_child):
    writing, go_on = threading.Event(), threading.Event()

    def write():
        with used._store._rows.write():
            writing.set()
            go_on.wait()

    thread = threading.Thread(target=write)
    thread.start()
    writing.wait()
    answers = [in_child(used.stats), in_child(used.close)]
    go_on.set()
    thread.join()
    assert "before this process was forked" in answers[0]
    assert answers[1] == "returned None"


def test_the_parent_goes_on_after_a_child_closed_its_copy(used, in_child):
    assert in_child(used.close) == "returned None"
    assert len(used.recall("reset a router").ids) == 1
    assert used.remember("bake a cake", "lesson").intent == "bake a cake"
    assert used.verify().ok


def test_a_forked_child_may_open_the_bank_again(folder, open_bank, in_child):
    open_bank().remember("reset a router", "lesson")
    assert in_child(lambda: len(open_bank().recall("reset a router").ids)) == "returned 1"


# --- a full disk ------------------------------------------------------------------------------
