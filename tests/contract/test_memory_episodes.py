"""Episodes: what a recall writes, what a repeat returns, and that only what was shown counts."""

import json

import pytest

from langchain_memrl.errors import EpisodeError, InputError

TEXTS = ("reset a router", "bake a cake", "mend a bicycle")
ALL = {"k": 10, "score_threshold": None}


@pytest.fixture
def ids(memory):
    return [memory.remember(text, f"lesson of {text}").id for text in TEXTS]


def selections(memory):
    return {found.intent: found.selections for found in memory.list()}


def test_a_recall_without_an_episode_writes_nothing(behind, form, open_bank):
    memory = form(open_bank())
    memory.remember("reset a router", "lesson")
    before = behind.dump()
    assert memory.recall("reset a router").episode_id is None
    assert behind.dump() == before


def test_a_recall_with_an_episode_writes_one_row(behind, form, open_bank):
    memory = form(open_bank())
    memory.remember("reset a router", "lesson")
    count = "SELECT (SELECT count(*) FROM recalls), (SELECT count(*) FROM episodes)"
    (before,) = behind.query(count)
    recall = memory.recall("reset a router", episode_id="e")
    memory.recall("reset a router", episode_id="e")
    assert behind.query(count) == [(before[0] + 1, before[1] + 1)]
    assert recall.episode_id == "e"
    assert memory.episode("e").memory_ids == recall.ids


def test_the_same_task_in_the_same_episode_returns_what_was_recorded(memory, ids, embeddings):
    first = memory.recall("reset a router", episode_id="e", **ALL)
    memory.remember("reset a router", "a newer and better lesson")
    memory.reinforce("other", reward=1, ids=[ids[2]])
    calls = len(embeddings.calls)
    again = memory.recall("reset a router", episode_id="e", **ALL)
    assert again.ids == first.ids
    assert again.recall_id == first.recall_id
    assert len(embeddings.calls) == calls
    assert memory.recall("reset a router", **ALL).ids != first.ids


def test_what_was_recorded_survives_reopening(form, open_bank):
    memory = form(open_bank())
    for text in TEXTS:
        memory.remember(text, "lesson")
    first = memory.recall("question", episode_id="e", **ALL)
    memory.close()
    memory = form(open_bank())
    memory.remember("question", "newer")
    again = memory.recall("question", episode_id="e", **ALL)
    assert again.ids == first.ids
    assert [hit.score for hit in again.memories] == pytest.approx(
        [hit.score for hit in first.memories], abs=1e-6
    )
    assert again.settings == first.settings


def test_another_task_joins_and_each_memory_is_updated_once(memory, ids):
    memory.recall("reset a router", episode_id="e", k=1, score_threshold=None)
    memory.recall("bake a cake", episode_id="e", k=2, score_threshold=None)
    memory.recall("reset a router", episode_id="e", k=1, score_threshold=None)
    episode = memory.episode("e")
    assert episode.intents == ("reset a router", "bake a cake")
    assert len(set(episode.memory_ids)) == len(episode.memory_ids)
    result = memory.reinforce("e", reward=1)
    assert [credit.id for credit in result.credits] == list(episode.memory_ids)
    assert all(memory.get(id).updates == 1 for id in episode.memory_ids)


def test_a_memory_shown_for_two_tasks_is_selected_and_updated_once(memory, ids):
    memory.recall("reset a router", episode_id="e", **ALL)
    memory.recall("bake a cake", episode_id="e", **ALL)
    assert set(selections(memory).values()) == {1}
    memory.reinforce("e", reward=1)
    assert {found.updates for found in memory.list()} == {1}


def test_only_what_was_shown_is_selected_and_rewarded(memory, ids):
    recall = memory.recall("reset a router", episode_id="e", k=1, score_threshold=None)
    memory.reinforce("e", reward=-1)
    assert selections(memory) == {"reset a router": 1, "bake a cake": 0, "mend a bicycle": 0}
    for id in ids:
        assert memory.get(id).q_value == (pytest.approx(-0.3) if id in recall.ids else 0)


def test_one_episode_id_may_be_used_by_every_namespace(memory, ids):
    memory.remember("reset a router", "of acme", namespace="acme")
    for namespace in (None, "acme"):
        memory.recall("reset a router", episode_id="e", namespace=namespace, **ALL)
    memory.reinforce("e", reward=1, namespace="acme")
    assert {found.updates for found in memory.list()} == {0}
    assert memory.reinforce("e", reward=-1).applied
    assert memory.episode("e").reward == -1
    assert memory.episode("e", namespace="acme").reward == 1


# --- render first, then record ------------------------------------------------------------------


def test_a_recall_that_is_recorded_later_has_written_nothing(memory, ids):
    recall = memory.recall("reset a router", episode_id="e", record=False, **ALL)
    assert recall.episode_id == "e"
    assert set(selections(memory).values()) == {0}
    with pytest.raises(EpisodeError, match="unknown"):
        memory.episode("e")


def test_exactly_the_recorded_ids_count(memory, ids):
    recall = memory.recall("reset a router", episode_id="e", record=False, **ALL)
    shown = recall.ids[1:2]
    assert memory.record(recall, shown) == shown
    assert memory.episode("e").memory_ids == shown
    assert [memory.get(id).selections for id in recall.ids] == [0, 1, 0]
    assert [credit.id for credit in memory.reinforce("e", reward=1).credits] == list(shown)
    assert [memory.get(id).updates for id in recall.ids] == [0, 1, 0]


def test_what_was_recorded_first_wins(memory, ids):
    recall = memory.recall("reset a router", episode_id="e", record=False, **ALL)
    assert memory.record(recall, recall.ids[:1]) == recall.ids[:1]
    assert memory.record(recall) == recall.ids[:1]
    again = memory.recall("reset a router", episode_id="e", record=False, **ALL)
    assert again.ids == recall.ids[:1]


def test_a_recording_of_nothing_counts_nothing(memory, ids):
    recall = memory.recall("reset a router", episode_id="e", record=False, **ALL)
    assert memory.record(recall, []) == ()
    assert memory.reinforce("e", reward=1).credits == ()
    assert {found.updates for found in memory.list()} == {0}


def test_only_ids_of_the_recall_can_be_recorded(memory, ids):
    recall = memory.recall("reset a router", episode_id="e", record=False, k=1)
    strange = next(id for id in ids if id not in recall.ids)
    with pytest.raises(InputError, match="did not choose"):
        memory.record(recall, [*recall.ids, strange])
    with pytest.raises(InputError, match="no episode id"):
        memory.record(memory.recall("reset a router"))
    assert set(selections(memory).values()) == {0}


# --- after the reward ---------------------------------------------------------------------------


def test_a_rewarded_episode_takes_no_new_task_but_still_gives_its_old_answer(memory, ids):
    first = memory.recall("reset a router", episode_id="e", **ALL)
    memory.reinforce("e", reward=1)
    assert memory.recall("reset a router", episode_id="e", **ALL).ids == first.ids
    with pytest.raises(EpisodeError, match="already rewarded"):
        memory.recall("bake a cake", episode_id="e", **ALL)
    assert {found.updates for found in memory.list()} == {1}


def test_a_forgotten_memory_is_no_longer_in_a_recorded_recall(memory, ids):
    recall = memory.recall("reset a router", episode_id="e", **ALL)
    memory.forget(ids=[recall.ids[0]])
    again = memory.recall("reset a router", episode_id="e", **ALL)
    assert again.ids == recall.ids[1:]
    assert recall.ids[0] not in [candidate.id for candidate in again.candidates]


def test_an_unknown_episode_is_an_error_that_looks_the_same_everywhere(memory, ids):
    memory.recall("reset a router", episode_id="of default", **ALL)
    errors = []
    for episode_id in ("of default", "of nobody"):
        with pytest.raises(EpisodeError) as caught:
            memory.episode(episode_id, namespace="acme")
        errors.append(str(caught.value).replace(episode_id, "X"))
    assert errors[0] == errors[1]


# --- what is kept for a later comparison of rankings --------------------------------------------


def test_the_row_keeps_what_a_comparison_of_rankings_needs(behind, form, open_bank):
    memory = form(open_bank(seed=1))
    memory.remember_many([{"intent": f"intent {n}", "lesson": "lesson"} for n in range(60)])
    recall = memory.recall("task", episode_id="e", k=3, fetch_k=60, score_threshold=None, epsilon=1)
    (row,) = behind.query("SELECT recall_id, intent, candidates, settings, explored FROM recalls")
    recall_id, intent, candidates, settings, explored = row
    kept = json.loads(candidates)
    assert (recall_id, intent, bool(explored)) == (recall.recall_id, "task", True)
    assert len(kept) == 50
    numbers = dict(behind.query("SELECT seq, id FROM memories"))
    assert [numbers[item[0]] for item in kept[:3]] == list(recall.ids)
    # similarity, Q, updates, similarity part, Q part, score and probability of each
    for item, candidate in zip(kept, recall.candidates, strict=True):
        assert item[1:] == pytest.approx(
            [
                candidate.similarity,
                candidate.q_value,
                candidate.updates,
                candidate.similarity_part,
                candidate.q_part,
                candidate.score,
                candidate.probability,
            ],
            abs=1e-6,
        )
    assert [item[7] for item in kept] == pytest.approx([3 / 60] * 50)
    stored = json.loads(settings)
    assert {"k", "fetch_k", "score_threshold", "q_weight", "normalization", "epsilon"} <= set(
        stored
    )
    assert {"threshold", "similarity_mean", "similarity_std"} <= set(stored)


def test_the_row_is_compact(behind, form, open_bank):
    memory = form(open_bank())
    memory.remember_many([{"intent": f"intent {n}", "lesson": "x" * 10_000} for n in range(60)])
    memory.recall("task", episode_id="e", k=3, fetch_k=60, score_threshold=None)
    ((size,),) = behind.query("SELECT length(candidates) + length(settings) FROM recalls")
    assert size < 5_000


def test_ids_recorded_twice_count_once(memory):
    memory.remember("task", "lesson")
    made = memory.remember("task", "another")
    recall = memory.recall("task", episode_id="twice", record=False)
    assert memory.record(recall, ids=[made.id, made.id]) == (made.id,)
    assert memory.recall("task", episode_id="twice").ids == (made.id,)


def test_several_recalls_are_recorded_in_one_call(memory):
    for number in range(3):
        memory.remember(f"task {number}", "lesson")
    recalls = [
        memory.recall(f"task {number}", episode_id=f"e{number}", score_threshold=None, record=False)
        for number in range(2)
    ]
    first = recalls[0].ids[:1]

    assert memory.record_many(recalls, [first, None]) == [first, recalls[1].ids]

    assert memory.episode("e0").memory_ids == first
    assert memory.record_many(recalls) == [first, recalls[1].ids]  # what was first stands


def test_as_many_lists_of_ids_as_recalls_are_needed_and_nothing_else_is_recorded(memory):
    memory.remember("task", "lesson")
    recall = memory.recall("task", episode_id="e", record=False)
    with pytest.raises(InputError, match="1 lists of ids for 2 recalls"):
        memory.record_many([recall, recall], [None])
    with pytest.raises(InputError, match="did not choose"):
        memory.record_many([recall, recall], [recall.ids, ["other"]])
    with pytest.raises(EpisodeError):
        memory.episode("e")
