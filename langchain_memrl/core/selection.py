"""Which memories of a pool are chosen: the k best with stable ties, or an exploration step."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Choice(NamedTuple):
    """The outcome of one choice over a pool of n memories.

    Attributes:
        chosen: Positions of the chosen memories, best first; shape (min(k, n),).
        order: Positions of the whole pool, best first; shape (n,).
        probability: The chance with which each memory was chosen; shape (n,).
        explored: Whether the random branch was taken.
    """

    chosen: Integers
    order: Integers
    probability: Floats
    explored: bool


def rank(scores: Floats, similarity: Floats, selections: Integers, age: Integers) -> Integers:
    """Order a pool, best first: higher score, then higher similarity, fewer selections, newer.

    Scores are compared to 9 decimals: equal by formula means equal, whatever the last bit says.

    Args:
        scores: Shape (n,).
        similarity: Shape (n,).
        selections: How often each reached a prompt, shape (n,).
        age: A number that grows with every memory written, unique in the pool, shape (n,).

    Returns:
        Positions, shape (n,). The same input gives the same order on every machine.
    """
    return np.lexsort((-age, selections, -similarity, -np.round(scores, 9))).astype(np.int64)


def prefer(
    places: Integers, first: Sequence[bool], sources: Sequence[str], most: int | None
) -> tuple[Integers, int]:
    """The order in which memories are taken: first those that are the first of their kind.

    Args:
        places: Positions in a pool, best first, shape (m,).
        first: Of each place whether it is the first of its kind, m of them.
        sources: Who wrote each, m of them.
        most: How many of one source are taken at most; None for any number.

    Returns:
        Positions, shape (at most m,), and how many of them, at their beginning, are first of their
        kind. Without a limit none is left out. With one, every source among the k first without it
        is among the k first with it: the best of each source stays, and only moves up.
    """
    order = [i for i, new in enumerate(first) if new] + [
        i for i, new in enumerate(first) if not new
    ]
    taken: Counter[str] = Counter()
    kept: list[int] = []
    for i in order:
        taken[sources[i]] += 1
        if most is None or taken[sources[i]] <= most:
            kept.append(i)
    return places[kept], sum(first[i] for i in kept)


def choose(
    order: Integers,
    k: int,
    *,
    taking: Integers | None = None,
    epsilon: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Choice:
    """Take the k best, or, with chance epsilon, k random candidates instead.

    Args:
        order: Positions of the pool, best first, shape (n,).
        k: How many to take; fewer when the pool is smaller.
        taking: Those that may be taken, in the order in which they are, where that is another one:
            shape (m,), m <= n. They are given back best first all the same.
        epsilon: Chance of the random branch, in [0, 1].
        rng: Where the randomness comes from; needed when epsilon is above 0.

    Returns:
        The choice. The probability of each memory that may be taken is
        `(1 - epsilon) * [among the k first to take] + epsilon * min(k, m) / m`, that of others 0.
    """
    allowed = order if taking is None else taking
    size = min(k, allowed.size)
    probability = np.zeros(order.size)
    if size == 0:
        return Choice(order[:0], order, probability, explored=False)
    probability[allowed[:size]] = 1.0 - epsilon
    probability[allowed] += epsilon * size / allowed.size
    explored = epsilon > 0 and rng is not None and bool(rng.random() < epsilon)
    picked = allowed[:size]
    if explored and rng is not None:
        picked = allowed[rng.choice(allowed.size, size=size, replace=False)]
    if taking is not None or explored:
        picked = order[np.isin(order, picked)]
    return Choice(picked, order, probability, explored=explored)


def nearest(similarity: Floats, ids: Integers, limit: int) -> Integers:
    """Positions of the `limit` most similar intents, closest first; ties go to the newer id.

    Args:
        similarity: Cosines, shape (n,).
        ids: Intent ids, growing with time, shape (n,).
        limit: How many at most.

    Returns:
        Positions, shape (min(limit, n),).
    """
    return np.lexsort((-ids, -similarity))[:limit].astype(np.int64)
