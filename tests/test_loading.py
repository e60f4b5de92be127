"""Loading many memories at once, and what is known when it stops in the middle."""

from types import MappingProxyType

import pytest
from fakes import ProviderError

from langchain_memrl import load_memories
from langchain_memrl.errors import InputError, PartialLoadError

FIFTY = [{"intent": f"task {n}", "lesson": f"lesson {n}"} for n in range(50)]


def test_everything_is_stored_in_order_and_progress_is_told(bank):
    told = []
    made = load_memories(bank, FIFTY, batch_size=20, progress=lambda *step: told.append(step))
    assert [one.lesson for one in made] == [one["lesson"] for one in FIFTY]
    assert told == [(20, 50), (40, 50), (50, 50)]
    assert bank.stats().memories == 50


def test_a_rate_limit_in_the_middle_leaves_a_clear_list_of_what_is_stored(bank, embeddings):
    embeddings.break_call(4, "raise")  # the probes, two batches, and then
    with pytest.raises(PartialLoadError, match="20 of 50 memories are stored") as caught:
        load_memories(bank, FIFTY, batch_size=10)
    assert isinstance(caught.value.__cause__, ProviderError)
    assert [bank.get(id).intent for id in caught.value.stored] == [f"task {n}" for n in range(20)]
    assert caught.value.missing == tuple(range(20, 50))
    assert bank.stats().memories == 20


def test_the_same_call_again_completes_it_without_twins(bank, embeddings):
    embeddings.break_call(4, "raise")
    with pytest.raises(PartialLoadError) as caught:
        load_memories(bank, FIFTY, batch_size=10)
    made = load_memories(bank, FIFTY, batch_size=7)
    assert [one.id for one in made[:20]] == list(caught.value.stored)
    assert [one.intent for one in bank.list(limit=None)] == [f"task {n}" for n in range(49, -1, -1)]
    assert [one.id for one in load_memories(bank, FIFTY)] == [one.id for one in made]
    assert bank.stats().memories == 50
    assert sorted(embeddings.texts) == sorted(
        [one["intent"] for one in FIFTY] + [f"task {n}" for n in range(20, 30)]
    )


def test_a_provider_that_stays_down_is_asked_once_a_call(bank, embeddings):
    bank.remember("task", "lesson")
    before = len(embeddings.calls)
    for number in (1, 2, 3):
        embeddings.break_call(1, "raise")
        with pytest.raises(PartialLoadError, match="0 of 50"):
            load_memories(bank, FIFTY, batch_size=10)
        assert len(embeddings.calls) == before + number


def test_episode_ids_that_are_given_stay(bank):
    items = [one | {"episode_id": f"job {n}"} for n, one in enumerate(FIFTY[:3])]
    assert [one.episode_id for one in load_memories(bank, items)] == ["job 0", "job 1", "job 2"]
    changed = [items[0] | {"lesson": "another"}]
    with pytest.raises(PartialLoadError, match="WriteConflictError"):
        load_memories(bank, changed)


def test_one_unusable_memory_stores_nothing_and_asks_no_embedder(bank, embeddings):
    for bad in ({"intent": "", "lesson": "x"}, {"intent": "x", "lesson": "y", "outcome": "maybe"}):
        with pytest.raises(InputError):
            load_memories(bank, [*FIFTY, bad], batch_size=10)
    with pytest.raises(TypeError):
        load_memories(bank, [*FIFTY, {"intent": "x", "lesson": "y", "lessson": "z"}])
    assert (bank.stats().memories, embeddings.calls) == (0, [])


@pytest.mark.parametrize("size", [0, -1, 1.5, True])
def test_an_unusable_batch_size_is_refused(bank, size):
    with pytest.raises(InputError):
        load_memories(bank, FIFTY, batch_size=size)


def test_a_namespace_may_be_given_or_be_that_of_a_view(bank):
    load_memories(bank, FIFTY[:2], namespace="acme")
    load_memories(bank.in_namespace("other"), FIFTY[:3])
    assert [bank.stats(namespace=name).memories for name in ("acme", "other")] == [2, 3]
    assert bank.stats().memories == 0


def test_any_iterable_will_do(bank):
    assert len(load_memories(bank, (one for one in FIFTY), batch_size=7)) == 50


def test_what_was_forgotten_since_stays_forgotten_and_the_rest_is_loaded(bank):
    made = load_memories(bank, FIFTY[:10])
    bank.forget(ids=[made[3].id, made[4].id])
    again = load_memories(bank, FIFTY)
    assert [one.intent for one in again] == [
        one["intent"] for place, one in enumerate(FIFTY) if place not in (3, 4)
    ]
    assert bank.stats().memories == 48


def test_metadata_may_be_any_mapping(bank):
    one = {"intent": "task", "lesson": "x", "metadata": MappingProxyType({"a": 1})}
    assert load_memories(bank, [one])[0].metadata == {"a": 1}


def test_the_reason_of_a_refusal_is_said(bank, embeddings):
    embeddings.break_call(2, "nan")
    with pytest.raises(PartialLoadError, match="not finite"):
        load_memories(bank, FIFTY)
