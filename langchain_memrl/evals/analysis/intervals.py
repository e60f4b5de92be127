"""How sure a number is: intervals over seeds, and two arms compared seed by seed."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

LEVEL = 0.95
FEW = 5
"""Fewer seeds than this carry neither an interval nor a verdict."""

Pair = tuple[str, int]
"""World and seed: what two arms have in common."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and where it would lie had other seeds been drawn.

    Attributes:
        mean: The mean.
        low: Lower end of the 95 % interval; NaN for fewer than 5 values or where all are equal.
        high: Upper end.
        error: Standard error of the mean; NaN for fewer than two values.
        count: How many values: seeds.
    """

    mean: float
    low: float
    high: float
    error: float
    count: int

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not math.isnan(self.low)

    def ends(self, sign: str = "") -> str:
        """The interval in words, or why there is none.

        Args:
            sign: `"+"` to show the sign of positive ends, as for differences.
        """
        if self.known:
            return f"{_plain(self.low, sign)} to {_plain(self.high, sign)}"
        return f"{self.count} seed{'s' * (self.count != 1)}" + (
            ", all equal" if self.count >= FEW else ""
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two arms over the same worlds and seeds.

    Attributes:
        left: One arm.
        right: The other.
        difference: Left minus right per seed, the worlds that both have averaged first.
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
        seeds = f"{found.count} seed{'s' * (found.count != 1)}"
        if found.count < FEW:
            return (
                f"{self.left} against {self.right}, {seeds}: too few to tell; difference so far "
                f"{_plain(found.mean, '+')}."
            )
        if not found.known:
            return (
                f"{self.left} and {self.right} did equally well in all {seeds}."
                if found.mean == 0
                else f"{self.left} and {self.right} differ by {_plain(found.mean, '+')} in each of "
                f"{seeds}: the seeds seem to have changed nothing, so chance cannot be judged."
            )
        if not self.ahead:
            return (
                f"No difference between {self.left} and {self.right} can be told: "
                f"{_plain(found.mean, '+')} (95 % interval {found.ends('+')}, {seeds})."
            )
        behind = self.right if self.ahead == self.left else self.left
        low, high = sorted((abs(found.low), abs(found.high)))
        return (
            f"{self.ahead} is ahead of {behind} by {abs(found.mean):.3f} "
            f"(95 % interval {low:.3f} to {high:.3f}, {seeds})."
        )


def interval(values: Sequence[float], within: tuple[float, float] | None = None) -> Interval:
    """Mean with its t interval: mean -+ t(n - 1) * s / sqrt(n).

    Exact for normal values. Measured over 20,000 simulated experiments with success shares of 12
    tasks (`tests/evals/test_intervals.py`): it holds the truth in 95 of 100 cases with 5, 10 and 20
    seeds where arms are compared, and in 94 to 95 for an arm alone that solves 80 %. A percentile
    bootstrap of 5 values holds it in 84. Fewer than 5 values have no interval: it would be so wide,
    or so much a matter of luck, that nobody should decide by it. Equal values have none either: no
    spread is no proof that there is no chance.

    Args:
        values: One per seed; NaN are left out.
        within: Smallest and largest value that is possible; the interval ends there.
    """
    found = np.asarray([value for value in values if not math.isnan(value)], dtype=float)
    count = len(found)
    mean = float(found.mean()) if count else math.nan
    error = float(found.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan
    if count < FEW or error < 1e-12:
        return Interval(mean, math.nan, math.nan, error, count)
    reach = t_quantile(count - 1) * error
    low, high = mean - reach, mean + reach
    if within is not None:
        low, high = max(low, within[0]), min(high, within[1])
    return Interval(mean, low, high, error, count)


def t_quantile(freedom: int, level: float = LEVEL) -> float:
    """How many standard errors a two-sided interval reaches (Cornish-Fisher; 4 is off by .002)."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(sum(term / freedom**power for power, term in enumerate(terms)))


def seed_differences(left: Mapping[Pair, float], right: Mapping[Pair, float]) -> dict[int, float]:
    """Left minus right per seed: the mean over the worlds that both have with that seed.

    What both share (a hard draw of tasks) cancels out, so far fewer seeds are needed than for
    comparing two means. Worlds are averaged first: the same seed may draw alike tasks in all of
    them, so their differences are no independent draws, and more worlds would only look like more
    proof. Worlds in which some of the seeds are missing are left out (unless all are like that):
    seeds would differ by their worlds.
    """
    both = {pair: left[pair] - right[pair] for pair in left if pair in right}
    both = {pair: value for pair, value in both.items() if not math.isnan(value)}
    per_world = Counter(world for world, _ in both)
    seeds = len({seed for _, seed in both})
    whole = {world for world, count in per_world.items() if count == seeds} or set(per_world)
    found: dict[int, list[float]] = {}
    for (world, seed), value in both.items():
        if world in whole:
            found.setdefault(seed, []).append(value)
    return {seed: sum(found[seed]) / len(found[seed]) for seed in sorted(found)}


def compare(left: str, right: str, values: Mapping[str, Mapping[Pair, float]]) -> Comparison:
    """Compare two arms seed by seed.

    Args:
        left: One arm.
        right: The other.
        values: For each arm, a number per (world, seed).
    """
    differences = seed_differences(values.get(left, {}), values.get(right, {}))
    return Comparison(left, right, interval(list(differences.values())))


def _plain(value: float, sign: str = "") -> str:
    """Three digits, with a sign where asked, but none where only zeros are shown."""
    text = f"{value:{sign}.3f}"
    return text if float(text) else text.lstrip("+-")
