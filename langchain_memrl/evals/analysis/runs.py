"""What is kept of a run once its records are read: some hundred numbers instead of its episodes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from langchain_memrl.evals.analysis import metrics, q_metrics
from langchain_memrl.evals.analysis.metrics import RunKey
from langchain_memrl.evals.analysis.q_metrics import QBin
from langchain_memrl.evals.records import BankRecord, EpisodeRecord

ORACLE = "oracle"


@dataclass(frozen=True, slots=True)
class BankState:
    """A bank after an epoch.

    Attributes:
        size: How many memories.
        never_updated: Share whose Q never moved.
        by_q: How many memories per Q bin.
        failures_by_q: How many of them were written by a failed episode.
    """

    size: int
    never_updated: float
    by_q: tuple[int, ...]
    failures_by_q: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One arm in one world with one seed; every number is a metric of its records.

    Attributes:
        key: World, arm and seed.
        episodes: How many.
        sizes: `metrics.epoch_sizes`.
        failures: `metrics.failures`.
        success: `metrics.success_per_epoch`.
        mean_success: `metrics.mean_success`.
        along: `metrics.success_along`.
        cumulative: `metrics.cumulative_success`.
        forgetting: `metrics.forgetting_rate`.
        lost: `metrics.lost_rate`.
        transfer: `metrics.transfer`.
        q_correlation: `q_metrics.q_correlation`.
        by_q: `q_metrics.success_by_q`.
        banks: The bank after each epoch.
        tokens: `metrics.tokens_per_episode`.
        calls: `metrics.calls_per_episode`.
        seconds: The seconds of every episode.
        regret: `metrics.regret`; empty where no oracle ran.
    """

    key: RunKey
    episodes: int
    sizes: tuple[int, ...]
    failures: tuple[tuple[str, str], ...]
    success: tuple[float, ...]
    mean_success: float
    along: tuple[float, ...]
    cumulative: tuple[float, ...]
    forgetting: tuple[float, ...]
    lost: tuple[float, ...]
    transfer: float
    q_correlation: float
    by_q: tuple[QBin, ...]
    banks: tuple[BankState, ...]
    tokens: float
    calls: float
    seconds: np.ndarray
    regret: tuple[float, ...] = ()

    @property
    def unanswered(self) -> int:
        """How many episodes the environment left without an answer."""
        return len(self.failures)


def reduce_run(
    key: RunKey, episodes: Sequence[EpisodeRecord], banks: Sequence[BankRecord] = ()
) -> Run:
    """Apply every metric to the records of one run."""
    return Run(
        key=key,
        episodes=len(episodes),
        sizes=tuple(metrics.epoch_sizes(episodes)),
        failures=tuple(metrics.failures(episodes)),
        success=tuple(metrics.success_per_epoch(episodes)),
        mean_success=metrics.mean_success(episodes),
        along=tuple(metrics.success_along(episodes)),
        cumulative=tuple(metrics.cumulative_success(episodes)),
        forgetting=tuple(metrics.forgetting_rate(episodes)),
        lost=tuple(metrics.lost_rate(episodes)),
        transfer=metrics.transfer(episodes),
        q_correlation=q_metrics.q_correlation(episodes),
        by_q=tuple(q_metrics.success_by_q(episodes)),
        banks=tuple(map(_state, sorted(banks, key=lambda bank: bank.epoch))),
        tokens=metrics.tokens_per_episode(episodes),
        calls=metrics.calls_per_episode(episodes),
        seconds=np.asarray([record.seconds for record in episodes], dtype=np.float32),
    )


def _state(bank: BankRecord) -> BankState:
    q_values = np.asarray(bank.q_values, dtype=float)
    failed = q_values[np.asarray(bank.failures, dtype=bool)]
    return BankState(
        size=len(bank.ids),
        never_updated=q_metrics.never_updated(bank),
        by_q=tuple(q_metrics.q_histogram(bank)),
        failures_by_q=tuple(map(int, q_metrics.q_counts(failed))),
    )


def with_regret(runs: Sequence[Run]) -> list[Run]:
    """The runs, with the regret against the oracle of the same world and seed, if it ran."""
    oracles = {(run.key.world, run.key.seed): run.success for run in runs if run.key.arm == ORACLE}
    return [
        replace(
            run,
            regret=tuple(
                metrics.regret_of(run.success, oracles.get((run.key.world, run.key.seed), ()))
            ),
        )
        for run in runs
    ]


def last(values: Sequence[float]) -> float:
    """The last of them; NaN where there is none."""
    return values[-1] if values else math.nan


def by_pair(
    runs: Sequence[Run], numbers: Mapping[RunKey, float]
) -> dict[str, dict[tuple[str, int], float]]:
    """Numbers of runs as `intervals.compare` wants them: per arm, by (world, seed)."""
    found: dict[str, dict[tuple[str, int], float]] = {}
    for run in runs:
        world, arm, seed = run.key
        found.setdefault(arm, {})[world, seed] = numbers[run.key]
    return found
