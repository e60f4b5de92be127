"""Several experiments on one page: the environments, then side by side, then each by itself."""

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

from langchain_memrl.evals.analysis.intervals import Interval
from langchain_memrl.evals.analysis.overview import (
    Line,
    Truth,
    is_truth,
    line_of,
    truth_of,
)
from langchain_memrl.evals.analysis.reading import Experiment
from langchain_memrl.evals.analysis.tables import MEMRL, NONE, RAG, Tables, tabulate
from langchain_memrl.evals.report.contents import (
    Column,
    all_figures,
    more_arm_columns,
    plain,
    report_data,
)
from langchain_memrl.evals.report.figures import Figure
from langchain_memrl.evals.report.figures_arms import forest
from langchain_memrl.evals.report.findings import findings
from langchain_memrl.evals.report.html import (
    definitions,
    figure_element,
    filled,
    listed,
    shell,
    table,
)
from langchain_memrl.evals.report.page import arm_table, lead, note_elements, what_was_run

TITLE = "Which memory helps? Several experiments"
CHOSEN = ("learning", "along", "cumulative", "lost", "calibration")
"""The figures of each experiment that stand on the common page."""
RIVALS = {NONE: "no memory", RAG: RAG}


class Part(NamedTuple):
    """An experiment, its numbers and its figures."""

    experiment: Experiment
    tables: Tables
    figures: Sequence[Figure]


class Several(NamedTuple):
    """What a page of several experiments holds.

    Attributes:
        truths: What the right solutions pass, per suite.
        lines: Each other experiment in a line.
        parts: The same experiments whole.
    """

    truths: list[Truth]
    lines: list[Line]
    parts: list[Part]


def gather(experiments: Sequence[Experiment]) -> Several:
    """Compute everything that the page shows."""
    parts = []
    for experiment in (one for one in experiments if not is_truth(one)):
        tables = tabulate(experiment)
        figures = [one for one in all_figures(experiment, tables) if one.name in CHOSEN]
        parts.append(Part(experiment, tables, figures))
    return Several(
        [truth_of(one) for one in experiments if is_truth(one)],
        [line_of(place, one.experiment, one.tables) for place, one in enumerate(parts, 1)],
        parts,
    )


def render_several(several: Several) -> str:
    """The whole page."""
    columns = overview_columns(several.lines)
    figures = [one for rival in RIVALS if (one := gain_figure(several.lines, rival))]
    slots = {
        "warning": _warning(several),
        "truth": _truth(several.truths),
        "overview": table("overview-table", "Every experiment", columns, several.lines),
        "figures": "".join(figure_element(one, simulated=False) for one in figures),
        "links": ", ".join(
            f'<a href="#experiment-{line.place}">{escape(_name(line))}</a>'
            for line in several.lines
        ),
        "parts": "".join(
            _part(line, part) for line, part in zip(several.lines, several.parts, strict=True)
        ),
        "meanings": definitions(
            {column.title: column.meaning for column in [*columns, *truth_columns()]}
            | {name: about for one in several.parts for name, about in _arms(one).items()}
        ),
    }
    words = (
        f"{len(several.parts)} experiments, and the right solutions of "
        f"{len(several.truths)} benchmark{'s' * (len(several.truths) != 1)}."
    )
    return shell(TITLE, words, filled("several.html", slots), several_data(several, figures))


def several_data(several: Several, figures: Sequence[Figure] = ()) -> dict[str, Any]:
    """All numbers of the page as plain values."""
    data: dict[str, Any] = plain(
        {
            "truths": [one._asdict() for one in several.truths],
            "overview": [one._asdict() for one in several.lines],
            "figures": {figure.name: figure.data for figure in figures},
        }
    )
    return data | {"experiments": [report_data(*part) for part in several.parts]}


def truth_columns() -> list[Column]:
    """How many right solutions pass in each environment."""
    return [
        Column("benchmark", "The suite.", lambda one: one.suite),
        Column("right solutions", "Tries, one per task.", lambda one: one.tries, 0),
        Column("passed", "How many the environment counts as solved.", lambda one: one.solved, 0),
        Column(
            "known exceptions",
            "Tasks that cannot be solved where it was run, for the reasons given.",
            lambda one: sum(map(len, one.exceptions.values())),
            0,
        ),
        Column(
            "unexpected",
            "Failures beside the known exceptions.",
            lambda one: one.unexpected,
            0,
        ),
        Column(
            "no result",
            "Tries in which the environment failed.",
            lambda one: one.unanswered,
            0,
        ),
    ]


def overview_columns(lines: Sequence[Line]) -> list[Column]:
    """What was tried and how; success of every arm; what MemRL gains, forgets and passes on."""
    arms = list(dict.fromkeys(arm for line in lines for arm in line.success))
    return [
        Column("experiment", "Its number on this page.", _name),
        Column("agent", "Who tried the tasks.", lambda one: one.agent),
        Column("how", "How the tasks were met.", lambda one: one.how),
        Column("steps", "How many steps a try may take.", lambda one: one.steps),
        Column("tasks", "Tasks per epoch.", lambda one: one.tasks, 0),
        Column("seeds", "Draws.", lambda one: one.seeds, 0),
        *(_success(arm) for arm in arms),
        _gain(NONE, lambda one: one.over_none),
        _gain(RAG, lambda one: one.over_rag),
        Column(
            "each seed",
            "memrl minus rag, the seed where it is least and the one where it is most.",
            lambda one: (
                "" if math.isnan(one.lowest) else f"{one.lowest:+.3f} to {one.highest:+.3f}"
            ),
        ),
        _number("forgetting", "Share of an epoch's failures that were solved before; of memrl."),
        _number("lost", "Of the tasks solved before, the share that failed now; of memrl."),
        _number("transfer", "Success of memrl on held-out tasks, bank frozen."),
        Column(
            "Q and success, r",
            "Pearson correlation of the mean Q shown and success, over episodes of memrl.",
            lambda one: one.q_correlation,
            2,
        ),
    ]


def _name(line: Line) -> str:
    return f"{line.place} {line.suite}"


def _success(arm: str) -> Column:
    meaning = "Share solved: of held-out tasks where there are some, else in the last epoch."
    return Column(arm, meaning, lambda one: one.success.get(arm, math.nan), 3)


def _gain(rival: str, of: Callable[[Line], Interval | None]) -> Column:
    def value(line: Line) -> float:
        found = of(line)
        return math.nan if found is None else found.mean

    meaning = f"Success of memrl minus that of {RIVALS[rival]}, over the same seeds."
    title = f"memrl - {RIVALS[rival]}"
    return Column(title, meaning, value, 3, lambda one: f"{value(one):+.3f}")


def _number(name: str, meaning: str) -> Column:
    return Column(name, meaning, lambda one: getattr(one, name), 3)


def gain_figure(lines: Sequence[Line], rival: str) -> Figure | None:
    """What MemRL gains where a try has several steps, and where it has one."""
    rows = sorted(lines, key=lambda line: line.steps != "several")
    found = {
        f"{_name(line)}{' *' * (line.steps == 'one')}": gain
        for line in rows
        if (gain := line.over_none if rival == NONE else line.over_rag) is not None
    }
    return forest(
        f"gain_{rival}",
        f"Gain of MemRL over {RIVALS[rival]}, several steps and one",
        f"Success of memrl minus that of {RIVALS[rival]} in each experiment, over the same seeds. "
        "Benchmarks where a try has several steps stand above those with one, marked *. From fewer "
        "than 5 seeds no interval is drawn.",
        found,
        (RIVALS[rival], MEMRL),
        {},
    )


def _arms(part: Part) -> dict[str, str]:
    return {f"arm {arm}": about for arm, about in part.experiment.abouts.items()}


def _warning(several: Several) -> str:
    scripted = any(part.experiment.said for part in several.parts)
    words = (
        "Agents without a model measure the memory, not a model: what they know is written down in "
        "their programs. No result of a large language model is shown where one of them is named."
    )
    return f'<p class="note">{escape(words)}</p>' if scripted else ""


def _truth(truths: Sequence[Truth]) -> str:
    if not truths:
        return ""
    reasons = [
        f"{one.suite}: task {', '.join(tasks)}: {reason}."
        for one in truths
        for reason, tasks in one.exceptions.items()
    ]
    return (
        '<section aria-labelledby="truth"><h2 id="truth">Are the environments right?</h2>'
        "<p>The benchmarks' own solutions, tried and graded like any other answer.</p>"
        + table("truths", "Right solutions", truth_columns(), truths)
        + listed(reasons)
        + "</section>"
    )


def _part(line: Line, part: Part) -> str:
    experiment, tables, figures = part
    name = f"experiment-{line.place}"
    slots = {
        "id": name,
        "title": escape(f"{_name(line)}, {line.agent}, {line.how}"),
        "lead": escape(lead(experiment)),
        "notes": note_elements(experiment),
        "findings": listed(findings(tables)[:1]),
        "arms": arm_table(experiment, tables, f"{name}-arms"),
        "figures": "".join(
            figure_element(one, experiment.simulated, f"{name}-") for one in figures
        ),
        "more": table(
            f"{name}-more",
            "More columns",
            more_arm_columns(tables),
            tables.arms,
            experiment.arms,
        ),
        "settings": what_was_run(experiment),
    }
    return filled("part.html", slots)
