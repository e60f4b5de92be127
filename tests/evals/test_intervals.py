"""Intervals and comparisons worked by hand, and how often an interval holds the truth."""

import math

import numpy as np
import pytest

from langchain_memrl.evals.analysis.intervals import (
    FEW,
    Comparison,
    Interval,
    compare,
    interval,
    seed_differences,
    t_quantile,
)


def test_the_mean_and_its_standard_error_are_exact() -> None:
    found = interval([0.1, 0.3, 0.5, math.nan])
    # Sample standard deviation .2, over sqrt(3).
    assert (found.mean, found.error, found.count) == (
        pytest.approx(0.3),
        pytest.approx(0.2 / math.sqrt(3)),
        3,
    )


@pytest.mark.parametrize(
    ("freedom", "expected"), [(4, 2.776), (5, 2.571), (9, 2.262), (19, 2.093), (1000, 1.962)]
)
def test_quantiles_are_those_of_the_tables(freedom: int, expected: float) -> None:
    assert t_quantile(freedom) == pytest.approx(expected, abs=0.003)


def test_five_values_have_the_t_interval() -> None:
    # Mean .3, standard deviation sqrt(.025) = .1581, over sqrt(5) = .0707, times 2.776 = .1963.
    found = interval([0.1, 0.2, 0.3, 0.4, 0.5])
    assert (found.low, found.high) == (
        pytest.approx(0.3 - 0.1963, abs=3e-4),
        pytest.approx(0.3 + 0.1963, abs=3e-4),
    )


def test_an_interval_ends_where_values_end() -> None:
    found = interval([0.7, 1.0, 1.0, 1.0, 1.0], (0.0, 1.0))
    assert found.high == 1.0
    assert interval([0.7, 1.0, 1.0, 1.0, 1.0]).high > 1.0


@pytest.mark.parametrize("count", range(FEW))
def test_fewer_than_five_values_have_no_interval(count: int) -> None:
    found = interval([0.1 * place for place in range(count)])
    assert not found.known
    assert found.count == count


def test_equal_values_have_no_interval_because_they_prove_no_certainty() -> None:
    found = interval([0.533] * 8)
    assert (found.known, found.mean, found.ends()) == (
        False,
        pytest.approx(0.533),
        "8 seeds, all equal",
    )


@pytest.mark.parametrize("seeds", [5, 10, 20])
@pytest.mark.parametrize("kind", ["normal", "difference", "one arm"])
def test_an_interval_holds_the_truth_about_as_often_as_it_says(kind: str, seeds: int) -> None:
    """20,000 experiments each; shares of 12 tasks whose difficulty differs from seed to seed."""
    rng = np.random.default_rng(seeds)
    shape = (20_000, seeds)
    if kind == "normal":
        values, truth = rng.normal(size=shape), 0.0
    else:
        hard = rng.normal(0, 0.05, size=shape)
        values = rng.binomial(12, np.clip(0.8 + hard, 0, 1)) / 12
        truth = float(np.clip(0.8 + rng.normal(0, 0.05, size=10**6), 0, 1).mean())
        if kind == "difference":
            values = values - rng.binomial(12, np.clip(0.6 + hard, 0, 1)) / 12
            truth -= 0.6
    reach = t_quantile(seeds - 1) * values.std(axis=1, ddof=1) / math.sqrt(seeds)
    held = float((np.abs(values.mean(axis=1) - truth) <= reach).mean())
    print(f"{kind}, {seeds} seeds: {held:.3f}")
    assert 0.93 <= held <= 0.96


Values = dict[str, dict[tuple[str, int], float]]


def arms(**values: list[float]) -> Values:
    return {
        arm: {("w", seed): value for seed, value in enumerate(own)} for arm, own in values.items()
    }


def test_seeds_are_the_unit_and_worlds_are_averaged_first() -> None:
    left = {("w", 0): 0.5, ("v", 0): 1.0, ("w", 1): 0.25, ("v", 1): 0.5}
    right = {("w", 1): 0.75, ("v", 1): 0.5, ("w", 0): 0.25, ("v", 0): 0.25}
    assert seed_differences(left, right) == {0: 0.5, 1: -0.25}


def test_more_worlds_of_the_same_seeds_do_not_look_like_more_proof() -> None:
    own = [0.1, 0.0, 0.2, -0.1, 0.3]
    one = {"a": {("w", seed): x for seed, x in enumerate(own)}, "b": {}}
    many = {"a": {(f"w{k}", seed): x for k in range(20) for seed, x in enumerate(own)}, "b": {}}
    for values in (one, many):
        values["b"] = dict.fromkeys(values["a"], 0.0)
    found = [compare("a", "b", values).difference for values in (one, many)]
    assert found[1].count == 5
    assert found[1].low == pytest.approx(found[0].low)


def test_a_world_that_lacks_a_seed_is_left_out_so_that_seeds_do_not_differ_by_worlds() -> None:
    left = {("w", 0): 0.5, ("w", 1): 0.25, ("v", 0): 1.0, ("v", 1): math.nan}
    right = {("w", 1): 0.75, ("w", 0): 0.25, ("v", 1): 0.0, ("v", 0): 0.0}
    assert seed_differences(left, right) == {0: 0.25, 1: -0.5}


def test_who_is_ahead_is_said_with_how_much_and_how_surely() -> None:
    values = arms(memrl=[0.6, 0.7, 0.8, 0.9, 1.0], rag=[0.3, 0.5, 0.5, 0.7, 0.7])
    # Differences .3 .2 .3 .2 .3: mean .26, standard error .0245, times 2.776 is .068.
    sentence = "memrl is ahead of rag by 0.260 (95 % interval 0.192 to 0.328, 5 seeds)."
    assert compare("memrl", "rag", values).sentence == sentence
    assert compare("rag", "memrl", values).sentence == sentence
    assert compare("rag", "memrl", values).ahead == "memrl"


def test_an_interval_that_holds_zero_tells_no_difference() -> None:
    found = compare("memrl", "rag", arms(memrl=[0.5] * 5, rag=[0.2, 0.8, 0.4, 0.7, 0.3]))
    assert found.ahead == ""
    assert found.sentence == (
        "No difference between memrl and rag can be told: +0.020 "
        "(95 % interval -0.301 to +0.341, 5 seeds)."
    )


@pytest.mark.parametrize("seeds", [1, 2, 3, 4])
def test_few_seeds_give_no_verdict_however_large_the_difference(seeds: int) -> None:
    own = [0.9 + 0.01 * seed for seed in range(seeds)]
    found = compare("memrl", "rag", arms(memrl=own, rag=[0.1] * seeds))
    assert found.ahead == ""
    assert "too few to tell; difference so far +0.8" in found.sentence
    assert found.sentence.startswith(f"memrl against rag, {seeds} seed")


def test_equal_arms_are_not_ahead_of_each_other() -> None:
    found = compare("a", "b", arms(a=[0.5] * 5, b=[0.5] * 5))
    assert (found.ahead, found.sentence) == ("", "a and b did equally well in all 5 seeds.")


def test_a_difference_that_no_seed_changes_is_no_verdict() -> None:
    found = compare("a", "b", arms(a=[0.75] * 5, b=[0.5] * 5))
    assert found.ahead == ""
    assert "differ by +0.250 in each of 5 seeds" in found.sentence


def test_what_rounds_to_zero_has_no_sign() -> None:
    found = Comparison("a", "b", Interval(-0.0001, -0.2, 0.0002, 0.1, 5))
    assert found.sentence == (
        "No difference between a and b can be told: 0.000 (95 % interval -0.200 to 0.000, 5 seeds)."
    )


def test_arms_that_never_met_cannot_be_compared() -> None:
    assert "nothing to compare" in compare("memrl", "rag", {"rag": {("", 0): 0.5}}).sentence


def test_a_difference_whose_interval_touches_zero_is_none() -> None:
    assert Comparison("a", "b", Interval(0.1, 0.0, 0.2, 0.05, 9)).ahead == ""
