"""How Q moves (arXiv 2601.03192, eq. for the utility update)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def q_step(q_values: ArrayLike, reward: float, step_size: float) -> NDArray[np.float64]:
    """One step of every injected memory toward the reward: `Q <- Q + step_size * (reward - Q)`.

    With a constant reward r, n steps give `Q_n = r + (1 - step_size)^n (Q_0 - r)`. For rewards of
    variance s^2 the variance of Q tends to `step_size / (2 - step_size) * s^2`.
    Limiting cases: `step_size=0` changes nothing, `step_size=1` forgets the past.

    Args:
        q_values: Q before, any shape.
        reward: A finite number.
        step_size: In [0, 1].

    Returns:
        Q after, in the same shape; never outside the interval spanned by Q before and the reward.
    """
    before = np.asarray(q_values, dtype=np.float64)
    return before + step_size * (reward - before)
