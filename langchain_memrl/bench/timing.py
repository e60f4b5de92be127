"""Times of calls that run in turns, so that a busy moment of the machine hits all of them."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

WARM_UP = 3


class Times(NamedTuple):
    """What calls of one kind took in milliseconds, or counted in the unit of their row.

    Attributes:
        median: Half of the calls were below.
        p99: One in a hundred was above.
        largest: The worst of them.
        calls: How many were measured.
    """

    median: float
    p99: float
    largest: float
    calls: int


def in_turns(
    calls: Mapping[str, Callable[[int], object]], rounds: int, *, warm_up: int = WARM_UP
) -> dict[str, Times]:
    """Time each call `rounds` times, one after another in every round.

    Args:
        calls: What to time, by name; each gets the number of the round.
        rounds: How often.
        warm_up: Rounds before them that are not counted.

    Returns:
        The times, by name.
    """
    found: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    for number in range(warm_up + rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call(number)
            taken = time.perf_counter() - start
            if number >= warm_up:
                found[name].append(1000 * taken)
    return {name: summary(times) for name, times in found.items()}


def summary(values: Sequence[float]) -> Times:
    """Median, 99th percentile and the largest of some values."""
    ordered = sorted(values)
    place = min(len(ordered) * 99 // 100, len(ordered) - 1)
    return Times(statistics.median(ordered), ordered[place], ordered[-1], len(ordered))


def sum_of(one: Times, other: Times) -> Times:
    """The times of two calls one after the other."""
    return Times(
        one.median + other.median,
        one.p99 + other.p99,
        one.largest + other.largest,
        min(one.calls, other.calls),
    )
