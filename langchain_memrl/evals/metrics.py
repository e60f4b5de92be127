"""What the records say: pure functions, a list of records in, numbers out.

Records of several worlds, arms or seeds may be given together; a task of another world, arm or seed
is another task. Episodes without an answer (`success` is None: the environment failed) are in no
share; `unanswered` counts them, and every report shows that number. A share of nothing is NaN.
Where `arm` can be given, None means all records.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from langchain_memrl.evals.records import BankRecord, EpisodeRecord

Record = TypeVar("Record", EpisodeRecord, BankRecord)

Q_EDGES = tuple(round(-1 + place / 5, 1) for place in range(11))
"""Ten Q bins of equal width over the default reward range."""


class RunKey(NamedTuple):
    """One arm in one world with one seed."""

    world: str
    arm: str
    seed: int


class QBin(NamedTuple):
    """Answered episodes whose shown memories had a mean Q from `low` to below `high`."""

    low: float
    high: float
    episodes: int
    solved: int

    @property
    def success(self) -> float:
        """Share solved."""
        return _ratio(self.solved, self.episodes)


class Latency(NamedTuple):
    """Seconds per episode."""

    median: float
    p95: float


# --- taking records apart -------------------------------------------------------------------------


def by_run(records: Iterable[Record]) -> dict[RunKey, list[Record]]:
    """The records of each run, in the order in which runs first appear."""
    found: dict[RunKey, list[Record]] = defaultdict(list)
    for record in records:
        found[RunKey(record.world, record.arm, record.seed)].append(record)
    return dict(found)


def by_arm(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records of each arm, in the order in which arms first appear."""
    found: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        found[record.arm].append(record)
    return dict(found)


def arms(records: Iterable[Record]) -> list[str]:
    """The arms, in the order in which they first appear."""
    return list(dict.fromkeys(record.arm for record in records))


# --- success --------------------------------------------------------------------------------------


def unanswered(records: Iterable[EpisodeRecord]) -> int:
    """Episodes without an answer: the environment failed, which says nothing about the arm."""
    return sum(record.success is None for record in records)


def success_per_epoch(records: Iterable[EpisodeRecord], arm: str | None = None) -> list[float]:
    """SR: solved / answered in each epoch, held-out tasks aside."""
    return [_share(record.success for record in epoch) for epoch in _epochs(records, arm)]


def mean_success(records: Iterable[EpisodeRecord]) -> float:
    """Solved / answered over all epochs, held-out tasks aside; less noisy than one epoch."""
    return _share(record.success for record in records if record.split == "train")


def cumulative_success(records: Iterable[EpisodeRecord], arm: str | None = None) -> list[float]:
    """CSR: tasks solved at least once so far / tasks answered at least once so far, per epoch.

    It never falls while the tasks stay the same, also without memory: trying again is enough.
    """
    answered: set[tuple[RunKey, str]] = set()
    solved: set[tuple[RunKey, str]] = set()
    shares = []
    for epoch in _epochs(records, arm):
        answered.update(_task(record) for record in epoch if record.success is not None)
        solved.update(_task(record) for record in epoch if record.success)
        shares.append(_ratio(len(solved), len(answered)))
    return shares


def forgetting_rate(records: Iterable[EpisodeRecord], arm: str | None = None) -> list[float]:
    """Failures of tasks that were solved in an earlier epoch / all failures, in each epoch.

    0 in the first epoch and where nothing failed.
    """
    solved: set[tuple[RunKey, str]] = set()
    rates = []
    for epoch in _epochs(records, arm):
        failed = [_task(record) for record in epoch if record.success is False]
        lost = sum(task in solved for task in failed)
        rates.append(lost / len(failed) if failed else 0.0)
        solved.update(_task(record) for record in epoch if record.success)
    return rates


def transfer(records: Iterable[EpisodeRecord]) -> float:
    """Solved / answered on held-out tasks with the bank frozen; NaN where none was tried.

    Where they were tried after several epochs, the last counts.
    """
    held_out = [record for record in records if record.split == "held_out"]
    last = max((record.epoch for record in held_out), default=0)
    return _share(record.success for record in held_out if record.epoch == last)


def regret(records: Iterable[EpisodeRecord], oracle: Iterable[EpisodeRecord]) -> list[float]:
    """Sum over the epochs so far of SR(oracle) - SR(arm).

    A regret of 1.5 means: up to here the average task was failed 1.5 times more often than by the
    oracle. A perfect arm stays at 0; below 0 the arm was better than the oracle.

    Args:
        records: The arm's episodes.
        oracle: The oracle's, in the same worlds with the same seeds.
    """
    return regret_of(success_per_epoch(records), success_per_epoch(oracle))


def regret_of(success: Sequence[float], oracle: Sequence[float]) -> list[float]:
    """`regret` from two lists of success per epoch; as long as the shorter one."""
    pairs = zip(success, oracle, strict=False)
    return [float(value) for value in np.cumsum([best - own for own, best in pairs])]


def running_success(
    records: Iterable[EpisodeRecord], arm: str | None = None, window: int = 8
) -> list[float]:
    """Share solved among the last `window` answered tasks (fewer at the start), after each."""
    won = [record.success for record in _of(records, arm) if record.success is not None]
    return [_share(won[max(0, end - window) : end]) for end in range(1, len(won) + 1)]


# --- Q --------------------------------------------------------------------------------------------


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
    return [_ratio(int(lost), every) for lost, every in counts]


def never_updated(bank: BankRecord) -> float:
    """Share of memories whose Q never moved: what the bank carries without knowing its worth."""
    return _ratio(bank.updates.count(0), len(bank.updates))


def q_counts(
    q_values: Sequence[float] | np.ndarray, edges: Sequence[float] = Q_EDGES
) -> np.ndarray:
    """Count values per bin; a bin holds its lower edge, the outer bins all that lies beyond."""
    inner = np.round(np.asarray(q_values, dtype=float), 9)
    return np.bincount(
        np.searchsorted(np.asarray(edges[1:-1]), inner, side="right"), minlength=len(edges) - 1
    )


# --- cost -----------------------------------------------------------------------------------------


def tokens_per_episode(records: Iterable[EpisodeRecord]) -> float:
    """Tokens sent and received, mean per episode, the unanswered ones included."""
    return _mean(record.prompt_tokens + record.completion_tokens for record in records)


def calls_per_episode(records: Iterable[EpisodeRecord]) -> float:
    """Calls of the model, mean per episode, the unanswered ones included."""
    return _mean(record.calls for record in records)


def latency(records: Iterable[EpisodeRecord]) -> Latency:
    """Median and 95 % quantile of the seconds per episode; NaN without episodes."""
    return latency_of([record.seconds for record in records])


def latency_of(seconds: Sequence[float] | np.ndarray) -> Latency:
    """`latency` from the seconds alone."""
    if len(seconds) == 0:
        return Latency(math.nan, math.nan)
    return Latency(*map(float, np.quantile(seconds, (0.5, 0.95))))


# --- pieces ---------------------------------------------------------------------------------------


def _of(records: Iterable[EpisodeRecord], arm: str | None) -> Iterable[EpisodeRecord]:
    return records if arm is None else (record for record in records if record.arm == arm)


def _epochs(records: Iterable[EpisodeRecord], arm: str | None) -> list[list[EpisodeRecord]]:
    """The episodes of each epoch in order, held-out tasks aside."""
    found: dict[int, list[EpisodeRecord]] = defaultdict(list)
    for record in _of(records, arm):
        if record.split == "train":
            found[record.epoch].append(record)
    return [found[epoch] for epoch in sorted(found)]


def _task(record: EpisodeRecord) -> tuple[RunKey, str]:
    return RunKey(record.world, record.arm, record.seed), record.task


def _shown(records: Iterable[EpisodeRecord]) -> tuple[np.ndarray, np.ndarray]:
    """Mean Q of what was shown, and success, of answered episodes that were shown something."""
    found = [
        (sum(record.q_values) / len(record.q_values), float(record.success))
        for record in records
        if record.q_values and record.success is not None
    ]
    pairs = np.asarray(found, dtype=float).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _share(values: Iterable[bool | None]) -> float:
    known = [value for value in values if value is not None]
    return _ratio(sum(known), len(known))


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return _ratio(sum(known), len(known))


def _ratio(part: float, whole: int) -> float:
    return part / whole if whole else math.nan
