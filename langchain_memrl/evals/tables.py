"""The numbers of an experiment: per arm, per world and arm, and arms against each other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from langchain_memrl.evals.intervals import Comparison, Interval, compare, interval
from langchain_memrl.evals.measures import BY_KEY, MEASURES, SUMMED, mean
from langchain_memrl.evals.metrics import latency_of
from langchain_memrl.evals.reading import Experiment
from langchain_memrl.evals.runs import Run, by_pair

NONE, RAG, MEMRL = "none", "rag", "memrl"
INTERVALS = ("success", "transfer")
"""Measures that rows show with an interval over seeds."""
WHEN = {"success": "Success in the last epoch", "transfer": "Success on held-out tasks"}
"""How a headline measure reads in a sentence."""
SEED = 0
"""Every interval draws its resamples with this seed, so that it can be computed again."""


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
    """

    arms: list[Row]
    worlds: list[Row]
    comparisons: dict[str, list[Comparison]]
    headline: str


def tabulate(experiment: Experiment) -> Tables:
    """Compute all rows."""
    tried = any(not math.isnan(run.transfer) for run in experiment.runs)
    measures = ("transfer",) * tried + ("success", "mean_success")
    return Tables(
        arms=arm_rows(experiment),
        worlds=world_rows(experiment),
        comparisons={measure: comparisons(experiment, measure) for measure in measures},
        headline=measures[0],
    )


def arm_rows(experiment: Experiment) -> list[Row]:
    """One row per arm, over all worlds; the interval is over seeds, worlds being averaged first."""
    return [
        _row("", arm, [run for run in experiment.runs if run.key.arm == arm], None)
        for arm in experiment.arms
    ]


def world_rows(experiment: Experiment) -> list[Row]:
    """One row per world and arm, with its distance from no memory over all epochs."""
    rows = []
    for world, own in _by_world(experiment).items():
        values = _by_pair(own, "mean_success")
        for arm in (arm for arm in experiment.arms if arm in values):
            against = None
            if NONE in values and arm != NONE:
                against = compare(arm, NONE, values, rng()).difference
            rows.append(_row(world, arm, [run for run in own if run.key.arm == arm], against))
    return rows


def _row(world: str, arm: str, runs: Sequence[Run], against: Interval | None) -> Row:
    columns = {measure.key: [float(measure.of(run)) for run in runs] for measure in MEASURES}
    values = {
        key: sum(column) if key in SUMMED else mean(column) for key, column in columns.items()
    }
    pooled = latency_of(np.concatenate([run.seconds for run in runs]))
    values |= {"ms": 1000 * pooled.median, "ms_p95": 1000 * pooled.p95}
    intervals = {key: over_seeds(runs, columns[key]) for key in INTERVALS}
    return Row(world, arm, len(runs), values, intervals, against)


def over_seeds(runs: Sequence[Run], values: Sequence[float]) -> Interval:
    """Interval of a number over seeds: for each seed the mean over its worlds, then the seeds."""
    by_seed: dict[int, list[float]] = {}
    for run, value in zip(runs, values, strict=True):
        by_seed.setdefault(run.key.seed, []).append(value)
    return interval([mean(by_seed[seed]) for seed in sorted(by_seed)], rng())


def comparisons(experiment: Experiment, measure: str = "success") -> list[Comparison]:
    """Every arm against `memrl`, then every arm against `rag`, over the same worlds and seeds."""
    values = _by_pair(experiment.runs, measure)
    pairs = [(MEMRL, arm) for arm in experiment.arms if arm != MEMRL]
    pairs += [(RAG, arm) for arm in experiment.arms if arm not in (RAG, MEMRL)]
    return [
        compare(left, right, values, rng()) for left, right in pairs if {left, right} <= set(values)
    ]


def by_world(experiment: Experiment, left: str, right: str) -> dict[str, Interval]:
    """Left minus right in each world, success over all epochs, over the same seeds."""
    found = {}
    for world, own in _by_world(experiment).items():
        found[world] = compare(left, right, _by_pair(own, "mean_success"), rng()).difference
    return {world: value for world, value in found.items() if value.count}


def rng() -> np.random.Generator:
    """A fresh generator; the same for every interval."""
    return np.random.default_rng(SEED)


def _by_world(experiment: Experiment) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {world: [] for world in experiment.worlds}
    for run in experiment.runs:
        found[run.key.world].append(run)
    return found


def _by_pair(runs: Sequence[Run], measure: str) -> dict[str, dict[Any, float]]:
    of = BY_KEY[measure].of
    return by_pair(runs, {run.key: of(run) for run in runs})
