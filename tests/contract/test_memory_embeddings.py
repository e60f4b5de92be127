"""The embedding model: asked as little as possible, checked, and told apart from another one."""

import numpy as np
import pytest
from fakes import FakeEmbeddings, ProviderError
from langchain_core.embeddings import Embeddings

from langchain_memrl.core.probes import PROBES
from langchain_memrl.errors import EmbeddingError, EmbeddingMismatchError, MemoryNotFoundError
from langchain_memrl.offline import HashingEmbeddings

# --- asked as little as possible --------------------------------------------------------------


def test_a_text_is_asked_for_once_in_its_life(form, open_bank, embeddings):
    memory = form(open_bank())
    memory.remember("reset a router", "lesson")
    assert embeddings.texts == ["reset a router"]
    for _ in range(3):
        memory.recall("reset a router")
        memory.remember("reset a router", "another lesson")
        memory.hold(
            memory.recall("reset a router").recall_id, intent="reset a router", trajectory="t"
        )
    assert embeddings.texts == ["reset a router"]
    memory.close()
    memory = form(open_bank())
    memory.recall("reset a router")
    memory.remember("reset a router", "a third lesson")
    assert embeddings.texts == ["reset a router"]


def test_the_vector_of_a_recalled_task_is_used_when_it_is_remembered(memory, embeddings):
    memory.remember("bake a cake", "lesson")
    memory.recall("reset a router", episode_id="e")
    memory.remember("reset a router", "lesson", episode_id="e")
    assert embeddings.texts == ["bake a cake", "reset a router"]


def test_the_intents_of_another_namespace_are_asked_for_at_most_once_more(memory, embeddings):
    memory.remember("reset a router", "lesson")
    memory.remember("reset a router", "lesson", namespace="acme")
    assert embeddings.texts == ["reset a router"]


def test_the_model_is_checked_once_per_open_bank(form, open_bank, embeddings):
    memory = form(open_bank())
    memory.remember("a", "lesson")
    memory.remember("b", "lesson")
    memory.recall("c")
    assert embeddings.calls == [list(PROBES), ["a"], ["b"], ["c"]]
    memory.close()
    form(open_bank()).recall("a")
    assert embeddings.calls[4:] == [list(PROBES)]


def test_what_needs_no_vector_asks_for_none(memory, embeddings):
    made = memory.remember("a", "lesson")
    memory.recall("a", episode_id="e")
    calls = len(embeddings.calls)
    memory.reinforce("e", reward=1)
    memory.recall("a", episode_id="e")
    memory.get(made.id), memory.list(), memory.stats(), memory.history(made.id)
    memory.update(made.id, lesson="better")
    memory.search_text("better")
    memory.verify()
    memory.forget(ids=[made.id])
    assert len(embeddings.calls) == calls


def test_a_task_is_embedded_as_a_document_awaited_where_the_call_is(open_bank, embeddings, form):
    memory = form(open_bank(":memory:"))
    memory.remember("a", "lesson")
    memory.recall("b")
    awaited = type(memory).__name__ == "AwaitedMemory"
    assert embeddings.awaited == (len(embeddings.calls) if awaited else 0)


def test_a_model_without_an_async_form_can_be_awaited(open_bank, form):
    class Plain(Embeddings):
        def embed_documents(self, texts):
            return HashingEmbeddings(32).embed_documents(texts)

        def embed_query(self, text):
            raise AssertionError

    memory = form(open_bank(":memory:", embeddings=Plain()))
    made = memory.remember("reset a router", "lesson")
    assert memory.recall("reset a router").ids == (made.id,)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_arrays_are_as_good_as_lists(open_bank, form, kind):
    class Arrays(FakeEmbeddings):
        def embed_documents(self, texts):
            return (np.array(super().embed_documents(texts)) * 1000).astype(kind)

    memory = form(open_bank(":memory:", embeddings=Arrays()))
    made = memory.remember("reset a router", "lesson")
    assert memory.recall("reset a router").ids == (made.id,)
    assert memory.verify().ok


# --- bad answers ------------------------------------------------------------------------------

FAULTS = {
    "fewer": r"returned 0 vectors for 1 text",
    "none": r"returned 0 vectors for 1 text",
    "more": r"returned 2 vectors for 1 text",
    "nan": "not finite",
    "infinite": "not finite",
    "zero": "all zero",
    "dimension": r"sizes \[15\], expected 16",
    "text": "numbers only",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_vector_is_refused_by_recall_and_remember_and_not_kept(memory, embeddings, fault):
    memory.remember("reset a router", "lesson")
    for call in (
        lambda: memory.recall("bake a cake", episode_id="e"),
        lambda: memory.remember("bake a cake", "lesson"),
        lambda: memory.hold("h", intent="bake a cake", trajectory="done"),
    ):
        embeddings.break_call(1, fault)
        with pytest.raises(EmbeddingError, match=FAULTS[fault]):
            call()
        assert memory.stats().memories == 1
        assert memory.stats().open_episodes == 0
    memory.recall("bake a cake", episode_id="e")
    memory.remember("bake a cake", "lesson")
    assert memory.stats().memories == 2
    assert memory.verify().ok


@pytest.mark.parametrize("fault", ["shuffled", "sorted", "fewer", "more", "ragged", "nan"])
def test_a_spoilt_batch_stores_nothing(memory, embeddings, fault):
    memory.remember("first", "lesson")
    batch = [{"intent": text, "lesson": f"lesson of {text}"} for text in ("aaaa", "b", "cc", "ddd")]
    embeddings.break_call(1, fault)
    with pytest.raises(EmbeddingError, match="nothing was stored"):
        memory.remember_many(batch)
    embeddings.break_call(1, fault)
    with pytest.raises(EmbeddingError):
        memory.recall_many([one["intent"] for one in batch])
    assert memory.stats().memories == 1
    memory.remember_many(batch)
    for one in batch:
        recalled = memory.recall(one["intent"], k=1, q_weight=0, score_threshold=None)
        assert recalled.memories[0].memory.lesson == one["lesson"]


@pytest.mark.parametrize("fault", [*FAULTS, "ragged"])
def test_a_bad_answer_to_the_probes_is_refused_and_not_kept(form, open_bank, embeddings, fault):
    made = open_bank().remember("reset a router", "lesson")
    memory = form(open_bank())
    embeddings.break_call(1, fault)
    with pytest.raises((EmbeddingError, EmbeddingMismatchError)):
        memory.recall("reset a router")
    assert memory.recall("reset a router").ids == (made.id,)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_error_of_the_provider_at_any_call_leaves_nothing_half_done(
    form, open_bank, embeddings, number
):
    memory = form(open_bank())
    embeddings.break_call(number, "raise")
    tasks = ["a", "b", "c", "d"]
    failures = 0
    for task in tasks:
        try:
            memory.remember(task, "lesson", episode_id=task)
        except ProviderError:
            failures += 1
            memory.remember(task, "lesson", episode_id=task)
    assert failures == 1
    assert [found.intent for found in memory.list()] == tasks[::-1]
    assert memory.verify().ok


def test_a_first_memory_that_fails_leaves_the_bank_open_to_any_model(form, open_bank, embeddings):
    memory = form(open_bank(embeddings=embeddings))
    embeddings.break_call(2, "raise")
    with pytest.raises(ProviderError):
        memory.remember("task", "lesson")
    other = form(open_bank(embeddings=FakeEmbeddings(8, model="other")))
    other.remember("task", "lesson")
    with pytest.raises(EmbeddingMismatchError):
        memory.remember("task", "lesson")


def test_one_bad_vector_among_many_names_its_place(memory, embeddings):
    memory.remember("first", "lesson")
    embeddings.break_call(1, "nan")
    with pytest.raises(EmbeddingError, match="for text 2 of 3"):
        memory.recall_many(["a", "b", "c"])


def test_a_wrong_answer_to_the_probes_is_not_kept_for_the_next_call(form, open_bank, embeddings):
    open_bank().remember("reset a router", "lesson")
    memory = form(open_bank())
    embeddings.break_call(1, "shuffled")
    with pytest.raises(EmbeddingError, match="in another order"):
        memory.recall("reset a router")
    assert len(memory.recall("reset a router").ids) == 1


# --- another model ----------------------------------------------------------------------------

OTHERS = {
    "another model": FakeEmbeddings(model="other"),
    "another dimension": FakeEmbeddings(dimension=8),
}


@pytest.fixture(params=OTHERS)
def other(request, form, open_bank):
    """A bank with one rewarded memory, opened with other embeddings."""
    with open_bank() as memory:
        memory.remember("reset a router", "lesson", episode_id="w")
        memory.recall("reset a router", episode_id="e")
    return form(open_bank(embeddings=OTHERS[request.param]))


def test_another_model_is_refused_at_the_first_recall_and_remember(other):
    for _ in range(2):
        for call in (
            lambda: other.recall("reset a router"),
            lambda: other.recall("bake a cake", episode_id="new"),
            lambda: other.remember("reset a router", "lesson"),
            lambda: other.remember_many([{"intent": "a", "lesson": "b"}]),
            lambda: other.hold("h", intent="reset a router", trajectory="done"),
        ):
            with pytest.raises(EmbeddingMismatchError, match="built with FakeEmbeddings fake"):
                call()
    assert (other.stats().memories, other.stats().episodes) == (1, 2)


def test_with_another_model_all_that_needs_no_vector_still_works(other):
    (found,) = other.list()
    assert other.get(found.id) == found
    assert other.search_text("router") == [found]
    assert other.stats().memories == 1
    assert other.recall("reset a router", episode_id="e").ids == (found.id,)
    assert other.reinforce("e", reward=1).applied
    assert len(other.history(found.id)) == 1
    assert other.update(found.id, lesson="better").lesson == "better"
    assert other.verify().ok
    other.rebuild_index()
    assert other.forget(ids=[found.id]) == (found.id,)
    assert other.list() == []


def test_the_refusal_names_both_models_and_changes_nothing(form, open_bank):
    with open_bank() as memory:
        memory.remember("reset a router", "lesson")
    memory = form(open_bank(embeddings=FakeEmbeddings(dimension=8, model="small")))
    with pytest.raises(EmbeddingMismatchError) as caught:
        memory.remember("bake a cake", "lesson")
    for words in ("FakeEmbeddings fake (16 dimensions)", "FakeEmbeddings small (8 dimensions)"):
        assert words in str(caught.value)
    memory.close()
    assert len(form(open_bank()).recall("reset a router").ids) == 1


def test_the_same_model_on_another_processor_is_the_same_model(form, open_bank):
    class Noisy(FakeEmbeddings):
        def vector(self, text):
            return (np.array(super().vector(text)) + 1e-4).astype(np.float32).tolist()

    with open_bank() as memory:
        made = memory.remember("reset a router", "lesson")
    memory = form(open_bank(embeddings=Noisy(model="fake")))
    assert memory.recall("reset a router").ids == (made.id,)


def test_a_second_open_bank_checks_for_itself(open_bank, form):
    open_bank().remember("reset a router", "lesson")
    with pytest.raises(EmbeddingMismatchError):
        form(open_bank(embeddings=FakeEmbeddings(model="other"))).recall("x")


# --- none -------------------------------------------------------------------------------------


def test_without_embeddings_only_what_needs_a_vector_is_refused(form, open_bank):
    with open_bank() as memory:
        made = memory.remember("reset a router", "lesson")
    memory = form(open_bank(embeddings=None))
    for call in (
        lambda: memory.recall("reset a router"),
        lambda: memory.remember("bake a cake", "lesson"),
    ):
        with pytest.raises(EmbeddingError, match=r"open it with embeddings=\.\.\."):
            call()
    assert memory.list() == [made]
    assert memory.reinforce("e", reward=1, ids=[made.id]).applied
    memory.forget(ids=[made.id])
    with pytest.raises(MemoryNotFoundError):
        memory.get(made.id)


def test_a_new_bank_without_embeddings_recalls_nothing(form, open_bank):
    assert form(open_bank(embeddings=None)).recall("reset a router").ids == ()
