"""The numbers of an experiment: per arm, per world and arm, and arms against each other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from langchain_memrl.evals.analysis.completeness import comparable_runs
from langchain_memrl.evals.analysis.intervals import Comparison, Interval, Pair, compare, interval
from langchain_memrl.evals.analysis.measures import BY_KEY, MEASURES, SUMMED, mean
from langchain_memrl.evals.analysis.metrics import latency_of
from langchain_memrl.evals.analysis.reading import Experiment
from langchain_memrl.evals.analysis.runs import Run, by_pair

NONE, RAG, MEMP, MEMRL = "none", "rag", "memp", "memrl"
INTERVALS = ("success", "transfer")
"""Measures that rows show with an interval over seeds."""
WHEN = {"success": "Success in the last epoch", "transfer": "Success on held-out tasks"}
"""How a headline measure reads in a sentence."""
SHARE = (0.0, 1.0)
ASKING = ("tokens", "calls")
"""Measures that say nothing where no model was asked."""


class Row(NamedTuple):
    """A line of a table: an arm, alone or in one world."""

    world: str
    arm: str
    runs: int
    values: dict[str, float]
    intervals: dict[str, Interval]
    against_none: Interval | None


@dataclass(frozen=True, slots=True)
class Tables:
    """All rows of a report, computed once.

    Attributes:
        arms: One row per arm.
        worlds: One row per world and arm.
        comparisons: Per measure, arms against each other.
        headline: The measure that decides: transfer where it was tried, else success.
        values: That measure per arm, for each world and seed with a whole run.
    """

    arms: list[Row]
    worlds: list[Row]
    comparisons: dict[str, list[Comparison]]
    headline: str
    values: dict[str, dict[Pair, float]]


def tabulate(experiment: Experiment) -> Tables:
    """Compute all rows."""
    tried = any(not math.isnan(run.transfer) for run in experiment.runs)
    measures = ("transfer",) * tried + ("success", "mean_success")
    return Tables(
        arms=arm_rows(experiment),
        worlds=world_rows(experiment),
        comparisons={measure: comparisons(experiment, measure) for measure in measures},
        headline=measures[0],
        values=_by_pair(comparable_runs(experiment), measures[0]),
    )


def arm_rows(experiment: Experiment) -> list[Row]:
    """One row per arm, over all worlds; the interval is over seeds, worlds being averaged first."""
    values = _by_pair(comparable_runs(experiment), "success")
    return [
        _row(experiment, "", arm, experiment.runs, _against_none(arm, values))
        for arm in experiment.arms
    ]


def world_rows(experiment: Experiment) -> list[Row]:
    """One row per world and arm, with its distance from no memory over all epochs."""
    rows = []
    for world, own in _by_world(experiment).items():
        values = _by_pair(_comparable(experiment, world), "mean_success")
        for arm in (arm for arm in experiment.arms if any(run.key.arm == arm for run in own)):
            rows.append(_row(experiment, world, arm, own, _against_none(arm, values)))
    return rows


def _against_none(arm: str, values: dict[str, dict[Pair, float]]) -> Interval | None:
    if arm == NONE or not {arm, NONE} <= set(values):
        return None
    return compare(arm, NONE, values).difference


def _row(
    experiment: Experiment, world: str, arm: str, among: Sequence[Run], against: Interval | None
) -> Row:
    runs = [run for run in among if run.key.arm == arm]
    columns = {measure.key: [float(measure.of(run)) for run in runs] for measure in MEASURES}
    values = {
        key: sum(column) if key in SUMMED else mean(column) for key, column in columns.items()
    }
    pooled = latency_of(np.concatenate([run.seconds for run in runs]))
    values |= {"ms": 1000 * pooled.median, "ms_p95": 1000 * pooled.p95}
    if not experiment.asked:
        values |= dict.fromkeys(ASKING, math.nan)
    intervals = {key: over_seeds(runs, columns[key], SHARE) for key in INTERVALS}
    return Row(world, arm, len(runs), values, intervals, against)


def over_seeds(
    runs: Sequence[Run], values: Sequence[float], within: tuple[float, float] | None = None
) -> Interval:
    """Interval of a number over seeds: for each seed the mean over its worlds, then the seeds."""
    by_seed: dict[int, list[float]] = {}
    for run, value in zip(runs, values, strict=True):
        by_seed.setdefault(run.key.seed, []).append(value)
    return interval([mean(by_seed[seed]) for seed in sorted(by_seed)], within)


def comparisons(experiment: Experiment, measure: str = "success") -> list[Comparison]:
    """`memrl` against every arm, `memp` first; then `rag` against every arm; whole runs only."""
    values = _by_pair(comparable_runs(experiment), measure)
    others = sorted(experiment.arms, key=lambda arm: arm != MEMP)
    pairs = [(MEMRL, arm) for arm in others if arm != MEMRL]
    pairs += [(RAG, arm) for arm in others if arm not in (RAG, MEMRL)]
    return [compare(left, right, values) for left, right in pairs if {left, right} <= set(values)]


def by_world(experiment: Experiment, left: str, right: str) -> dict[str, Interval]:
    """Left minus right in each world, success over all epochs, over the same seeds."""
    found = {}
    for world in experiment.worlds:
        values = _by_pair(_comparable(experiment, world), "mean_success")
        found[world] = compare(left, right, values).difference
    return {world: value for world, value in found.items() if value.count}


def _comparable(experiment: Experiment, world: str) -> list[Run]:
    return [run for run in comparable_runs(experiment) if run.key.world == world]


def _by_world(experiment: Experiment) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {world: [] for world in experiment.worlds}
    for run in experiment.runs:
        found[run.key.world].append(run)
    return found


def _by_pair(runs: Sequence[Run], measure: str) -> dict[str, dict[Pair, float]]:
    of = BY_KEY[measure].of
    return by_pair(runs, {run.key: of(run) for run in runs})
