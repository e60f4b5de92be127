"""Near-identical lessons count as one while there are others, and a source may be given a share."""

import logging

import pytest
from fakes import FakeEmbeddings, at_cosine
from loops import TASK

from langchain_memrl import MemRLRetriever, create_memrl_graph
from langchain_memrl.errors import ConfigError
from langchain_memrl.offline import ScriptedChatModel

SAME = "Hold the reset button for ten seconds and wait until the light is green"
OTHERS = [
    "Look at the cable before anything else",
    "The router on the second floor has channel 40",
    "Never unplug the power supply during an update",
    "Ask for the serial number, then look it up in the list",
    "Tell the user to write to the provider",
]
FREE = {"score_threshold": None}


def place(number):
    """The cosine of the n-th nearest intent to the task."""
    return 0.99 - number / 1000


@pytest.fixture
def embeddings():
    vectors = {f"task {n}": at_cosine(place(n)) for n in range(400)}
    return FakeEmbeddings(vectors={TASK: [1, 0], **vectors})


def fill(memory, lessons, **more):
    """One episode per lesson, each for an intent a little farther from the task."""
    return [
        one.id
        for one in memory.remember_many(
            [{"intent": f"task {n}", "lesson": text, **more} for n, text in enumerate(lessons)]
        )
    ]


def repeated(count):
    return [f"Episode {n}: {SAME}{'.' * (n % 2)} (run {n})" for n in range(count)]


def lessons(recall):
    return [hit.memory.lesson for hit in recall.memories]


def kinds(recall):
    return {SAME if SAME in lesson else lesson for lesson in lessons(recall)}


# --- near-identical lessons ---------------------------------------------------------------------


def test_fifty_episodes_with_the_same_lesson_leave_room_for_four_others(memory):
    fill(memory, [*repeated(50), *OTHERS])
    assert len(kinds(memory.recall(TASK, **FREE))) == 5
    (recall,) = memory.recall_many([TASK], **FREE)
    assert len(kinds(recall)) == 5
    assert len(kinds(memory.recall(TASK, distinct=False, **FREE))) == 1


def test_fifty_attempts_at_one_task_with_the_same_lesson_do_too(memory):
    memory.remember_many([{"intent": "task 0", "lesson": text} for text in repeated(50)])
    memory.remember_many([{"intent": f"task {n}", "lesson": text} for n, text in enumerate(OTHERS)])
    assert len(kinds(memory.recall(TASK, **FREE))) == 5


def test_retriever_and_graph_show_distinct_lessons_and_can_be_told_not_to(bank):
    fill(bank, [*repeated(50), *OTHERS])
    retriever = MemRLRetriever(memory=bank, **FREE)
    found = {document.page_content for document in retriever.invoke(TASK)}
    assert len([text for text in found if SAME in text]) == 1
    found = [document.page_content for document in retriever.invoke(TASK, distinct=False)]
    assert all(SAME in text for text in found)
    model = ScriptedChatModel(responses=["done"])
    create_memrl_graph(model, retriever, evaluator=lambda state: None, learn=False).invoke(
        {"messages": [("user", TASK)]}
    )
    prompt = model.calls[0][0].content
    assert prompt.count(SAME) == 1
    assert sum(text in prompt for text in OTHERS) == 4


def test_the_best_of_each_group_is_taken_and_all_stand_in_the_order_of_their_rank(memory):
    ids = fill(memory, [SAME, SAME, OTHERS[0], SAME, OTHERS[1], OTHERS[0]])
    recall = memory.recall(TASK, k=3, q_weight=0, **FREE)
    assert list(recall.ids) == [ids[0], ids[2], ids[4]]
    memory.reinforce("e", reward=1, ids=[ids[3]])
    recall = memory.recall(TASK, k=3, q_weight=1, **FREE)  # one step: 3 has the highest Q
    assert recall.ids[0] == ids[3]
    assert set(lessons(recall)) == {SAME, *OTHERS[:2]}


def test_near_identical_lessons_fill_up_what_others_leave(memory):
    ids = fill(memory, [SAME, SAME, SAME, OTHERS[0], SAME])
    recall = memory.recall(TASK, k=4, q_weight=0, **FREE)
    assert list(recall.ids) == [ids[0], ids[1], ids[2], ids[3]]


def test_a_pool_that_fits_is_returned_as_it_is(memory):
    fill(memory, [*repeated(4), OTHERS[0]])
    assert memory.recall(TASK, **FREE).ids == memory.recall(TASK, distinct=False, **FREE).ids


def test_different_lessons_are_chosen_as_without_the_setting(memory):
    fill(memory, [f"{text} {word}" for text in OTHERS for word in ("here", "there", "now on 5")])
    for k in (1, 3, 5):
        free, plain = (memory.recall(TASK, k=k, distinct=d, **FREE) for d in (True, False))
        assert (free.ids, free.candidates) == (plain.ids, plain.candidates)


def test_raw_memories_are_compared_by_what_is_shown_of_them(memory):
    for n in range(4):
        memory.remember(f"task {n}", None, trajectory=f"did it: step {n // 3}")
    recall = memory.recall(TASK, k=2, q_weight=0, **FREE)
    assert [hit.memory.trajectory for hit in recall.memories] == [
        "did it: step 0",
        "did it: step 1",
    ]


# --- a pool that offers the same all over again --------------------------------------------------


def test_a_pool_grows_until_there_are_enough_and_says_so(memory):
    fill(memory, [*repeated(60), *OTHERS])
    assert memory.recall(TASK, **FREE).settings["widened_to"] == 160
    assert memory.recall(TASK, fetch_k=30, **FREE).settings["widened_to"] == 120
    assert "widened_to" not in memory.recall(TASK, fetch_k=65, **FREE).settings
    assert "widened_to" not in memory.recall(TASK, k=1, **FREE).settings


def test_it_stops_at_sixteen_times_its_size(memory):
    fill(memory, [*repeated(170), *OTHERS])
    recall = memory.recall(TASK, **FREE)
    assert (recall.settings["widened_to"], len(recall.ids), len(kinds(recall))) == (160, 5, 1)


def test_what_was_near_enough_before_it_grew_keeps_its_place(memory):
    ids = fill(memory, [*repeated(12), *OTHERS])
    far = memory.remember("task 300", "a lesson from far away", episode_id="far")
    for n in range(12):
        memory.reinforce(f"r{n}", reward=1, ids=[far.id])
    memory.reinforce("bad", reward=-1, ids=[ids[0]])
    recall = memory.recall(TASK, k=2, **FREE)
    assert recall.ids[0] == far.id
    assert set(recall.ids) & set(ids[:12])


def test_the_gate_and_a_filter_hold_while_it_grows(memory):
    fill(memory, [*repeated(50), *OTHERS])
    gate = place(50) + 1e-4
    assert len(kinds(memory.recall(TASK, score_threshold=gate))) == 1
    assert len(kinds(memory.recall(TASK, filter={"source": "nobody"}, **FREE))) == 0


def test_a_pool_that_is_whole_is_not_asked_for_again(memory, embeddings):
    fill(memory, repeated(9))
    assert "widened_to" not in memory.recall(TASK, **FREE).settings


# --- what is recorded ---------------------------------------------------------------------------


def test_the_recorded_chances_are_those_of_the_choice(memory):
    ids = fill(memory, [SAME, SAME, OTHERS[0], OTHERS[1]])
    recall = memory.recall(TASK, k=2, q_weight=0, episode_id="e", **FREE)
    chances = {one.id: one.probability for one in recall.candidates}
    assert [chances[id] for id in ids] == [1, 0, 1, 0]
    assert memory.episode("e").memory_ids == recall.ids
    assert memory.recall(TASK, k=2, q_weight=0, episode_id="e", **FREE).ids == recall.ids


def test_exploration_may_show_any(memory):
    ids = fill(memory, [SAME, SAME, OTHERS[0], OTHERS[1]])
    recall = memory.recall(TASK, k=2, q_weight=0, epsilon=0.5, **FREE)
    chances = {one.id: one.probability for one in recall.candidates}
    assert [chances[id] for id in ids] == pytest.approx([0.75, 0.25, 0.75, 0.25])


def test_an_explanation_says_what_was_passed_over(bank):
    ids = fill(bank, [SAME, SAME, OTHERS[0], OTHERS[1]])
    told = {one.id: str(one) for one in bank.explain(bank.recall(TASK, k=2, q_weight=0, **FREE))}
    assert told[ids[0]].startswith("Chosen, place 1")
    assert told[ids[1]].startswith("Passed over: its lesson is like a better one")
    assert told[ids[3]].startswith("Not chosen, place 4")


def test_texts_are_read_no_further_than_the_choice_needs(bank, monkeypatch):
    fill(bank, [*OTHERS, *(f"lesson number {word}" for word in "abcdefgh")])
    asked = []
    read = bank._store.memories
    monkeypatch.setattr(
        bank._store, "memories", lambda space, ids: asked.append(len(ids)) or read(space, ids)
    )
    bank.recall(TASK, **FREE)
    assert asked == [5]  # what it shows
    bank.recall(TASK, k=20, **FREE)
    assert asked == [5, 10]  # the whole pool, once


def test_counts_shown_after_a_recorded_recall_include_it(memory):
    fill(memory, OTHERS)
    assert memory.recall(TASK, k=2, episode_id="e", **FREE).memories[0].memory.selections == 1
    assert memory.recall(TASK, k=2, **FREE).memories[0].memory.selections in (0, 1)


def test_a_memory_forgotten_while_it_is_chosen_is_not_shown(bank, monkeypatch):
    ids = fill(bank, [*repeated(3), *OTHERS])
    read = bank._store.memories

    def forgetting(space, wanted):
        monkeypatch.undo()
        bank.forget(ids=[ids[0]])
        return read(space, wanted)

    monkeypatch.setattr(bank._store, "memories", forgetting)
    recall = bank.recall(TASK, q_weight=0, **FREE)
    assert ids[0] not in recall.ids
    assert len(kinds(recall)) == 5


# --- a cap on sources ---------------------------------------------------------------------------


def sources(recall):
    return [hit.memory.source for hit in recall.memories]


def mixed(memory):
    """The nearest ten are of one source, then two of others."""
    fill(memory, [f"{word} from the agent" for word in "abcdefghij"])
    memory.remember("task 20", "what the runbook says", source="runbook")
    memory.remember("task 21", "what a person says", source="person")


def test_one_source_fills_no_more_than_its_share(memory):
    mixed(memory)
    assert sources(memory.recall(TASK, **FREE)) == ["agent"] * 5
    recall = memory.recall(TASK, max_per_source=2, **FREE)
    assert sources(recall) == ["agent", "agent", "runbook", "person"]
    recall = memory.recall(TASK, max_per_source=1, distinct=False, **FREE)
    assert sources(recall) == ["agent", "runbook", "person"]


def test_the_best_of_a_source_are_those_that_stay(memory):
    mixed(memory)
    free = memory.recall(TASK, k=12, fetch_k=12, **FREE).ids
    capped = memory.recall(TASK, k=12, fetch_k=12, max_per_source=3, **FREE).ids
    assert capped == (*free[:3], *free[10:])


def test_a_random_choice_keeps_to_the_share_and_its_chances_are_told(memory):
    mixed(memory)
    settings = {"k": 3, "fetch_k": 12, "max_per_source": 2, "epsilon": 1.0, **FREE}
    for _ in range(20):
        recall = memory.recall(TASK, **settings)
        assert recall.explored
        assert sources(recall).count("agent") <= 2
    chances = [one.probability for one in recall.candidates if one.probability]
    assert chances == pytest.approx([0.75] * 4)  # 3 of the 4 that may be shown


def test_lift_counts_only_what_was_chosen(memory):
    mixed(memory)
    for n in range(30):
        recall = memory.recall(TASK, max_per_source=1, holdout=0.5, episode_id=f"e{n}", **FREE)
        memory.reinforce(f"e{n}", reward=1)
    lift = memory.lift(memories=True)
    assert {one.memory_id for one in lift.memories} == set(
        memory.recall(TASK, max_per_source=1, **FREE).ids
    )
    assert len(lift.memories) == 3
    assert recall.settings["k"] == 3


def test_distinct_lessons_come_first_within_the_share(memory):
    fill(memory, [SAME, SAME, OTHERS[0]])
    memory.remember("task 9", SAME, source="person")
    recall = memory.recall(TASK, k=3, q_weight=0, max_per_source=2, **FREE)
    assert lessons(recall) == [SAME, OTHERS[0], SAME]
    assert sources(recall) == ["agent", "agent", "person"]


def test_an_unusable_share_is_refused_before_anything_is_searched(memory, embeddings, caplog):
    for wrong in (0, -1, 1.5, "2", True):
        with pytest.raises(ConfigError, match="max_per_source"):
            memory.recall(TASK, max_per_source=wrong)
        with pytest.raises(ConfigError, match="max_per_source"):
            memory.recall_many([TASK], max_per_source=wrong)
    with pytest.raises(ConfigError, match="distinct"):
        memory.recall(TASK, distinct="yes")
    assert not embeddings.calls
    assert not [one for one in caplog.records if one.levelno > logging.INFO]
