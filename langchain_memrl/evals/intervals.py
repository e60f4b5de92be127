"""How sure a number is: bootstrap intervals, and two arms compared run by run."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

DRAWS = 2000
"""Resamples behind an interval; its ends then move by about a twentieth of its width."""
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and where it would lie had other seeds been drawn.

    Attributes:
        mean: The mean.
        low: Lower end of the 95 % interval; NaN for fewer than two values.
        high: Upper end.
        error: Standard error of the mean; NaN for fewer than two values.
        count: How many values.
    """

    mean: float
    low: float
    high: float
    error: float
    count: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two arms over the same worlds and seeds.

    Attributes:
        left: One arm.
        right: The other.
        difference: Left minus right, per pair of runs with the same world and seed.
    """

    left: str
    right: str
    difference: Interval

    @property
    def ahead(self) -> str:
        """The arm that is surely ahead; empty where no difference can be told."""
        if self.difference.low > 0:
            return self.left
        return self.right if self.difference.high < 0 else ""

    @property
    def sentence(self) -> str:
        """Which arm is ahead, by how much and how surely."""
        found = self.difference
        if found.count == 0:
            return f"{self.left} and {self.right} share no world and seed: nothing to compare."
        if found.count == 1:
            return (
                f"{self.left} and {self.right} differ by {found.mean:+.3f} in one pair of runs: "
                "one pair says nothing about chance."
            )
        if found.low == found.high == 0:
            return f"{self.left} and {self.right} did equally well in all {found.count} pairs."
        if not self.ahead:
            ends = f"{_signed(found.low)} to {_signed(found.high)}"
            return (
                f"No difference between {self.left} and {self.right} can be told: "
                f"{_signed(found.mean)} (95 % interval {ends}, {found.count} pairs)."
            )
        behind = self.right if self.ahead == self.left else self.left
        low, high = sorted((abs(found.low), abs(found.high)))
        return (
            f"{self.ahead} is ahead of {behind} by {abs(found.mean):.3f} "
            f"(95 % interval {low:.3f} to {high:.3f}, {found.count} pairs)."
        )


def interval(values: Sequence[float], rng: np.random.Generator, draws: int = DRAWS) -> Interval:
    """Mean with its percentile bootstrap interval.

    The values are drawn again with replacement, `draws` times; the interval holds the middle 95 %
    of the means. With few values it is too narrow: of 5 normal values it holds the truth in about
    84 of 100 cases, of 10 in 90, of 20 in 92, of 40 in 93, of 120 in 95.

    Args:
        values: One per seed, or per pair; NaN are left out.
        rng: Draws the resamples.
        draws: How many.
    """
    known = np.asarray([value for value in values if not math.isnan(value)], dtype=float)
    if len(known) < 2:
        mean = float(known[0]) if len(known) else math.nan
        return Interval(mean, math.nan, math.nan, math.nan, len(known))
    means = known[rng.integers(len(known), size=(draws, len(known)))].mean(axis=1)
    low, high = np.quantile(means, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    error = known.std(ddof=1) / math.sqrt(len(known))
    return Interval(float(known.mean()), float(low), float(high), float(error), len(known))


def paired_differences(
    left: Mapping[Hashable, float], right: Mapping[Hashable, float]
) -> list[float]:
    """Left minus right for each key that both have, in the order of `left`; NaN are left out.

    What both share (a hard draw of tasks) cancels out, so far fewer seeds are needed than for
    comparing two means.
    """
    both = [left[key] - right[key] for key in left if key in right]
    return [value for value in both if not math.isnan(value)]


def compare(
    left: str,
    right: str,
    values: Mapping[str, Mapping[Hashable, float]],
    rng: np.random.Generator,
) -> Comparison:
    """Compare two arms pair by pair.

    Args:
        left: One arm.
        right: The other.
        values: For each arm, a number per (world, seed).
        rng: Draws the resamples of pairs.
    """
    differences = paired_differences(values.get(left, {}), values.get(right, {}))
    return Comparison(left, right, interval(differences, rng))


def _signed(value: float) -> str:
    """With its sign, but no sign where only zeros are shown."""
    text = f"{value:+.3f}"
    return text if float(text) else text[1:]
