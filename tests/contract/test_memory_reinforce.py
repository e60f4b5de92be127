"""What a reward moves, once, and what is refused before anything moves."""

import math
from decimal import Decimal

import numpy as np
import pytest

from langchain_memrl import LearningConfig
from langchain_memrl.errors import (
    EpisodeError,
    InputError,
    MemoryNotFoundError,
    RewardConflictError,
    RewardError,
    RewardTypeError,
)


@pytest.fixture
def a(memory):
    return memory.remember("reset a router", "hold the button").id


@pytest.fixture
def b(memory):
    return memory.remember("bake a cake", "weigh the flour").id


def state(memory):
    return [(found.id, found.q_value, found.updates, found.selections) for found in memory.list()]


# --- the step ---------------------------------------------------------------------------------


def test_q_moves_a_step_toward_the_reward(memory, a):
    # 0 + .3 * (1 - 0) = .3; .3 + .3 * (-1 - .3) = -.09
    first = memory.reinforce("e1", reward=1, ids=[a])
    second = memory.reinforce("e2", reward=-1, ids=[a])
    assert [(c.id, c.before, c.after) for c in first.credits] == [(a, 0, pytest.approx(0.3))]
    assert second.credits[0].before == first.credits[0].after
    assert second.credits[0].after == pytest.approx(-0.09)
    assert memory.get(a).q_value == second.credits[0].after
    assert memory.get(a).updates == 2


def test_nothing_moves_that_was_not_shown(memory, a, b):
    memory.reinforce("e", reward=1, ids=[a])
    assert (memory.get(b).q_value, memory.get(b).updates) == (0, 0)


def test_every_shown_memory_gets_the_full_reward(memory, a, b):
    memory.reinforce("e", reward=1, ids=[a, b])
    assert memory.get(a).q_value == memory.get(b).q_value == pytest.approx(0.3)


@pytest.mark.parametrize("reward", [1, -1, 0.25])
def test_twenty_equal_rewards_follow_the_closed_form(memory, a, b, reward):
    for n in range(20):
        memory.reinforce(f"e{n}", reward=reward, ids=[a])
        closed = reward + (1 - 0.3) ** (n + 1) * (0 - reward)
        assert memory.get(a).q_value == pytest.approx(closed, abs=1e-12)
    assert memory.get(a).updates == 20
    stats = memory.stats()
    assert (stats.updates, stats.never_rewarded) == (20, 1)


def test_the_step_size_and_the_start_are_the_saved_ones(form, open_bank):
    learning = LearningConfig(step_size=0.1, q_init=0.5)
    memory = form(open_bank(":memory:", learning=learning))
    id = memory.remember("task", "lesson").id
    assert memory.get(id).q_value == 0.5
    memory.reinforce("e", reward=-1, ids=[id])
    assert memory.get(id).q_value == pytest.approx(0.35)  # .5 + .1 * -1.5


def test_step_size_zero_counts_and_does_not_move(form, open_bank):
    memory = form(open_bank(":memory:", learning=LearningConfig(step_size=0)))
    id = memory.remember("task", "lesson").id
    assert memory.reinforce("e", reward=1, ids=[id]).applied
    assert (memory.get(id).q_value, memory.get(id).updates) == (0, 1)


def test_the_history_names_the_episodes_that_moved_it(memory, a):
    for n, reward in enumerate((1, -1, 0.5)):
        memory.reinforce(f"e{n}", reward=reward, ids=[a])
    steps = memory.history(a)
    assert [(step.episode_id, step.reward, step.step_size) for step in steps] == [
        ("e0", 1, 0.3),
        ("e1", -1, 0.3),
        ("e2", 0.5, 0.3),
    ]
    assert steps[0].before == 0
    assert [step.before for step in steps[1:]] == [step.after for step in steps[:-1]]
    assert steps[-1].after == memory.get(a).q_value


# --- once -------------------------------------------------------------------------------------


def test_the_same_reward_again_returns_the_first_result_and_changes_nothing(memory, a):
    memory.recall("reset a router", episode_id="e")
    first = memory.reinforce("e", reward=1)
    before = state(memory)
    again = memory.reinforce("e", reward=1)
    assert (first.applied, again.applied) == (True, False)
    assert (again.credits, again.reward, again.skipped) == (first.credits, 1, ())
    assert state(memory) == before


@pytest.mark.parametrize("repeats", [1, 5])
def test_a_reward_counts_once_across_reopening(form, open_bank, repeats):
    memory = form(open_bank())
    id = memory.remember("task", "lesson").id
    memory.recall("task", episode_id="e")
    for n in range(repeats + 1):
        assert memory.reinforce("e", reward=1).applied == (n == 0)
        memory.close()
        memory = form(open_bank())
    assert memory.get(id).updates == 1
    assert memory.get(id).q_value == pytest.approx(0.3)


def test_another_reward_for_the_same_episode_is_a_conflict(memory, a):
    memory.reinforce("e", reward=1, ids=[a])
    before = state(memory)
    with pytest.raises(RewardConflictError, match=r"already rewarded with 1.*the first reward"):
        memory.reinforce("e", reward=0.5)
    assert state(memory) == before
    assert isinstance(RewardConflictError(), EpisodeError)


def test_the_same_number_of_another_type_is_the_same_reward(memory, a):
    memory.reinforce("e", reward=0.5, ids=[a])
    for reward in (Decimal("0.5"), np.float32(0.5), 0.5):
        assert not memory.reinforce("e", reward=reward).applied


def test_a_new_episode_counts_again(memory, a):
    for n in range(3):
        assert memory.reinforce(f"e{n}", reward=1, ids=[a]).applied
    assert memory.get(a).updates == 3


# --- no signal yet ----------------------------------------------------------------------------


def test_none_moves_nothing_and_leaves_the_episode_open(memory, a):
    memory.recall("reset a router", episode_id="e")
    result = memory.reinforce("e", reward=None)
    assert (result.applied, result.reward, result.credits) == (False, None, ())
    assert memory.get(a).updates == 0
    assert memory.stats().open_episodes == 1
    assert memory.reinforce("e", reward=1).applied
    assert memory.stats().open_episodes == 0


def test_none_after_a_reward_changes_nothing(memory, a):
    memory.reinforce("e", reward=1, ids=[a])
    before = state(memory)
    assert not memory.reinforce("e", reward=None).applied
    assert state(memory) == before
    assert memory.episode("e").reward == 1


# --- rewards that are no rewards --------------------------------------------------------------

REFUSED = [
    *((RewardError, value) for value in (math.nan, math.inf, -math.inf, 1.5, -1.5)),
    *((RewardError, value) for value in (Decimal("NaN"), np.float32("nan"), np.int64(2))),
    *((RewardTypeError, value) for value in (True, False, np.True_, "1", "False", b"1")),
    *((RewardTypeError, value) for value in ([1], (1,), {}, np.array([1.0]), object(), 1j)),
]


@pytest.mark.parametrize(("error", "reward"), REFUSED, ids=repr)
def test_an_unusable_reward_is_refused_before_anything_changes(memory, a, error, reward):
    memory.recall("reset a router", episode_id="e")
    before = state(memory)
    with pytest.raises(error):
        memory.reinforce("e", reward=reward)
    with pytest.raises(error):
        memory.reinforce("new", reward=reward, ids=[a])
    assert state(memory) == before
    assert memory.episode("e").reward is None
    with pytest.raises(EpisodeError):
        memory.episode("new")
    assert memory.reinforce("e", reward=1).applied


@pytest.mark.parametrize(
    "reward", [1, 1.0, Decimal(1), np.float64(1), np.float32(1), np.int8(1), np.uint64(1)], ids=repr
)
def test_a_number_of_any_kind_moves_q_alike(memory, a, reward):
    assert memory.reinforce("e", reward=reward, ids=[a]).reward == 1
    assert memory.get(a).q_value == pytest.approx(0.3)


# --- which ids --------------------------------------------------------------------------------


def test_an_unknown_episode_is_an_error_that_may_be_repeated(memory, a):
    with pytest.raises(EpisodeError, match="recall with this episode id first; early=True"):
        memory.reinforce("early", reward=1)
    memory.recall("reset a router", episode_id="early")
    assert memory.reinforce("early", reward=1).applied
    assert memory.get(a).updates == 1


def test_explicit_ids_open_the_episode(memory, a, b):
    memory.reinforce("job", reward=1, ids=[b, a, b])
    episode = memory.episode("job")
    assert (episode.memory_ids, episode.reward, episode.intents) == ((b, a), 1, ())
    assert [memory.get(id).selections for id in (a, b)] == [1, 1]
    assert [memory.get(id).updates for id in (a, b)] == [1, 1]


def test_ids_without_an_episode_id_are_a_type_error(memory, a):
    with pytest.raises(TypeError, match="episode_id"):
        memory.reinforce(ids=[a], reward=1)
    with pytest.raises(TypeError, match="episode_id"):
        memory.reinforce(reward=1)
    assert memory.get(a).updates == 0


def test_unknown_explicit_ids_raise_before_anything_changes(memory, a):
    before = state(memory)
    with pytest.raises(MemoryNotFoundError, match="nothing was changed") as caught:
        memory.reinforce("e", reward=1, ids=[a, "no such id"])
    assert isinstance(caught.value, KeyError)
    assert "no such id" in str(caught.value)
    assert state(memory) == before
    assert memory.reinforce("e", reward=1, ids=[a]).applied


def test_explicit_ids_that_the_episode_recorded_are_accepted_in_any_order(memory, a, b):
    recall = memory.recall("reset a router", episode_id="e", score_threshold=None)
    assert memory.reinforce("e", reward=1, ids=recall.ids[::-1]).applied
    assert [memory.get(id).selections for id in (a, b)] == [1, 1]


def test_explicit_ids_other_than_the_recorded_ones_are_an_episode_error(memory, a, b):
    memory.recall("reset a router", episode_id="e", k=1, score_threshold=None)
    before = state(memory)
    for ids in ([a, b], [b]):
        with pytest.raises(EpisodeError, match="recorded other memories"):
            memory.reinforce("e", reward=1, ids=ids)
    assert state(memory) == before


def test_a_repeat_with_other_ids_is_refused_instead_of_ignored(memory, a, b):
    memory.reinforce("e", reward=1, ids=[a])
    for other in ([b], [a, b], []):
        with pytest.raises(EpisodeError, match="other memories"):
            memory.reinforce("e", reward=1, ids=other)
    assert not memory.reinforce("e", reward=1, ids=[a]).applied
    assert (memory.get(a).updates, memory.get(b).updates) == (1, 0)


def test_recorded_ids_forgotten_since_are_skipped_and_listed(memory, a, b):
    memory.recall("reset a router", episode_id="e", score_threshold=None)
    memory.forget(ids=[a])
    result = memory.reinforce("e", reward=1)
    assert ([credit.id for credit in result.credits], result.skipped) == ([b], (a,))
    again = memory.reinforce("e", reward=1)
    assert (again.applied, again.skipped) == (False, (a,))
    assert [found.id for found in memory.list()] == [b]


def test_no_ids_at_all_is_a_ledger_entry(memory, a):
    memory.recall("quite another thing", episode_id="e", score_threshold=1.0)
    assert memory.reinforce("e", reward=1).applied
    assert not memory.reinforce("e", reward=1).applied
    with pytest.raises(RewardConflictError):
        memory.reinforce("e", reward=-1)
    assert memory.episode("e").reward == 1
    assert memory.reinforce("e2", reward=1, ids=[]).applied
    assert not memory.reinforce("e2", reward=1, ids=[]).applied


def test_explicit_ids_open_an_episode_whose_blank_task_recalled_nothing(memory, a):
    assert memory.recall(" ", episode_id="e").ids == ()
    assert memory.recall("", episode_id="e").ids == ()
    assert memory.reinforce("e", reward=1, ids=[a]).applied
    assert memory.get(a).updates == 1


def test_a_blank_task_does_not_find_what_explicit_ids_recorded(memory, a):
    memory.reinforce("e", reward=1, ids=[a])
    with pytest.raises(EpisodeError, match="already rewarded"):
        memory.recall("", episode_id="e")


@pytest.mark.parametrize("ids", ["one id", [None], [3], [""]])
def test_ids_that_are_no_list_of_ids_are_refused(memory, a, ids):
    with pytest.raises(InputError):
        memory.reinforce("e", reward=1, ids=ids)


@pytest.mark.parametrize("episode_id", ["", " ", 3, "x" * 256, "a\x00"])
def test_an_unusable_episode_id_is_refused_everywhere(memory, a, episode_id):
    for call in (
        lambda: memory.reinforce(episode_id, reward=1, ids=[a]),
        lambda: memory.recall("reset a router", episode_id=episode_id),
        lambda: memory.remember("task", "lesson", episode_id=episode_id),
        lambda: memory.hold(episode_id, intent="task", trajectory="done"),
        lambda: memory.episode(episode_id),
    ):
        with pytest.raises(InputError, match="episode_id"):
            call()
