"""Which memories a recall chooses, and what it tells about the choice."""

import numpy as np
import pytest
from fakes import FakeEmbeddings, at_cosine

from langchain_memrl import PRESETS
from langchain_memrl.errors import ConfigError, InputError
from langchain_memrl.offline import HashingEmbeddings

ALL = {"k": 100, "fetch_k": 100, "score_threshold": None}


@pytest.fixture
def embeddings():
    """Three intents at cosine .9, .5 and .1 to the task."""
    places = {"task": 1.0, "near": 0.9, "middle": 0.5, "far": 0.1}
    return FakeEmbeddings(vectors={text: at_cosine(cosine) for text, cosine in places.items()})


@pytest.fixture
def three(memory):
    for text in ("near", "middle", "far"):
        memory.remember(text, f"lesson of {text}")
    return memory


def intents(recall):
    return [hit.memory.intent for hit in recall.memories]


# --- the gate ---------------------------------------------------------------------------------


def test_an_intent_at_the_threshold_passes_and_one_below_does_not(three):
    assert intents(three.recall("task", score_threshold=0.5)) == ["near", "middle"]
    assert intents(three.recall("task", score_threshold=0.500001)) == ["near"]


def test_none_is_no_gate_and_neither_is_minus_one(three):
    for threshold in (None, -1):
        assert len(three.recall("task", score_threshold=threshold).ids) == 3


def test_nothing_similar_enough_is_an_answer_that_says_how_close_it_came(three):
    recall = three.recall("task", score_threshold=0.95, episode_id="e")
    assert (recall.ids, recall.candidates) == ((), ())
    assert recall.similarity_max == 0.9
    assert not recall.explored


def test_an_empty_bank_and_a_blank_task_recall_nothing_and_cost_nothing(memory, embeddings):
    assert memory.recall("task").ids == ()
    assert memory.recall("task").similarity_max is None
    memory.remember("near", "lesson")
    calls = len(embeddings.calls)
    for blank in ("", "  \n", "\u200b"):
        assert memory.recall(blank, **ALL).ids == ()
    assert len(embeddings.calls) == calls


def test_fetch_k_counts_intents_and_k_counts_memories(three):
    three.remember("near", "a second lesson")
    three.remember("near", "a third lesson")
    options = {"score_threshold": None, "fetch_k": 1}
    assert intents(three.recall("task", k=10, **options)) == ["near"] * 3
    assert intents(three.recall("task", k=2, **options)) == ["near"] * 2
    assert len(three.recall("task", k=10, score_threshold=None, fetch_k=2).ids) == 4


def test_a_preset_is_used_by_name(three):
    settings = PRESETS["lifelong-os"]  # threshold .5
    names = ("k", "fetch_k", "score_threshold", "q_weight")
    recall = three.recall("task", **{name: getattr(settings, name) for name in names})
    assert intents(recall) == ["near", "middle"]


@pytest.mark.parametrize("size", range(1, 10))
def test_the_automatic_threshold_starves_no_small_bank(form, open_bank, size):
    memory = form(open_bank(":memory:", embeddings=HashingEmbeddings(256)))
    for n in range(size):
        memory.remember(f"reset the router of customer {n}", "lesson")
    assert memory.recall("reset the router of customer 0").ids
    assert memory.recall("reset the router of customer 77").ids


def test_the_automatic_threshold_keeps_a_foreign_task_out_of_a_bank_of_one(form, open_bank):
    memory = form(open_bank(":memory:", embeddings=HashingEmbeddings(256)))
    memory.remember("reset the router of customer 7", "lesson")
    assert memory.recall("bake bread with walnuts and figs").ids == ()


# --- the blend --------------------------------------------------------------------------------


def test_the_score_is_the_documented_one(three):
    # The bank was calibrated at two intents: cos(near, middle) = .9 * .5 + .435890 * .866025
    # = .827492; one pair has no spread, so the std is .1.
    # sim_hat: (.9 - .827492) / .1 = .72508, (.5 - .827492) / .1 = -3.27492, -7.27492.
    # Q = -.3, 0, .3: std sqrt(.18 / 3) = .244949, q_hat = -1.224745, 0, 1.224745.
    near, _, far = three.recall("task", **ALL).ids
    three.reinforce("bad", reward=-1, ids=[near])
    three.reinforce("good", reward=1, ids=[far])
    recall = three.recall("task", **ALL)
    assert intents(recall) == ["near", "middle", "far"]
    numbers = [(h.similarity, h.similarity_part, h.q_part, h.score) for h in recall.memories]
    expected = [
        (0.9, 0.72508, -1.224745, -0.249833),
        (0.5, -3.27492, 0, -1.63746),
        (0.1, -7.27492, 1.224745, -3.025088),
    ]
    np.testing.assert_allclose(numbers, expected, atol=2e-5)


def test_weight_zero_ranks_by_similarity_and_weight_one_by_q(three):
    near, middle, far = three.recall("task", q_weight=0, **ALL).ids
    three.reinforce("bad", reward=-1, ids=[near])
    three.reinforce("good", reward=1, ids=[far])
    for normalization in ("zscore", "pool", "none"):
        by_similarity = three.recall("task", q_weight=0, normalization=normalization, **ALL)
        by_q = three.recall("task", q_weight=1, normalization=normalization, **ALL)
        assert by_similarity.ids == (near, middle, far)
        assert by_q.ids == (far, middle, near)


def test_the_raw_numbers_are_mixed_with_none(three):
    far = three.recall("task", **ALL).ids[-1]
    three.reinforce("good", reward=1, ids=[far])  # Q = .3
    hit = three.recall("task", q_weight=0.25, normalization="none", **ALL).memories[-1]
    assert hit.score == pytest.approx(0.75 * 0.1 + 0.25 * 0.3)
    assert (hit.similarity_part, hit.q_part) == (0.1, 0.3)


def test_equal_scores_go_to_the_less_selected_then_to_the_newer(memory):
    older, newer = (memory.remember("near", f"lesson {n}").id for n in range(2))
    options = {"k": 1, "score_threshold": None}
    assert memory.recall("task", **options).ids == (newer,)
    memory.recall("task", episode_id="e", **options)  # counts the newer one as selected
    assert memory.recall("task", **options).ids == (older,)


def test_a_q_update_is_seen_by_the_next_recall(memory):
    older, newer = (memory.remember("near", f"lesson {n}").id for n in range(2))
    assert memory.recall("near").ids == (newer, older)
    memory.reinforce("e", reward=1, ids=[older])
    assert memory.recall("near").ids == (older, newer)


# --- calibration ------------------------------------------------------------------------------


def statistics(memory, **options):
    settings = memory.recall("task", score_threshold="auto", **options).settings
    return settings["similarity_mean"], settings["similarity_std"], settings["threshold"]


def test_a_bank_is_calibrated_at_each_power_of_two_and_left_alone_between(memory):
    seen = []
    for n in range(9):
        memory.remember(f"intent {n}", "lesson")
        memory.remember(f"intent {n}", "another lesson of the same intent")
        seen.append(statistics(memory))
    changes = [n + 1 for n in range(1, 9) if seen[n] != seen[n - 1]]
    assert changes == [2, 4, 8]
    assert seen[0][:2] == (0, 0.1)


def test_one_tenant_does_not_move_the_calibration_of_another(memory):
    for n in range(4):
        memory.remember(f"intent {n}", "lesson")
    before = statistics(memory)
    for n in range(8):
        memory.remember(f"other {n}", "lesson", namespace="acme")
    assert statistics(memory) == before
    assert statistics(memory, namespace="acme") != before


def test_a_bank_that_is_only_read_keeps_its_calibration(memory):
    for n in range(5):
        memory.remember(f"intent {n}", "lesson")
    before = statistics(memory)
    for n in range(20):
        memory.recall(f"question {n}")
    assert statistics(memory) == before


# --- exploration ------------------------------------------------------------------------------


def test_the_same_seed_explores_in_the_same_way(form, open_bank):
    found = []
    for seed in (7, 7, 8):
        memory = form(open_bank(":memory:", seed=seed))
        for text in ("near", "middle", "far"):
            memory.remember(text, text)
        recalls = (memory.recall("task", epsilon=0.5, **ALL | {"k": 1}) for _ in range(20))
        found.append([(intents(recall), recall.explored) for recall in recalls])
    assert found[0] == found[1]
    assert found[0] != found[2]
    assert {explored for _, explored in found[0]} == {True, False}


def test_an_explored_recall_says_so_and_gives_the_probabilities(three):
    recall = three.recall("task", epsilon=1.0, **ALL | {"k": 2})
    assert recall.explored
    # each of the three has 2/3, whatever its score
    assert [c.probability for c in recall.candidates] == pytest.approx([2 / 3] * 3)
    assert [c.id for c in recall.candidates[:2]] == list(recall.ids)


def test_without_exploration_the_probabilities_are_one_and_zero(three):
    recall = three.recall("task", q_weight=0, **ALL | {"k": 2})
    assert [c.probability for c in recall.candidates] == [1, 1, 0]


# --- what is told about the choice ------------------------------------------------------------


def test_a_recall_tells_its_settings_and_what_they_became(three):
    recall = three.recall("task", k=2, q_weight=0.25, score_threshold="auto")
    assert recall.settings["k"] == 2
    assert recall.settings["q_weight"] == 0.25
    assert recall.settings["score_threshold"] == "auto"
    assert -1 <= recall.settings["threshold"] <= 1


def test_at_most_fifty_candidates_are_kept_with_the_chosen_among_them(memory):
    for n in range(60):
        memory.remember("near", f"lesson {n}")
    for epsilon in (0, 1):
        recall = memory.recall("task", epsilon=epsilon, **ALL | {"k": 3})
        kept = [candidate.id for candidate in recall.candidates]
        assert len(kept) == len(set(kept)) == 50
        assert set(recall.ids) < set(kept)


def test_a_recall_may_return_more_memories_than_it_keeps_candidates(memory):
    ids = [memory.remember("near", f"lesson {n}").id for n in range(70)]
    recall = memory.recall("near", k=60, episode_id="e")
    assert recall.ids == tuple(reversed(ids))[:60]
    assert [candidate.id for candidate in recall.candidates] == list(recall.ids)
    assert memory.recall("near", k=60, episode_id="e").ids == recall.ids


def test_a_scored_memory_carries_the_memory_and_its_numbers(three):
    hit = three.recall("task", **ALL).memories[0]
    assert hit.id == hit.memory.id
    assert hit.memory == three.get(hit.id)


def test_recalling_without_a_reward_changes_no_rank_and_no_q(three):
    before = three.recall("task", **ALL).ids, three.stats()
    for n in range(100):
        three.recall("task", **ALL)
        three.reinforce(f"never recalled {n}", reward=None)
    assert (three.recall("task", **ALL).ids, three.stats()) == before


# --- refused and excluded ---------------------------------------------------------------------


def test_excluded_intents_are_left_out_and_give_their_place_to_others(three):
    recall = three.recall("task", **(ALL | {"fetch_k": 1}), exclude_intents=["near", "not there"])
    assert intents(recall) == ["middle"]
    everything = three.recall("task", **ALL, exclude_intents=["near", "middle", "far"])
    assert everything.ids == ()


def test_the_task_itself_can_be_excluded(three):
    three.remember("task", "what was tried before")
    assert intents(three.recall("task", **ALL))[0] == "task"
    assert "task" not in intents(three.recall("task", **ALL, exclude_intents=["task"]))


@pytest.mark.parametrize("excluded", ["near", ["\ud800"], [3], [None]])
def test_excluded_intents_have_to_be_a_list_of_texts(three, excluded):
    with pytest.raises(InputError, match="exclude_intents"):
        three.recall("task", exclude_intents=excluded)


@pytest.mark.parametrize(
    "setting",
    [{"k": 0}, {"k": -1}, {"fetch_k": 0}, {"q_weight": 2}, {"score_threshold": 2}, {"epsilon": -1}],
)
def test_a_setting_out_of_range_is_refused_also_by_an_empty_bank(memory, embeddings, setting):
    with pytest.raises(ConfigError):
        memory.recall("task", **setting)
    with pytest.raises(ConfigError):
        memory.recall_many(["task"], **setting)
    assert embeddings.calls == []


@pytest.mark.parametrize("task", [None, 3, b"task", ["task"], "a\x00b", "\ud800"])
def test_a_task_that_is_no_text_is_refused(three, embeddings, task):
    calls = len(embeddings.calls)
    with pytest.raises(InputError, match="intent"):
        three.recall(task)
    assert len(embeddings.calls) == calls


# --- after deletion ---------------------------------------------------------------------------


def test_deleted_memories_take_no_place_among_the_nearest(form, open_bank):
    memory = form(open_bank())
    memory.remember_many([{"intent": f"intent {n}", "lesson": "lesson"} for n in range(100)])
    options = {"q_weight": 0, "score_threshold": None}
    order = memory.recall("question", k=100, fetch_k=100, **options).ids
    memory.forget(ids=list(order[:10]))
    assert memory.recall("question", k=10, fetch_k=10, **options).ids == order[10:20]
    again = form(open_bank())
    assert again.recall("question", k=10, fetch_k=10, **options).ids == order[10:20]


def test_vectors_of_any_length_give_the_same_similarities(form, open_bank):
    lengths = {"task": 1.0, "near": 0.1, "middle": 100.0, "far": 1e-30}
    cosines = {"task": 1.0, "near": 0.9, "middle": 0.5, "far": 0.1}
    vectors = {
        text: [number * lengths[text] for number in at_cosine(cosines[text])] for text in lengths
    }
    memory = form(open_bank(":memory:", embeddings=FakeEmbeddings(vectors=vectors)))
    for text in ("near", "middle", "far"):
        memory.remember(text, "lesson")
    recall = memory.recall("task", **ALL, q_weight=0)
    assert [hit.similarity for hit in recall.memories] == [0.9, 0.5, 0.1]


def test_opposite_vectors_have_similarity_minus_one(form, open_bank):
    vectors = {"task": [1.0, 0.0], "opposite": [-3.0, 0.0]}
    memory = form(open_bank(":memory:", embeddings=FakeEmbeddings(vectors=vectors)))
    memory.remember("opposite", "lesson")
    assert memory.recall("task", **ALL).memories[0].similarity == -1.0
