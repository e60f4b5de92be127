"""How similarity and Q are mixed into one score (arXiv 2601.03192, Phase B)."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_memrl.types import Normalization

Floats = NDArray[np.float64]

SIMILARITY_STD_FLOOR = 0.02
Q_STD_FLOOR = 0.1
Z_LIMIT = 3.0


class Scores(NamedTuple):
    """Scores of a pool and the two parts they are blended from; each of shape (n,)."""

    score: Floats
    similarity_part: Floats
    q_part: Floats


def cosines(vectors: NDArray[np.floating], query: NDArray[np.floating]) -> Floats:
    """Cosine of each row with the query, the same on every index and machine.

    Computed in float64, clipped to [-1, 1] and rounded to 6 decimals, so that the float32 noise
    of a self-cosine (0.99999988 to 1.0000001) decides neither a threshold nor a tie.

    Args:
        vectors: Shape (n, d); no zero rows.
        query: Shape (d,); not zero.

    Returns:
        Shape (n,), each in [-1, 1]; larger is closer.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    target = np.asarray(query, dtype=np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows) * (target @ target))
    # Adding 0.0 turns -0.0 into 0.0.
    exact = np.clip(np.einsum("ij,j->i", rows, target) / norms, -1.0, 1.0)
    return np.asarray(np.round(exact, 6) + 0.0)


def standardize(values: Floats, floor: float) -> Floats:
    """Z-score of a pool: `clip((x - mean) / max(std, floor), -3, 3)`, population std.

    The floor keeps a nearly constant pool near zero: nine memories at Q = 0 and one at 0.001
    would otherwise give that one the full +3. The sums are exact, so that the order in which a
    store returns the pool cannot decide a tie by a last bit.

    Args:
        values: Shape (n,).
        floor: Smallest standard deviation to divide by; above 0.

    Returns:
        Shape (n,), each in [-3, 3]; all zero when every value is the same.
    """
    if values.size == 0:
        return values
    centred = values - math.fsum(values) / values.size
    std = math.sqrt(math.fsum(centred**2) / values.size)
    scaled = centred / max(std, floor)
    return np.asarray(np.clip(scaled, -Z_LIMIT, Z_LIMIT))


def blend(
    similarity: Floats,
    q_values: Floats,
    *,
    q_weight: float,
    normalization: Normalization = "zscore",
    bank_mean: float = 0.0,
    bank_std: float = 0.1,
) -> Scores:
    """`score = (1 - q_weight) * sim_hat + q_weight * q_hat` for every memory of a pool.

    | normalization | sim_hat | q_hat |
    |---|---|---|
    | `"zscore"` | `(sim - bank_mean) / bank_std` | z-score inside the pool, floor 0.1 |
    | `"pool"` | z-score inside the pool, floor 0.02 | z-score inside the pool, floor 0.1 |
    | `"none"` | raw cosine | raw Q |

    Limiting cases: `q_weight=0` ranks by similarity, `q_weight=1` ranks by Q.

    Args:
        similarity: Cosines of the pool, shape (n,).
        q_values: Q of the pool, shape (n,).
        q_weight: In [0, 1].
        normalization: See the table.
        bank_mean: Mean cosine between different intents of the bank.
        bank_std: Its standard deviation; above 0.

    Returns:
        Scores and their parts, each of shape (n,).
    """
    if normalization == "none":
        sim_hat, q_hat = similarity, q_values
    else:
        q_hat = standardize(q_values, Q_STD_FLOOR)
        sim_hat = (
            (similarity - bank_mean) / bank_std
            if normalization == "zscore"
            else standardize(similarity, SIMILARITY_STD_FLOOR)
        )
    return Scores((1 - q_weight) * sim_hat + q_weight * q_hat, sim_hat, q_hat)
