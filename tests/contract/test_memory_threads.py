"""Threads that share one bank: counts stay exact, and every answer is from a state that existed."""

import threading

import pytest
from fakes import FakeEmbeddings

from langchain_memrl.errors import MemRLError, RewardConflictError


def in_threads(count, work):
    """Run work(n) in `count` threads at once; what each returned or raised."""
    start, results = threading.Barrier(count), [None] * count

    def run(n):
        start.wait()
        try:
            results[n] = work(n)
        except MemRLError as error:
            results[n] = error

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.fixture(params=["disk", "memory"])
def shared(request, open_bank):
    return open_bank(":memory:") if request.param == "memory" else open_bank()


def test_eight_threads_hammering_one_episode_reward_it_once(shared):
    made = shared.remember("reset a router", "lesson")
    shared.recall("reset a router", episode_id="e")
    results = in_threads(8, lambda n: [shared.reinforce("e", reward=1).applied for _ in range(10)])
    assert sum(applied for one in results for applied in one) == 1
    assert shared.get(made.id).updates == 1
    assert shared.get(made.id).q_value == pytest.approx(0.3)


def test_of_two_different_rewards_at_once_one_wins_and_the_other_is_told(shared):
    made = shared.remember("reset a router", "lesson")
    for episode in range(10):
        results = in_threads(
            2, lambda n, e=episode: shared.reinforce(f"e{e}", reward=(1, -1)[n], ids=[made.id])
        )
        assert sorted(isinstance(result, RewardConflictError) for result in results) == [
            False,
            True,
        ]
    assert shared.get(made.id).updates == 10


def test_eight_threads_follow_the_closed_form_exactly(shared):
    made = shared.remember("reset a router", "lesson")

    def work(n):
        for step in range(25):
            shared.recall("reset a router", episode_id=f"{n} {step}")
            shared.reinforce(f"{n} {step}", reward=1)

    in_threads(8, work)
    found = shared.get(made.id)
    assert (found.updates, found.selections) == (200, 200)
    assert found.q_value == pytest.approx(1 - 0.7**200, abs=1e-9)
    assert shared.verify().ok


def test_threads_writing_for_one_episode_write_one_memory(shared):
    made = in_threads(8, lambda n: shared.remember("task", "lesson", episode_id="e").id)
    assert len(set(made)) == 1
    assert shared.stats().memories == 1


def test_threads_recording_one_episode_all_see_the_same_ids(shared):
    for n in range(20):
        shared.remember("task", f"lesson {n}")
    recalls = in_threads(8, lambda n: shared.recall("task", episode_id="e", epsilon=1.0, k=3).ids)
    assert len(set(recalls)) == 1
    assert shared.stats().selections == 3


def test_searching_while_others_add_and_delete_gives_only_what_existed(shared):
    first = [shared.remember(f"task {n}", "lesson").id for n in range(30)]
    everything, done = set(first), threading.Event()

    def add(n):
        for number in range(40):
            everything.add(shared.remember(f"new {number}", "lesson").id)
        return []

    def delete(n):
        for id in first:
            shared.forget(ids=[id])
        done.set()
        return []

    def search(n):
        found = []
        while not done.is_set() or not found:
            recall = shared.recall("task 3", k=10, fetch_k=10, score_threshold=None, q_weight=0)
            assert len(set(recall.ids)) == len(recall.ids)
            similarities = [hit.similarity for hit in recall.memories]
            assert similarities == sorted(similarities, reverse=True)
            found += recall.ids
        return found

    results = in_threads(4, lambda n: (add, delete, search, search)[n](n))
    assert not [result for result in results if isinstance(result, Exception)]
    assert {id for found in results for id in found} <= everything
    assert not set(shared.recall("task 3", k=99, fetch_k=99, score_threshold=None).ids) & set(first)
    assert shared.verify().ok


def test_two_tenants_with_four_threads_each_never_meet(shared):
    def work(n):
        space = ("acme", "globex")[n % 2]
        view, seen = shared.in_namespace(space), []
        for step in range(10):
            view.remember(f"task {step}", f"canary of {space}", episode_id=f"w {n} {step}")
            recall = view.recall(f"task {step}", episode_id=f"e {n} {step}", score_threshold=None)
            view.reinforce(f"e {n} {step}", reward=1)
            seen += [hit.memory.lesson for hit in recall.memories]
        return space, set(seen)

    for space, seen in in_threads(8, work):
        assert seen == {f"canary of {space}"}
    assert shared.stats(namespace="acme").memories == 40
    assert shared.verify().ok


def test_a_model_asked_by_many_threads_is_checked_and_answers_all(open_bank):
    embeddings = FakeEmbeddings()
    memory = open_bank(":memory:", embeddings=embeddings)
    made = in_threads(8, lambda n: memory.remember(f"task {n}", "lesson"))
    assert {one.intent for one in made} == {f"task {n}" for n in range(8)}
    assert sorted(set(embeddings.texts)) == sorted(f"task {n}" for n in range(8))
    assert memory.verify().ok
