"""Intervals and comparisons on numbers worked by hand."""

import math

import numpy as np
import pytest

from langchain_memrl.evals.intervals import (
    Comparison,
    Interval,
    compare,
    interval,
    paired_differences,
)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_the_mean_and_its_standard_error_are_exact() -> None:
    found = interval([0.1, 0.3, 0.5, math.nan], rng())
    # Sample standard deviation .2, over sqrt(3).
    assert (found.mean, found.error, found.count) == (
        pytest.approx(0.3),
        pytest.approx(0.2 / math.sqrt(3)),
        3,
    )


def test_the_interval_of_two_values_reaches_from_one_to_the_other() -> None:
    # Means of resamples are 0, 1/2 or 1 with chances 1/4, 1/2, 1/4.
    found = interval([0.0, 1.0], rng())
    assert (found.low, found.high) == (0.0, 1.0)


def test_equal_values_leave_no_doubt() -> None:
    found = interval([0.25] * 8, rng())
    assert (found.low, found.mean, found.high, found.error) == (0.25, 0.25, 0.25, 0.0)


def test_many_values_have_the_interval_of_the_normal_distribution() -> None:
    values = np.random.default_rng(1).normal(size=400).tolist()
    found = interval(values, rng())
    assert found.low == pytest.approx(found.mean - 1.96 * found.error, abs=0.01)
    assert found.high == pytest.approx(found.mean + 1.96 * found.error, abs=0.01)


def test_the_same_generator_gives_the_same_interval() -> None:
    values = [0.1, 0.2, 0.4, 0.8]
    assert interval(values, rng()) == interval(values, rng())


@pytest.mark.parametrize("values", [[], [0.5], [0.5, math.nan]])
def test_fewer_than_two_values_have_no_interval(values: list[float]) -> None:
    assert math.isnan(interval(values, rng()).low)


def test_pairs_are_what_both_arms_have() -> None:
    left = {("w", 0): 0.5, ("w", 1): 0.25, ("v", 0): 1.0, ("v", 1): math.nan}
    right = {("w", 1): 0.75, ("w", 0): 0.25, ("v", 1): 0.0}
    assert paired_differences(left, right) == [0.25, -0.5]


def arms(**values: list[float]) -> dict[str, dict[object, float]]:
    return {arm: dict(enumerate(numbers)) for arm, numbers in values.items()}


def test_who_is_ahead_is_said_with_how_much_and_how_surely() -> None:
    found = compare("memrl", "rag", arms(memrl=[0.6, 0.7], rag=[0.5, 0.4]), rng())
    assert found.ahead == "memrl"
    assert found.sentence == (
        "memrl is ahead of rag by 0.200 (95 % interval 0.100 to 0.300, 2 pairs)."
    )


def test_who_is_behind_is_said_as_plainly() -> None:
    found = compare("memrl", "rag", arms(memrl=[0.5, 0.4], rag=[0.6, 0.7]), rng())
    assert found.sentence == (
        "rag is ahead of memrl by 0.200 (95 % interval 0.100 to 0.300, 2 pairs)."
    )


def test_an_interval_that_holds_zero_tells_no_difference() -> None:
    found = compare("memrl", "rag", arms(memrl=[0.5, 0.5], rag=[0.25, 0.625]), rng())
    assert found.ahead == ""
    assert found.sentence == (
        "No difference between memrl and rag can be told: +0.062 "
        "(95 % interval -0.125 to +0.250, 2 pairs)."
    )


def test_equal_arms_are_not_ahead_of_each_other() -> None:
    found = compare("a", "b", arms(a=[0.5] * 5, b=[0.5] * 5), rng())
    assert (found.ahead, found.sentence) == ("", "a and b did equally well in all 5 pairs.")


def test_what_rounds_to_zero_has_no_sign() -> None:
    found = Comparison("a", "b", Interval(-0.0001, -0.2, 0.0002, 0.1, 4))
    assert found.sentence == (
        "No difference between a and b can be told: 0.000 (95 % interval -0.200 to 0.000, 4 pairs)."
    )


def test_one_pair_says_nothing_about_chance() -> None:
    found = compare("memrl", "rag", arms(memrl=[1.0], rag=[0.0]), rng())
    assert (found.ahead, "nothing about chance" in found.sentence) == ("", True)


def test_arms_that_never_met_cannot_be_compared() -> None:
    assert "nothing to compare" in compare("memrl", "rag", {"rag": {0: 0.5}}, rng()).sentence


def test_a_difference_whose_interval_touches_zero_is_none() -> None:
    assert Comparison("a", "b", Interval(0.1, 0.0, 0.2, 0.05, 9)).ahead == ""
