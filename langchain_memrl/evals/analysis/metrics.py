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


class RunKey(NamedTuple):
    """One arm in one world with one seed."""

    world: str
    arm: str
    seed: int


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
        shares.append(ratio(len(solved), len(answered)))
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


def lost_rate(records: Iterable[EpisodeRecord], arm: str | None = None) -> list[float]:
    """Tasks solved in an earlier epoch and failed now / tasks solved earlier and answered now.

    NaN in the first epoch, and where nothing was solved before. Unlike `forgetting_rate` it does
    not rise because an arm fails little.
    """
    solved: set[tuple[RunKey, str]] = set()
    rates = []
    for epoch in _epochs(records, arm):
        now = [record for record in epoch if record.success is not None and _task(record) in solved]
        rates.append(ratio(sum(record.success is False for record in now), len(now)))
        solved.update(_task(record) for record in epoch if record.success)
    return rates


def epoch_sizes(records: Iterable[EpisodeRecord]) -> list[int]:
    """Episodes in each epoch, the unanswered ones included, held-out tasks aside."""
    return [len(epoch) for epoch in _epochs(records, None)]


def failures(records: Iterable[EpisodeRecord]) -> list[tuple[str, str]]:
    """Task and error of each episode without an answer."""
    return [(record.task, record.error) for record in records if record.success is None]


def success_along(records: Iterable[EpisodeRecord], parts: int = 10) -> list[float]:
    """Solved / answered in each tenth of the episodes in their order, held-out tasks aside.

    What a single pass over the tasks has instead of epochs.

    Args:
        records: Episodes; each run is cut by itself.
        parts: How many parts; fewer where a run has fewer episodes.
    """
    runs = by_run(record for record in records if record.split == "train").values()
    parts = min([parts, *map(len, runs)])
    pieces: list[list[EpisodeRecord]] = [[] for _ in range(parts)]
    for run in runs:
        ordered = sorted(run, key=lambda record: record.step)
        for place, record in enumerate(ordered):
            pieces[place * parts // len(ordered)].append(record)
    return [_share(record.success for record in piece) for piece in pieces] if runs else []


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


def _share(values: Iterable[bool | None]) -> float:
    known = [value for value in values if value is not None]
    return ratio(sum(known), len(known))


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return ratio(sum(known), len(known))


def ratio(part: float, whole: int) -> float:
    """A share; NaN of nothing."""
    return part / whole if whole else math.nan
