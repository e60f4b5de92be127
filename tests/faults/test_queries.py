"""Whatever is asked: an answer from this namespace, or one of our errors; never a stranger's."""

import itertools
import time

import pytest

from langchain_memrl.errors import ConfigError

SIZES = (0, 1, 7)
QUERIES = ("", " ", "\u200b", "task 0", "task", "something else entirely")
EVERYTHING = {"fetch_k": 1000, "score_threshold": None}


@pytest.fixture(params=SIZES, ids=lambda size: f"{size} memories")
def crowd(request, memory):
    """Some memories here, and many of the same tasks in another namespace."""
    drafts = [{"intent": f"task {number}", "lesson": "mine"} for number in range(request.param)]
    strangers = [{"intent": f"task {number}", "lesson": "not mine"} for number in range(20)]
    memory.remember_many(drafts)
    memory.remember_many(strangers, namespace="other")
    return memory, request.param


def test_an_answer_holds_at_most_k_and_only_what_is_here(crowd):
    memory, size = crowd
    for query, k in itertools.product(QUERIES, (1, 5, 1000)):
        hits = memory.recall(query, k=k, **EVERYTHING).memories
        assert len(hits) == (min(k, size) if query.strip(" \u200b") else 0)
        assert len({hit.id for hit in hits}) == len(hits)
        assert {hit.memory.lesson for hit in hits} <= {"mine"}
        assert all(-1 <= hit.similarity <= 1 for hit in hits)


def test_a_count_below_one_is_an_error_whatever_is_asked_and_however_much_is_there(crowd):
    memory, _ = crowd
    for query, name, count in itertools.product(QUERIES, ("k", "fetch_k"), (0, -1)):
        with pytest.raises(ConfigError, match=f"{name} is {count}"):
            memory.recall(query, **{name: count})


def test_the_one_memory_a_filter_lets_through_is_found_behind_a_thousand_nearer_ones(open_bank):
    memory = open_bank(":memory:")
    draft = {"lesson": "lesson", "metadata": {"tenant": 1}}
    memory.remember_many([draft | {"intent": f"task {n}"} for n in range(1000)])
    nearest_first = memory.recall("task 1", k=1000, fetch_k=1000, score_threshold=None, q_weight=0)
    far = nearest_first.memories[-1].memory
    memory.update(far.id, metadata={"tenant": 2})
    waits = {1: [], 2: []}
    for tenant, waited in waits.items():
        for _ in range(10):
            before = time.perf_counter()
            found = memory.recall(
                "task 1", k=1, fetch_k=1, score_threshold=None, filter={"tenant": tenant}
            )
            waited.append(time.perf_counter() - before)
    assert found.ids == (far.id,)
    assert min(waits[2]) < 5 * min(waits[1])
