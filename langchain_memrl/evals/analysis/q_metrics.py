"""What Q says about success, and what a bank is made of: pure functions like those in `metrics`."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from langchain_memrl.evals.analysis.metrics import ratio
from langchain_memrl.evals.records import BankRecord, EpisodeRecord

Q_EDGES = tuple(round(-1 + place / 5, 1) for place in range(11))
"""Ten Q bins of equal width over the default reward range."""


class QBin(NamedTuple):
    """Answered episodes whose shown memories had a mean Q from `low` to below `high`."""

    low: float
    high: float
    episodes: int
    solved: int

    @property
    def success(self) -> float:
        """Share solved."""
        return ratio(self.solved, self.episodes)


def q_correlation(records: Iterable[EpisodeRecord]) -> float:
    """Pearson r between the mean Q of what was shown and success (0 or 1).

    Over answered episodes that were shown something; NaN for fewer than two, or where one of both
    never changes. In the paper .861, there over bins of Q, which gives more than single episodes.
    """
    q, won = _shown(records)
    if len(q) < 2 or np.ptp(q) == 0 or np.ptp(won) == 0:
        return math.nan
    return float(np.corrcoef(q, won)[0, 1])


def success_by_q(records: Iterable[EpisodeRecord], edges: Sequence[float] = Q_EDGES) -> list[QBin]:
    """Calibration: how often an episode was solved, by the mean Q of what it was shown.

    Args:
        records: Episodes; those without an answer, or shown nothing, are left out.
        edges: Edges of the bins, rising. A mean Q beyond the outer edges counts in the outer bin.
    """
    q, won = _shown(records)
    episodes = q_counts(q, edges)
    solved = q_counts(q[won > 0], edges)
    return [
        QBin(low, high, int(count), int(wins))
        for low, high, count, wins in zip(edges, edges[1:], episodes, solved, strict=False)
    ]


def q_histogram(bank: BankRecord, edges: Sequence[float] = Q_EDGES) -> list[int]:
    """How many memories of a bank have a Q in each bin."""
    return [int(count) for count in q_counts(bank.q_values, edges)]


def failure_share_by_q(bank: BankRecord, edges: Sequence[float] = Q_EDGES) -> list[float]:
    """Share of memories written by a failed episode, in each Q bin; NaN where a bin is empty.

    In the paper about .12 of the top bin: near misses that help.
    """
    failed = np.asarray(bank.q_values)[np.asarray(bank.failures, dtype=bool)]
    counts = zip(q_counts(failed, edges), q_histogram(bank, edges), strict=True)
    return [ratio(int(lost), every) for lost, every in counts]


def never_updated(bank: BankRecord) -> float:
    """Share of memories whose Q never moved: what the bank carries without knowing its worth."""
    return ratio(bank.updates.count(0), len(bank.updates))


def q_counts(
    q_values: Sequence[float] | np.ndarray, edges: Sequence[float] = Q_EDGES
) -> np.ndarray:
    """Count values per bin; a bin holds its lower edge, the outer bins all that lies beyond."""
    inner = np.round(np.asarray(q_values, dtype=float), 9)
    return np.bincount(
        np.searchsorted(np.asarray(edges[1:-1]), inner, side="right"), minlength=len(edges) - 1
    )


def _shown(records: Iterable[EpisodeRecord]) -> tuple[np.ndarray, np.ndarray]:
    """Mean Q of what was shown, and success, of answered episodes that were shown something."""
    found = [
        (sum(record.q_values) / len(record.q_values), float(record.success))
        for record in records
        if record.q_values and record.success is not None
    ]
    pairs = np.asarray(found, dtype=float).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
