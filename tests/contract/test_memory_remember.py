"""What is written, how often, and what is refused."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from fakes import ProviderError

from langchain_memrl.errors import (
    EmbeddingError,
    EpisodeError,
    InputError,
    MemoryNotFoundError,
    WriteConflictError,
)

# --- one memory -------------------------------------------------------------------------------


def test_a_memory_comes_back_with_everything_that_was_given(memory):
    before = datetime.now(UTC)
    made = memory.remember(
        "reset a router",
        "hold the button",
        trajectory="1. looked\n2. pressed",
        outcome="success",
        episode_id="e",
        parents=["p1", "p2"],
        source="runbook",
        metadata={"customer": 7},
    )
    assert made == memory.get(made.id)
    assert (made.intent, made.lesson, made.trajectory) == (
        "reset a router",
        "hold the button",
        "1. looked\n2. pressed",
    )
    assert (made.outcome, made.episode_id, made.source) == ("success", "e", "runbook")
    assert (made.parents, made.derived_from) == (("p1", "p2"), ())
    assert (made.q_value, made.updates, made.selections) == (0, 0, 0)
    assert (made.namespace, made.trust, made.metadata) == ("default", "trusted", {"customer": 7})
    assert made.experience == "hold the button\n\n1. looked\n2. pressed"
    assert before <= made.created_at <= datetime.now(UTC)
    assert made.created_at.utcoffset() == timedelta(0)
    assert made.updated_at == made.created_at
    assert not made.raw


def test_the_defaults_are_the_documented_ones(memory):
    made = memory.remember("reset a router", "hold the button")
    assert (made.trajectory, made.outcome, made.source) == ("", "unknown", "agent")
    assert (made.parents, made.metadata) == ((), {})


def test_ids_are_uuids_in_the_order_of_writing(memory):
    ids = [memory.remember("task", f"lesson {n}").id for n in range(20)]
    assert [str(uuid.UUID(id)) for id in ids] == ids == sorted(ids)
    assert len(set(ids)) == 20


def test_failures_are_kept_like_successes(memory):
    for outcome in ("success", "failure", "unknown"):
        memory.remember("reset a router", f"{outcome} lesson", outcome=outcome)
    found = {hit.memory.outcome for hit in memory.recall("reset a router").memories}
    assert found == {"success", "failure", "unknown"}


def test_a_memory_without_a_lesson_is_raw(memory):
    made = memory.remember("reset a router", None, trajectory="looked, pressed")
    assert made.raw
    assert (made.lesson, made.experience) == ("", "looked, pressed")
    memory.remember("bake a cake", "weigh the flour")
    assert [found.id for found in memory.list(raw=True)] == [made.id]
    assert memory.stats().raw == 1


def test_the_next_recall_finds_it(memory):
    memory.remember("bake a cake", "weigh the flour")
    assert memory.recall("reset a router", score_threshold=0.99).ids == ()
    made = memory.remember("reset a router", "hold the button")
    assert memory.recall("reset a router", score_threshold=0.99).ids == (made.id,)


def test_a_tried_task_has_one_intent_and_many_memories(memory):
    for n in range(5):
        memory.remember("reset a router", f"attempt {n}")
    stats = memory.stats()
    assert (stats.intents, stats.memories) == (1, 5)


def test_intents_are_told_apart_exactly(memory):
    texts = ["reset", "Reset", "reset ", "reset\n", "re\u0301set", "r\u00e9set"]
    for text in texts:
        memory.remember(text, "lesson")
    assert memory.stats().intents == len(texts)


def test_the_callers_metadata_is_neither_kept_nor_changed(memory):
    metadata = {"tags": ["a"]}
    made = memory.remember("task", "lesson", metadata=metadata)
    metadata["tags"].append("b")
    assert memory.get(made.id).metadata == {"tags": ["a"]}


def test_metadata_with_an_lc_key_is_plain_data(memory):
    metadata = {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}}
    made = memory.remember("task", "lesson", metadata=metadata)
    assert memory.get(made.id).metadata == metadata


# --- once per episode -------------------------------------------------------------------------


def test_without_an_episode_id_every_call_writes_in_an_episode_of_its_own(memory):
    made = [memory.remember("task", "lesson") for _ in range(3)]
    assert len({one.id for one in made}) == len({one.episode_id for one in made}) == 3
    assert memory.episode(made[0].episode_id).memory_id == made[0].id


def test_the_same_again_returns_the_first_memory(memory):
    values = {"trajectory": "t", "outcome": "success", "metadata": {"a": 1}, "episode_id": "e"}
    first = memory.remember("task", "lesson", **values)
    memory.reinforce("other", reward=1, ids=[first.id])
    again = memory.remember("task", "lesson", **values)
    assert again.id == first.id
    assert again.q_value == pytest.approx(0.3)
    assert memory.stats().memories == 1


def test_the_same_again_after_reopening_returns_the_first_memory(form, open_bank):
    memory = form(open_bank())
    first = memory.remember("task", "lesson", episode_id="e")
    memory.close()
    memory = form(open_bank())
    assert memory.remember("task", "lesson", episode_id="e") == first


@pytest.mark.parametrize(
    "change",
    [
        *({"lesson": "other"}, {"intent": "other"}, {"trajectory": "other"}),
        *({"outcome": "failure"}, {"metadata": {"a": 1}}, {"source": "other"}, {"lesson": None}),
    ],
    ids=str,
)
def test_a_different_memory_on_the_same_episode_is_a_conflict(memory, change):
    values = {"intent": "task", "lesson": "lesson", "trajectory": "t", "episode_id": "e"}
    first = memory.remember(**values)
    with pytest.raises(WriteConflictError, match="already wrote memory"):
        memory.remember(**values | change)
    assert memory.list() == [first]
    assert isinstance(WriteConflictError(), EpisodeError)


def test_the_episode_id_of_another_namespace_is_another_episode(memory):
    memory.remember("task", "lesson", episode_id="e")
    memory.remember("task", "another lesson", episode_id="e", namespace="acme")
    assert memory.stats().memories == memory.stats(namespace="acme").memories == 1


def test_a_forgotten_memory_is_not_written_a_second_time(memory):
    made = memory.remember("task", "lesson", episode_id="e")
    memory.forget(ids=[made.id])
    with pytest.raises(MemoryNotFoundError):
        memory.remember("task", "lesson", episode_id="e")
    assert memory.list() == []


def test_writing_before_the_reward_and_after_it_is_the_same(memory):
    parent = memory.remember("reset a router", "hold the button")
    for order in ("before", "after"):
        memory.recall("reset a router", episode_id=order, k=1, score_threshold=None)
        steps = [
            lambda order=order: memory.remember("reset a modem", "pull the plug", episode_id=order),
            lambda order=order: memory.reinforce(order, reward=1),
        ]
        for step in steps if order == "before" else steps[::-1]:
            step()
        episode = memory.episode(order)
        assert episode.reward == 1
        assert memory.get(episode.memory_id).q_value == 0
        assert memory.get(episode.memory_id).parents == episode.memory_ids
    assert memory.get(parent.id).updates >= 1


# --- parents ----------------------------------------------------------------------------------


def test_the_parents_are_what_the_episode_showed(memory):
    shown = [memory.remember(f"task {n}", "lesson").id for n in range(2)]
    memory.recall("task", episode_id="e", score_threshold=None)
    made = memory.remember("task", "what this taught", episode_id="e")
    assert set(made.parents) == set(shown)
    assert memory.remember("task", "nothing was shown", episode_id="e2").parents == ()


def test_parents_given_by_the_caller_stand(memory):
    memory.remember("task 1", "lesson")
    memory.recall("task", episode_id="e", score_threshold=None)
    assert memory.remember("task", "lesson", episode_id="e", parents=["x"]).parents == ("x",)


@pytest.mark.parametrize("parents", ["an id", [None], [3], [""], ["x" * 256]])
def test_parents_have_to_be_a_list_of_ids(memory, parents):
    with pytest.raises(InputError, match="parent"):
        memory.remember("reset a router", "lesson", parents=parents)
    assert memory.list() == []


# --- refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "name"),
    [
        *(({"intent": value}, "intent") for value in ("", " \n", "\u200b", None, 3, "a\x00")),
        *(({"lesson": value}, "lesson") for value in ("", "\u200b", 3, "a\x00", "\ud800")),
        *(({"trajectory": value}, "trajectory") for value in (None, 3, "\udc00")),
        ({"lesson": None, "trajectory": " "}, "trajectory"),
        *(({"outcome": value}, "outcome") for value in ("won", "", None, True, 1)),
        *(({"source": value}, "source") for value in ("", None, "x" * 256)),
        *(({"metadata": value}, "metadata") for value in ([], {"a": float("nan")}, {1: 2})),
        *(({"namespace": value}, "namespace") for value in ("", " ", 3, "x" * 256)),
        *(({name: "x" * (2**20 + 1)}, name) for name in ("intent", "lesson", "trajectory")),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_what_cannot_be_stored_is_refused_before_the_embedder_is_asked(
    memory, embeddings, change, name
):
    values = {"intent": "task", "lesson": "lesson"} | change
    with pytest.raises(InputError, match=name):
        memory.remember(**values)
    assert embeddings.calls == []
    assert memory.stats().episodes == 0


def test_arguments_are_named_and_unknown_ones_are_type_errors(memory):
    with pytest.raises(TypeError):
        memory.remember("task", "lesson", "trajectory")
    with pytest.raises(TypeError):
        memory.remember("task", "lesson", reward=1)
    with pytest.raises(TypeError):
        memory.remember("task")
    assert memory.list() == []


def test_a_failing_embedder_leaves_nothing_and_the_call_can_be_repeated(memory, embeddings):
    memory.remember("reset a router", "lesson")
    for fault, error in (("raise", ProviderError), ("nan", EmbeddingError)):
        embeddings.break_call(1, fault)
        with pytest.raises(error):
            memory.remember("bake a cake", "lesson", episode_id="e")
        assert memory.stats().memories == 1
        with pytest.raises(EpisodeError):
            memory.episode("e")
    assert memory.remember("bake a cake", "lesson", episode_id="e").id
    assert memory.stats().memories == 2
