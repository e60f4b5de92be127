"""How much success memories add, from episodes in which chance decided whether they were shown."""

import math
from collections.abc import Sequence
from typing import NamedTuple

ALPHA = 0.05
"""How often the interval may ever miss the truth."""
FEWEST = 10
"""Fewer episodes than this on one side carry no interval."""
TUNED_FOR = 100.0
"""Effective number of episodes for which the interval is as narrow as it can be."""


class Arm(NamedTuple):
    """Episodes of one side.

    Attributes:
        episodes: How many have a reward.
        successes: In how many of them it was a success.
    """

    episodes: int
    successes: int

    @property
    def share(self) -> float:
        """Share of successes; NaN where there is no episode."""
        return self.successes / self.episodes if self.episodes else math.nan


class Difference(NamedTuple):
    """A difference of two shares, and an interval that stays valid however often one looks."""

    value: float
    low: float
    high: float


def lift_of(pairs: Sequence[tuple[Arm, Arm]]) -> Difference:
    """Share of successes with memories minus that without.

    Each pair has one chance of being held out; pairs are averaged with the weights
    `n1 n0 / (n1 + n0)` (Mantel and Haenszel, 1959), so that a chance that was changed while success
    rose or fell does not feign a difference. The variance adds one success and one failure to each
    side (Agresti and Caffo, 2000). The interval is a confidence sequence: with
    `t = sum(n1 n0 / (n1 + n0))` its half width is

        sqrt(variance) * sqrt(2 (t r + 1) / (t r) * log(sqrt(t r + 1) / alpha))

    (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, 2024). It holds the truth at every moment
    with at least 95 %, not only at one that was fixed before; a usual interval that is looked at
    again and again misses far more often.

    Args:
        pairs: Episodes with memories and without, per chance of being held out.

    Returns:
        The difference in [-1, 1]; NaN where one side is empty, ends NaN where it has fewer than 10.
    """
    both = [(shown, held) for shown, held in pairs if shown.episodes and held.episodes]
    weights = [_weight(shown, held) for shown, held in both]
    total = sum(weights)
    if not total:
        return Difference(math.nan, math.nan, math.nan)
    value = (
        sum(
            weight * (shown.share - held.share)
            for weight, (shown, held) in zip(weights, both, strict=True)
        )
        / total
    )
    if min(sum(pair[side].episodes for pair in both) for side in (0, 1)) < FEWEST:
        return Difference(value, math.nan, math.nan)
    variance = (
        sum(
            weight**2 * (_variance(shown) + _variance(held))
            for weight, (shown, held) in zip(weights, both, strict=True)
        )
        / total**2
    )
    half = math.sqrt(variance) * _always(total)
    return Difference(value, max(-1.0, value - half), min(1.0, value + half))


def _weight(shown: Arm, held: Arm) -> float:
    return shown.episodes * held.episodes / (shown.episodes + held.episodes)


def _variance(arm: Arm) -> float:
    """Of a share, one success and one failure added."""
    share = (arm.successes + 1) / (arm.episodes + 2)
    return share * (1 - share) / (arm.episodes + 2)


def _always(size: float) -> float:
    """How many standard errors wide half the interval is."""
    rate = (-2 * math.log(ALPHA) + math.log(-2 * math.log(ALPHA)) + 1) / TUNED_FOR
    grown = size * rate
    return math.sqrt(2 * (grown + 1) / grown * math.log(math.sqrt(grown + 1) / ALPHA))
