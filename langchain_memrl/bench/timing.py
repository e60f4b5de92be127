"""Times of calls that run in turns, so that a busy moment of the machine hits all of them."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

WARM_UP = 3


class Times(NamedTuple):
    """Times of one kind of call, in milliseconds.

    Attributes:
        median: Half of the calls were faster.
        p99: One in a hundred was slower.
        calls: How many were timed.
    """

    median: float
    p99: float
    calls: int


def in_turns(calls: Mapping[str, Callable[[int], object]], rounds: int) -> dict[str, Times]:
    """Time each call `rounds` times, one after another in every round.

    Args:
        calls: What to time, by name; each gets the number of the round.
        rounds: How often; three rounds before them are not counted.

    Returns:
        The times, by name.
    """
    found: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    for number in range(-WARM_UP, rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call(number + WARM_UP)
            taken = time.perf_counter() - start
            if number >= 0:
                found[name].append(1000 * taken)
    return {name: summary(times) for name, times in found.items()}


def summary(times: list[float]) -> Times:
    """Median and 99th percentile of times in milliseconds."""
    ordered = sorted(times)
    return Times(
        statistics.median(ordered),
        ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)],
        len(ordered),
    )


def sum_of(one: Times, other: Times) -> Times:
    """The times of two calls one after the other."""
    return Times(one.median + other.median, one.p99 + other.p99, min(one.calls, other.calls))
