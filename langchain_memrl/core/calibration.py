"""What a bank knows about its own similarities: mean, spread, and the automatic threshold."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SAMPLE_SIZE = 256
STD_MINIMUM = 0.02
STD_FALLBACK = 0.1
PROBE_QUANTILE = 0.99
NEIGHBOUR_QUANTILE = 0.05
PROBE_WEIGHT = 8
"""How many intents count as much as the probes."""


class Calibration(NamedTuple):
    """Similarity statistics of one namespace.

    Attributes:
        intents: How many intents it had when they were taken.
        mean: Mean cosine between different intents; 0 with a single intent.
        std: Standard deviation of that cosine; 0.1 where it could not be measured or is below 0.02.
        threshold: The smallest cosine that `score_threshold="auto"` lets through.
    """

    intents: int
    mean: float
    std: float
    threshold: float


def is_due(intents: int) -> bool:
    """Whether a bank that just reached this many intents is calibrated again: powers of two."""
    return intents > 0 and intents & (intents - 1) == 0


def sample_positions(intents: int) -> NDArray[np.int64]:
    """Positions of at most 256 intents, evenly spread; the same bank gives the same sample."""
    return np.unique(np.linspace(0, intents - 1, min(intents, SAMPLE_SIZE)).astype(np.int64))


def calibrate(
    intents: int, vectors: NDArray[np.float32], probes: NDArray[np.float32]
) -> Calibration:
    """Measure a bank's similarities.

    The threshold lies between two numbers: the 99 % quantile of the cosines between fixed texts
    that have nothing to do with the bank (`core/probes.py`) and its intents, and the 5 % quantile
    of the cosine between each intent and its nearest neighbour. The first is all that is known of
    a bank with one intent, the second is what a bank's own tasks look like:
    `threshold = (8 * probe_quantile + intents * neighbour_quantile) / (8 + intents)`.

    Args:
        intents: Number of intents in the namespace.
        vectors: A sample of their unit vectors, shape (n, d), n at least 1.
        probes: Unit vectors of the probe texts, shape (p, d).

    Returns:
        The calibration.
    """
    rows = vectors.astype(np.float64)
    threshold = float(np.quantile(rows @ probes.astype(np.float64).T, PROBE_QUANTILE))
    mean, std = 0.0, STD_FALLBACK
    if len(rows) > 1:
        cosines = rows @ rows.T
        pairs = cosines[np.triu_indices(len(rows), k=1)]
        mean, measured = float(np.clip(pairs.mean(), -1.0, 1.0)), float(pairs.std())
        std = measured if measured >= STD_MINIMUM else STD_FALLBACK
        np.fill_diagonal(cosines, -1.0)
        neighbour = float(np.quantile(cosines.max(axis=1), NEIGHBOUR_QUANTILE))
        threshold = (PROBE_WEIGHT * threshold + intents * neighbour) / (PROBE_WEIGHT + intents)
    return Calibration(intents, mean, std, float(np.clip(threshold, -1.0, 1.0)))
