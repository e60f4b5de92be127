"""Batches: everything is recalled with the same Q, applied in list order, all or nothing."""

import math

import pytest

from langchain_memrl.errors import (
    EmbeddingError,
    EpisodeError,
    InputError,
    MemoryNotFoundError,
    RewardConflictError,
    RewardError,
    WriteConflictError,
)

TEXTS = ("reset a router", "bake a cake", "mend a bicycle")
ALL = {"k": 10, "score_threshold": None}


@pytest.fixture
def ids(memory):
    made = memory.remember_many([{"intent": text, "lesson": f"of {text}"} for text in TEXTS])
    return [one.id for one in made]


def rewards(*values, ids=None):
    return [
        {"episode_id": f"e{n}", "reward": value} | ({} if ids is None else {"ids": ids})
        for n, value in enumerate(values)
    ]


def state(memory):
    return [(found.id, found.q_value, found.updates) for found in memory.list()]


# --- recall_many ------------------------------------------------------------------------------


def test_a_batch_recalls_what_single_calls_recall(memory, ids):
    tasks = ["reset a router", "a question", "", "bake a cake", "a question"]
    batch = memory.recall_many(tasks, **ALL)
    assert [recall.intent for recall in batch] == tasks
    assert [recall.ids for recall in batch] == [memory.recall(task, **ALL).ids for task in tasks]


def test_all_tasks_of_a_batch_see_the_same_q(memory, ids):
    memory.reinforce("before", reward=1, ids=ids[:1])
    batch = memory.recall_many(TEXTS, episode_ids=["a", "b", "c"], **ALL)
    seen = [{c.id: (c.q_value, c.updates) for c in recall.candidates} for recall in batch]
    assert seen[0] == seen[1] == seen[2]
    memory.reinforce_many([{"episode_id": id, "reward": -1} for id in "abc"])
    assert {memory.get(id).updates for id in ids[1:]} == {3}


def test_a_batch_records_one_episode_per_task(memory, ids):
    batch = memory.recall_many(TEXTS, episode_ids=["a", None, "c"], **ALL)
    assert [recall.episode_id for recall in batch] == ["a", None, "c"]
    assert memory.episode("a").intents == ("reset a router",)
    assert memory.episode("c").memory_ids == batch[2].ids
    assert {found.selections for found in memory.list()} == {2}


def test_a_batch_asks_the_embedder_once_for_each_new_text(memory, ids, embeddings):
    calls = len(embeddings.calls)
    memory.recall_many(["reset a router", "question 1", "question 2", "question 1"])
    assert embeddings.calls[calls:] == [["question 1", "question 2"]]


def test_recorded_tasks_of_a_batch_return_what_was_recorded(memory, ids):
    first = memory.recall("a question", episode_id="a", k=1, score_threshold=None)
    batch = memory.recall_many(["another question", "a question"], episode_ids=["b", "a"], **ALL)
    assert batch[1].ids == first.ids
    assert len(batch[0].ids) == 3


def test_the_same_task_twice_in_one_batch_loses_nothing(memory, ids):
    batch = memory.recall_many(["a question"] * 2, episode_ids=["a", "b"], **ALL)
    assert batch[0].ids == batch[1].ids
    memory.reinforce_many([{"episode_id": "a", "reward": 1}, {"episode_id": "b", "reward": 1}])
    assert {found.updates for found in memory.list()} == {2}


def test_an_empty_batch_is_an_empty_answer(memory, ids):
    assert memory.recall_many([]) == []
    assert memory.reinforce_many([]) == []
    assert memory.remember_many([]) == []


@pytest.mark.parametrize(
    ("tasks", "options"),
    [
        ("one text", {}),
        (["a", "b"], {"episode_ids": ["e"]}),
        (["a"], {"episode_ids": ["e", "f"]}),
        (["a", None], {}),
        (["a", "b\x00"], {"episode_ids": ["e", "f"]}),
        (["a"], {"episode_ids": [""]}),
    ],
    ids=repr,
)
def test_tasks_that_do_not_fit_are_refused_before_anything_happens(
    memory, ids, embeddings, tasks, options
):
    calls = len(embeddings.calls)
    with pytest.raises(InputError):
        memory.recall_many(tasks, **options)
    assert len(embeddings.calls) == calls
    assert memory.stats().open_episodes == 0


# --- reinforce_many ---------------------------------------------------------------------------


def test_the_order_of_the_list_decides(memory, ids):
    # +1 then -1: .3, then .3 - .39 = -.09; -1 then +1: -.3, then -.3 + .39 = +.09
    memory.reinforce_many(rewards(1, -1, ids=ids[:1]))
    assert memory.get(ids[0]).q_value == pytest.approx(-0.09)
    other_way = [
        {"episode_id": f"f{n}", "reward": r, "ids": ids[1:2]} for n, r in enumerate((-1, 1))
    ]
    memory.reinforce_many(other_way)
    assert memory.get(ids[1]).q_value == pytest.approx(0.09)


def test_a_memory_shown_n_times_takes_n_steps(memory, ids):
    results = memory.reinforce_many(rewards(*[1] * 5, ids=ids[:1]))
    assert memory.get(ids[0]).updates == 5
    assert memory.get(ids[0]).q_value == pytest.approx(1 - 0.7**5)
    assert [result.credits[0].after for result in results] == pytest.approx(
        [1 - 0.7**n for n in range(1, 6)]
    )


def test_results_come_in_the_order_of_the_list_with_repeats_marked(memory, ids):
    memory.reinforce("e1", reward=1, ids=ids)
    results = memory.reinforce_many(rewards(1, 1, None, ids=ids))
    assert [result.episode_id for result in results] == ["e0", "e1", "e2"]
    assert [result.applied for result in results] == [True, False, False]
    assert [result.reward for result in results] == [1, 1, None]


def test_the_same_episode_twice_in_one_batch_counts_once(memory, ids):
    entry = {"episode_id": "e", "reward": 1, "ids": ids[:1]}
    results = memory.reinforce_many([entry, entry])
    assert [result.applied for result in results] == [True, False]
    assert memory.get(ids[0]).updates == 1


BAD_ENTRIES = [
    (RewardError, {"episode_id": "bad", "reward": math.nan}),
    (RewardError, {"episode_id": "bad", "reward": 2}),
    (RewardError, {"episode_id": "bad", "reward": True}),
    (EpisodeError, {"episode_id": "unknown", "reward": 1}),
    (MemoryNotFoundError, {"episode_id": "bad", "reward": 1, "ids": ["unknown"]}),
    (RewardConflictError, {"episode_id": "old", "reward": -1}),
    (TypeError, {"reward": 1}),
    (TypeError, {"episode_id": "bad"}),
    (TypeError, {"episode_id": "bad", "reward": 1, "weight": 2}),
    (InputError, {"episode_id": "", "reward": 1}),
]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(("error", "bad"), BAD_ENTRIES, ids=repr)
def test_one_bad_reward_applies_none(memory, ids, place, error, bad):
    memory.reinforce("old", reward=1, ids=ids[:1])
    before = state(memory)
    entries = rewards(1, -1, ids=ids)
    entries.insert(place, bad)
    with pytest.raises(error):
        memory.reinforce_many(entries)
    assert state(memory) == before
    entries.pop(place)
    assert all(result.applied for result in memory.reinforce_many(entries))


def test_a_batch_of_rewards_writes_the_held_answers(memory):
    for n in range(3):
        memory.hold(f"e{n}", intent=f"task {n}", trajectory=f"done {n}")
    results = memory.reinforce_many(rewards(1, -1, 0))
    made = [memory.get(result.memory_id) for result in results]
    assert [(one.trajectory, one.outcome) for one in made] == [
        ("done 0", "success"),
        ("done 1", "failure"),
        ("done 2", "unknown"),
    ]


# --- remember_many ----------------------------------------------------------------------------


def test_memories_come_back_in_the_order_of_the_list(memory):
    texts = ["b", "a", "c", "a"]
    made = memory.remember_many([{"intent": text, "lesson": f"of {text}"} for text in texts])
    assert [one.intent for one in made] == texts
    assert [found.id for found in memory.list()] == [one.id for one in reversed(made)]
    assert memory.stats().intents == 3


def test_a_batch_asks_the_embedder_once(memory, embeddings):
    memory.remember("a", "lesson")
    calls = len(embeddings.calls)
    memory.remember_many([{"intent": text, "lesson": "x"} for text in ("b", "a", "c", "b")])
    assert embeddings.calls[calls:] == [["b", "c"]]


def test_the_same_memory_twice_in_one_batch_is_written_once(memory):
    entry = {"intent": "task", "lesson": "lesson", "episode_id": "e"}
    made = memory.remember_many([entry, entry])
    assert made[0].id == made[1].id
    assert memory.stats().memories == 1


BAD_MEMORIES = [
    (InputError, {"intent": "", "lesson": "lesson"}),
    (InputError, {"intent": "task", "lesson": "a\x00"}),
    (InputError, {"intent": "task", "lesson": "lesson", "metadata": {"a": math.inf}}),
    (WriteConflictError, {"intent": "task", "lesson": "other", "episode_id": "old"}),
    (TypeError, {"intent": "task"}),
    (TypeError, {"intent": "task", "lesson": "lesson", "q_value": 1}),
]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(("error", "bad"), BAD_MEMORIES, ids=repr)
def test_one_bad_memory_writes_none(memory, place, error, bad):
    memory.remember("old task", "lesson", episode_id="old")
    entries = [{"intent": f"new {n}", "lesson": "lesson", "episode_id": f"e{n}"} for n in range(2)]
    entries.insert(place, bad)
    with pytest.raises(error):
        memory.remember_many(entries)
    assert (memory.stats().memories, memory.stats().intents) == (1, 1)
    entries.pop(place)
    assert len(memory.remember_many(entries)) == 2


@pytest.mark.parametrize("fault", ["fewer", "more", "none", "nan", "zero", "ragged", "dimension"])
def test_one_bad_vector_writes_none(memory, embeddings, fault):
    memory.remember("old task", "lesson")
    embeddings.break_call(1, fault)
    batch = [{"intent": f"new {n}", "lesson": "x", "episode_id": f"e{n}"} for n in range(5)]
    with pytest.raises(EmbeddingError, match="nothing was stored"):
        memory.remember_many(batch)
    assert memory.stats().memories == 1
    assert len(memory.remember_many(batch)) == 5
    assert memory.verify().ok


def test_a_batch_with_the_episode_of_a_forgotten_memory_writes_none(memory):
    gone = memory.remember("task", "lesson", episode_id="e")
    memory.forget(ids=[gone.id])
    drafts = [
        {"intent": "new", "lesson": "lesson"},
        {"intent": "task", "lesson": "lesson", "episode_id": "e"},
    ]
    with pytest.raises(MemoryNotFoundError):
        memory.remember_many(drafts)
    assert memory.list() == []


def test_a_batch_of_recalls_of_which_one_is_refused_records_none(memory):
    memory.remember("task", "lesson")
    memory.recall("task", episode_id="done")
    memory.reinforce("done", reward=1)
    with pytest.raises(EpisodeError, match="already rewarded"):
        memory.recall_many(["first", "second"], episode_ids=["new", "done"])
    assert memory.stats().episodes == 2
