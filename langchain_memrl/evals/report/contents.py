"""What a report holds: which columns, which figures, and all numbers as plain values."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from langchain_memrl.evals.analysis.intervals import Comparison, Interval
from langchain_memrl.evals.analysis.measures import MEASURES, Measure
from langchain_memrl.evals.analysis.reading import Experiment
from langchain_memrl.evals.analysis.tables import INTERVALS, MEMP, RAG, Row, Tables
from langchain_memrl.evals.report.figures import Figure, curve_figure
from langchain_memrl.evals.report.figures_arms import (
    against_arms_figure,
    cost_figure,
    in_worlds_figure,
)
from langchain_memrl.evals.report.figures_q import calibration_figure, histogram_figure
from langchain_memrl.evals.report.findings import caveat, findings, notes

ALWAYS = ("success", "unanswered")
SECOND = ("cumulative", "forgetting", "q_correlation", "never_updated", "bank", "calls", "ms_p95")
"""Measures that stand in a second, folded table, so that the first fits a screen."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        title: Its name.
        meaning: What it says.
        of: Its value in a row.
        digits: Digits after the point; None for text.
        show: How the cell reads, where that is more than the value.
    """

    title: str
    meaning: str
    of: Callable[[Any], Any]
    digits: int | None = None
    show: Callable[[Any], str] | None = None

    def cell(self, row: Any) -> str:
        """How the cell of a row reads; - where nothing is known."""
        value = self.of(row)
        if self.digits is None:
            return str(value)
        if math.isnan(value):
            return "-"
        return self.show(row) if self.show else f"{value:,.{self.digits}f}"


def arm_columns(tables: Tables) -> list[Column]:
    """Arm, success with its interval, the distance from no memory, and what matters most."""
    success, *others = _measured(tables.arms, lambda key: key not in SECOND)
    return [
        ARM,
        success,
        _against_none(
            "Success in the last epoch minus that of no memory, over the same seeds, with its "
            "95 % interval from 5 seeds on."
        ),
        *others,
    ]


def more_arm_columns(tables: Tables) -> list[Column]:
    """Arm, runs, and the measures that `arm_columns` leaves out."""
    runs = Column("runs", "Worlds times seeds.", lambda row: row.runs, 0)
    return [ARM, runs, *_measured(tables.arms, lambda key: key in SECOND)]


def world_columns(tables: Tables) -> list[Column]:
    """The same per world, with the distance from no memory."""
    first = [
        Column("world", "Which variant of the tasks.", lambda row: row.world or "-"),
        ARM,
        _against_none(
            "Success over all epochs minus that of no memory, over the same seeds, with its "
            "95 % interval from 5 seeds on.",
            ", all epochs",
        ),
    ]
    return first + _measured(tables.worlds, lambda key: True)


def _against_none(meaning: str, when: str = "") -> Column:
    return Column(
        f"against no memory{when}",
        meaning,
        lambda row: row.against_none.mean if row.against_none else math.nan,
        3,
        lambda row: _with_ends(row.against_none, "+"),
    )


ARM = Column("arm", "Which configuration answered.", lambda row: row.arm)


def _measured(rows: Sequence[Row], chosen: Callable[[str], bool]) -> list[Column]:
    return [
        _column(measure)
        for measure in MEASURES
        if chosen(measure.key)
        and (
            measure.key in ALWAYS
            or any(
                row.values[measure.key] and not math.isnan(row.values[measure.key]) for row in rows
            )
        )
    ]


def _column(measure: Measure) -> Column:
    ends = measure.key in INTERVALS
    show = (lambda row: _with_ends(row.intervals[measure.key])) if ends else None
    return Column(
        measure.title, measure.meaning, lambda row: row.values[measure.key], measure.digits, show
    )


def comparison_columns() -> list[Column]:
    """One arm, the other, how far apart, and what that says."""
    return [
        Column("arm", "One arm.", lambda one: one.left),
        Column("against", "The other arm.", lambda one: one.right),
        Column(
            "difference",
            "The first arm's success minus the other's.",
            lambda one: one.difference.mean,
            3,
            lambda one: f"{one.difference.mean:+.3f}",
        ),
        Column("from", "Lower end of the 95 % interval.", lambda one: one.difference.low, 3),
        Column("to", "Upper end of the 95 % interval.", lambda one: one.difference.high, 3),
        Column("std. error", "Standard error.", lambda one: one.difference.error, 4),
        Column(
            "seeds",
            "Seeds that both arms have; worlds are averaged first.",
            lambda one: one.difference.count,
            0,
        ),
        Column("what it says", "Who is ahead, if that can be told.", lambda one: one.sentence),
    ]


def _with_ends(one: Interval, sign: str = "") -> str:
    return f"{one.mean:{sign}.3f} ({one.ends(sign)})"


def all_figures(experiment: Experiment, tables: Tables) -> list[Figure]:
    """Every figure for which there are numbers."""
    over = "Mean over worlds and seeds; bands, from 5 seeds on, are 95 % intervals over seeds."
    found = (
        curve_figure(
            experiment,
            "learning",
            "Success in each epoch",
            "share solved",
            f"Share of the answered tasks solved in each epoch. {over}",
            lambda run: run.success,
        ),
        _along_figure(experiment),
        against_arms_figure(experiment, tables),
        curve_figure(
            experiment,
            "cumulative",
            "Solved at least once, up to each epoch",
            "share of the tasks",
            "Share of the tasks solved at least once so far (CSR). It rises without memory too. "
            f"{over}",
            lambda run: run.cumulative,
        ),
        curve_figure(
            experiment,
            "lost",
            "Lost again, in each epoch",
            "share of the tasks solved before",
            "Of the tasks solved in an earlier epoch, the share that failed now. Low is good; in "
            f"the first epoch there is nothing to lose. {over}",
            lambda run: run.lost,
        ),
        curve_figure(
            experiment,
            "regret",
            "Regret against the oracle, up to each epoch",
            "failures per task beyond the oracle's",
            f"How much more often than the oracle each arm failed the average task so far. {over}",
            lambda run: run.regret,
        ),
        histogram_figure(experiment),
        calibration_figure(experiment),
        cost_figure(experiment, tables),
        in_worlds_figure(experiment, MEMP),
        in_worlds_figure(experiment, RAG),
    )
    return [figure for figure in found if figure is not None]


def _along_figure(experiment: Experiment) -> Figure | None:
    """What a single pass has instead of success per epoch."""
    if any(len(run.success) > 1 for run in experiment.runs):
        return None
    return curve_figure(
        experiment,
        "along",
        "Success along the only epoch",
        "share solved",
        "Share of the answered tasks solved in each tenth of the single pass over the tasks. Mean "
        "over worlds and seeds; the bands, from 5 seeds on, are 95 % intervals over seeds.",
        lambda run: run.along,
        "tenth of the tasks",
    )


def report_data(
    experiment: Experiment, tables: Tables, figures: Sequence[Figure]
) -> dict[str, Any]:
    """All numbers of a report as plain values; NaN becomes None, six digits are kept."""
    data = {
        "simulated": experiment.simulated,
        "headers": experiment.headers,
        "measures": {measure.key: [measure.title, measure.meaning] for measure in MEASURES},
        "notes": notes(experiment),
        "findings": findings(tables),
        "caveat": caveat(experiment),
        "arms": [_line(row) for row in tables.arms],
        "worlds": [_line(row) for row in tables.worlds],
        "comparisons": {
            measure: [_compared(one) for one in found]
            for measure, found in tables.comparisons.items()
        },
        "figures": {figure.name: figure.data for figure in figures},
        "runs": _runs(experiment),
    }
    return {name: plain(value) for name, value in data.items()}


def _line(row: Row) -> dict[str, Any]:
    return {
        "world": row.world,
        "arm": row.arm,
        "runs": row.runs,
        **row.values,
        "intervals": row.intervals,
        "against_none": row.against_none,
    }


def _compared(one: Comparison) -> dict[str, Any]:
    return {
        "left": one.left,
        "right": one.right,
        **asdict(one.difference),
        "ahead": one.ahead,
        "sentence": one.sentence,
    }


def _runs(experiment: Experiment) -> dict[str, Any]:
    """Each run in a line, so that everything else can be computed again from the page."""
    curves = ("success", "cumulative", "forgetting", "lost", "regret")
    return {
        "columns": [
            *("world", "arm", "seed", "episodes"),
            *(f"{name}_per_epoch" for name in curves),
            "success_per_tenth",
            *(measure.key for measure in MEASURES),
        ],
        "rows": [
            [
                *(*run.key, run.episodes),
                *(getattr(run, name) for name in curves),
                run.along,
                *(measure.of(run) for measure in MEASURES),
            ]
            for run in experiment.runs
        ],
    }


def plain(value: Any) -> Any:
    """A value as JSON knows it: dataclasses become objects, NaN becomes None."""
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 6)
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value
