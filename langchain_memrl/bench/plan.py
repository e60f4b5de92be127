"""Which banks are measured, how often, and about how long that takes."""

from collections.abc import Sequence
from typing import NamedTuple

LARGE = 1_000_000
ROUNDS = ((1_000, 100), (10_000, 50), (100_000, 20), (LARGE, 10))
"""Up to so many memories a call is timed so often."""
FILL_MS = 1.2
"""Writing one memory, in a batch, with 384 numbers."""
SCAN_NS = 1.5
"""One number of one vector in one recall, everything that a round does taken together."""


class Step(NamedTuple):
    """One bank to measure."""

    size: int
    dimension: int
    rounds: int
    peers: bool


def plan(
    sizes: Sequence[int],
    dimensions: Sequence[int],
    *,
    rounds: int | None,
    peers: bool,
    large: bool,
) -> list[Step]:
    """The banks, smallest first; a million memories only with `large` and the first dimension.

    Args:
        sizes: Memories per bank.
        dimensions: Numbers per vector.
        rounds: How often each call is timed; None chooses by size.
        peers: Whether other stores are measured too.
        large: Whether a bank of a million memories is added.

    Returns:
        What to measure, in order.
    """
    pairs = [(size, dimension) for size in sizes for dimension in dimensions]
    if large and (LARGE, dimensions[0]) not in pairs:
        pairs.append((LARGE, dimensions[0]))
    return [
        Step(size, dimension, rounds or rounds_for(size), peers and size < LARGE)
        for size, dimension in sorted(pairs, key=lambda pair: pair[0] * pair[1])
    ]


def rounds_for(size: int) -> int:
    """How often a call is timed on a bank of this size."""
    return next((rounds for limit, rounds in ROUNDS if size <= limit), ROUNDS[-1][1])


def seconds(step: Step) -> float:
    """About how long one bank takes; wide of the mark on another machine."""
    numbers = step.size * step.dimension
    filling = step.size * FILL_MS / 1000 * (1 + step.dimension / 1536)
    calls = step.rounds * (0.25 + 12 * numbers * SCAN_NS / 1e9)
    others = 5 + min(step.size, 10_000) * step.dimension * 4e-6 if step.peers else 0
    reference = min(step.size, 10_000) * step.dimension * 1e-6 if step.size <= 10_000 else 0
    return 8 + filling + calls + others + reference


def duration(seconds: float) -> str:
    """A time in words."""
    if seconds < 90:
        return f"{max(5, 5 * round(seconds / 5))} seconds"
    return f"{max(2, round(seconds / 60))} minutes"
