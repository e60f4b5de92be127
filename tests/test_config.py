"""Settings are checked when they are made; rewards follow one rule per kind of input."""

import dataclasses
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from langchain_memrl import PRESETS, LearningConfig, RecallConfig
from langchain_memrl.errors import ConfigError, MemRLError, RewardError, RewardTypeError

# --- recall -----------------------------------------------------------------------------------


def test_the_defaults_are_the_documented_ones():
    assert dataclasses.astuple(RecallConfig()) == (
        5,
        10,
        "auto",
        0.5,
        "zscore",
        0.0,
        0.0,
        False,
        True,
        None,
        False,
    )
    assert dataclasses.astuple(LearningConfig()) == (0.3, 0.0, (-1.0, 1.0), 1.0, -1.0)


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "k": [0, -1, 2.0, "5", None, True, math.nan],
        "fetch_k": [0, -1, 2.0, "5", None, True],
        "score_threshold": [1.01, -1.01, math.nan, math.inf, "high", True, [0.5]],
        "q_weight": [-0.01, 1.01, math.nan, None, "0.5", True],
        "epsilon": [-0.01, 1.01, math.nan, None, "0.5", True],
        "holdout": [-0.01, 1.01, math.nan, None, "0.5", True],
        "stop_when_harmful": [1, 0, None, "yes"],
        "distinct": [1, 0, None, "yes"],
        "max_per_source": [0, -1, 1.0, "2", True],
        "normalization": ["Zscore", "", None, 1],
    }.items(),
)
def test_a_recall_setting_out_of_range_is_refused_by_name(name, values):
    for value in values:
        with pytest.raises(ConfigError, match=rf"^{name} is .*; expected "):
            RecallConfig(**{name: value})


@pytest.mark.parametrize(
    "settings",
    [
        {"k": 1, "fetch_k": 1, "score_threshold": -1, "q_weight": 0, "epsilon": 1},
        {"k": 10**6, "score_threshold": None, "q_weight": 1, "normalization": "none"},
        {"score_threshold": 1.0, "normalization": "pool"},
    ],
)
def test_the_ends_of_the_ranges_are_allowed(settings):
    made = RecallConfig(**settings)
    assert {name: getattr(made, name) for name in settings} == settings


def test_settings_cannot_be_changed_once_made():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RecallConfig().k = 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        LearningConfig().step_size = 0.1


def test_an_unknown_setting_is_a_type_error():
    with pytest.raises(TypeError):
        RecallConfig(top_k=3)
    with pytest.raises(TypeError):
        LearningConfig(alpha=0.3)


def test_the_presets_are_the_rows_of_the_paper():
    rows = {name: (p.score_threshold, p.fetch_k, p.k, p.q_weight) for name, p in PRESETS.items()}
    assert rows == {
        "alfworld": (0.62, 5, 3, 0.5),
        "lifelong-os": (0.50, 10, 5, 0.5),
        "lifelong-db": (0.37, 10, 5, 0.5),
        "bigcodebench": (0.38, 10, 5, 0.5),
        "hle": (0.25, 5, 3, 0.5),
    }


# --- learning ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "step_size": [-0.1, 1.1, math.nan, None, "0.3", True],
        "reward_range": [(1, -1), (0, 0), (0,), (0, 1, 2), (0, math.inf), (math.nan, 1), 1, "01"],
        "q_init": [-1.1, 1.1, math.nan, "0", True],
        "success_reward": [1.1, math.nan, "1", True],
        "failure_reward": [-1.1, math.inf, "0", False],
    }.items(),
)
def test_a_learning_setting_out_of_range_is_refused_by_name(name, values):
    for value in values:
        with pytest.raises(ConfigError, match=rf"^{name} is .*; expected "):
            LearningConfig(**{name: value})


def test_success_and_failure_are_the_ends_of_the_range_unless_given():
    made = LearningConfig(reward_range=[0, 10])
    assert (made.reward_range, made.success_reward, made.failure_reward) == ((0, 10), 10, 0)
    made = LearningConfig(success_reward=0.5, failure_reward=-0.25)
    assert (made.success_reward, made.failure_reward) == (0.5, -0.25)


def test_a_changed_copy_is_checked_and_leaves_the_original():
    before = LearningConfig()
    assert before.changed(step_size=0.2) == LearningConfig(step_size=0.2)
    assert before == LearningConfig()
    with pytest.raises(ConfigError, match="step_size"):
        before.changed(step_size=2)
    with pytest.raises(ConfigError, match="alpha"):
        before.changed(alpha=0.2)


# --- outcome ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("span", "rewards"),
    [
        # the middle of (-1, 1) is 0, of (0, 1) it is .5, of (0, 10) it is 5
        ((-1, 1), {1: "success", 0.01: "success", 0: "unknown", -0.01: "failure", -1: "failure"}),
        ((0, 1), {1: "success", 0.51: "success", 0.5: "unknown", 0.49: "failure", 0: "failure"}),
        ((0, 10), {6: "success", 5: "unknown", 1: "failure"}),
    ],
)
def test_the_outcome_is_decided_by_the_middle_of_the_range(span, rewards):
    learning = LearningConfig(reward_range=span, q_init=span[0])
    assert {reward: learning.outcome(reward) for reward in rewards} == rewards
    assert learning.outcome(None) == "unknown"


# --- rewards ----------------------------------------------------------------------------------

GOOD = [
    *((1, 1.0), (0, 0.0), (-1, -1.0), (0.25, 0.25), (-0.0, 0.0)),
    *((Decimal("0.5"), 0.5), (Fraction(1, 4), 0.25)),
    *((np.float64(0.5), 0.5), (np.float32(0.5), 0.5), (np.float16(-0.5), -0.5)),
    *((np.int64(1), 1.0), (np.int8(-1), -1.0), (np.uint8(1), 1.0), (np.array(0.5), 0.5)),
]
WRONG_NUMBER = [
    *(math.nan, math.inf, -math.inf, 1.0001, -1.0001, 2, 10**400, Decimal("1.1")),
    *(Decimal("NaN"), Decimal("Infinity"), np.float64("nan"), np.float32("inf"), np.int64(-2)),
]
WRONG_TYPE = [
    *(True, False, np.True_, np.False_, "1", "False", "", b"1", np.str_("1")),
    *([1], (1,), {1}, {"reward": 1}, np.array([0.5]), np.array([0.5, 1]), object(), None),
    *(1j, np.complex64(0.5), np.complex128(0.5 + 1j)),
]


@pytest.mark.parametrize(("value", "number"), GOOD, ids=repr)
def test_a_number_in_range_becomes_a_float(value, number):
    reward = LearningConfig().reward(value)
    assert type(reward) is float
    assert reward == number


@pytest.mark.parametrize("value", WRONG_NUMBER, ids=lambda value: repr(value)[:20])
def test_a_number_out_of_range_or_not_finite_is_a_reward_error(value):
    with pytest.raises(RewardError, match=r"expected a finite number in \[-1, 1\]") as caught:
        LearningConfig().reward(value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, MemRLError)
    assert not isinstance(caught.value, TypeError)


@pytest.mark.parametrize("value", WRONG_TYPE, ids=repr)
def test_what_is_easily_misread_is_a_type_error(value):
    with pytest.raises(RewardTypeError, match=r"expected a finite number in \[-1, 1\]") as caught:
        LearningConfig().reward(value)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("value", [True, np.False_])
def test_the_error_about_a_bool_names_the_rewards_to_use(value):
    with pytest.raises(RewardTypeError, match=r"use 1 for success and -1 for failure"):
        LearningConfig().reward(value)


def test_the_range_is_the_configured_one():
    learning = LearningConfig(reward_range=(0, 10))
    assert learning.reward(7) == 7
    with pytest.raises(RewardError, match=r"\[0, 10\]"):
        learning.reward(-1)


def test_a_new_range_moves_the_rewards_that_are_its_ends():
    changed = LearningConfig().changed(reward_range=(0.0, 2.0))
    assert (changed.failure_reward, changed.success_reward) == (0.0, 2.0)
    kept = LearningConfig(success_reward=0.5).changed(reward_range=(0.0, 2.0))
    assert (kept.failure_reward, kept.success_reward) == (0.0, 0.5)


def test_a_reward_range_too_wide_to_compute_with_is_refused():
    with pytest.raises(ConfigError, match="finite distance"):
        LearningConfig(reward_range=(-1.7e308, 1.7e308))
