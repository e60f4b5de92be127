"""Which memories of a pool are chosen: the k best with stable ties, or an exploration step."""

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


def choose(
    order: Integers, k: int, *, epsilon: float = 0.0, rng: np.random.Generator | None = None
) -> Choice:
    """Take the k best, or, with chance epsilon, k random candidates instead.

    Args:
        order: Positions of the pool, best first, shape (n,).
        k: How many to take; fewer when the pool is smaller.
        epsilon: Chance of the random branch, in [0, 1].
        rng: Where the randomness comes from; needed when epsilon is above 0.

    Returns:
        The choice. Each memory's probability is
        `(1 - epsilon) * [among the k best] + epsilon * min(k, n) / n`.
    """
    size = min(k, order.size)
    probability = np.zeros(order.size)
    if size == 0:
        return Choice(order[:0], order, probability, explored=False)
    probability[order[:size]] = 1.0 - epsilon
    probability += epsilon * size / order.size
    explored = epsilon > 0 and rng is not None and bool(rng.random() < epsilon)
    if explored and rng is not None:
        picked = np.sort(rng.choice(order.size, size=size, replace=False))
        return Choice(order[picked], order, probability, explored=True)
    return Choice(order[:size], order, probability, explored=False)


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
