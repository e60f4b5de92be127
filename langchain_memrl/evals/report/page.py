"""The report as one HTML page that needs nothing else and loads nothing."""

from collections.abc import Collection, Sequence
from html import escape

from langchain_memrl.evals.analysis.reading import Experiment
from langchain_memrl.evals.analysis.tables import WHEN, Tables
from langchain_memrl.evals.records import Header
from langchain_memrl.evals.report.contents import (
    arm_columns,
    comparison_columns,
    more_arm_columns,
    report_data,
    world_columns,
)
from langchain_memrl.evals.report.figures import Figure
from langchain_memrl.evals.report.findings import caveat, findings, notes
from langchain_memrl.evals.report.html import (
    definitions,
    figure_element,
    filled,
    listed,
    shell,
    table,
)


def render_page(experiment: Experiment, tables: Tables, figures: Sequence[Figure]) -> str:
    """The whole page.

    Its numbers are also in it as JSON (`<script id="data">`): tables, figures, comparisons, and
    each run's metrics, from which the others can be computed again.
    """
    slots = {
        "notes": note_elements(experiment),
        "findings": listed(findings(tables)),
        "caveat": escape(caveat(experiment)),
        "arms": arm_table(experiment, tables),
        "more": table("by-arm-more", _caption(experiment, "All worlds, more columns"),
                      more_arm_columns(tables), tables.arms, experiment.arms),
        "worlds": table("every", _caption(experiment, "Each world"), world_columns(tables),
                        tables.worlds, experiment.arms),
        "comparisons": table("pairs", _caption(experiment, WHEN[tables.headline]),
                             comparison_columns(), tables.comparisons[tables.headline],
                             experiment.arms),
        "figures": "".join(figure_element(one, experiment.simulated) for one in figures),
        "meanings": _meanings(experiment, tables),
        "settings": what_was_run(experiment),
    }  # fmt: skip
    data = report_data(experiment, tables, figures)
    return shell(_title(experiment), lead(experiment), filled("experiment.html", slots), data)


# --- pieces ---------------------------------------------------------------------------------------


def _title(experiment: Experiment) -> str:
    suite = experiment.headers[0].suite
    return f"Which memory helps? Suite {suite}" + (", simulation" if experiment.simulated else "")


def lead(experiment: Experiment) -> str:
    """How much was tried, how, and by whom."""
    episodes = sum(run.episodes for run in experiment.runs)
    seeds = {run.key.seed for run in experiment.runs}
    models = sorted({header.model for header in experiment.headers if header.model})
    protocols = sorted({_protocol(header) for header in experiment.headers} - {""})
    return (
        f"{episodes:,} episodes: {_count(experiment.arms, 'arm')}, "
        f"{_count(experiment.worlds, 'world')}, {_count(seeds, 'seed')}. "
        + "".join(f"{one} " for one in protocols)
        + (f"Model: {', '.join(models)}." if models else "")
        + ("" if experiment.asked else "No model was asked.")
    )


def _count(things: Collection[object], name: str) -> str:
    return f"{len(things)} {name}{'s' * (len(things) != 1)}"


def _protocol(header: Header) -> str:
    """How the tasks were met, where the settings say so."""
    protocol, guard = header.settings.get("protocol"), header.settings.get("guard")
    if not protocol:
        return ""
    own = {True: "may not", False: "may"}.get(bool(guard)) if guard is not None else None
    return f"Protocol: {protocol}." + (
        f" A task {own} recall memories of its own intent." if own else ""
    )


def note_elements(experiment: Experiment) -> str:
    """What a reader has to know first."""
    return "".join(f'<p class="note">{escape(note)}</p>' for note in notes(experiment))


def arm_table(experiment: Experiment, tables: Tables, name: str = "by-arm") -> str:
    """A row per arm, over all worlds."""
    return table(
        name, _caption(experiment, "All worlds"), arm_columns(tables), tables.arms, experiment.arms
    )


def _caption(experiment: Experiment, words: str) -> str:
    return f"{words} (simulation)" if experiment.simulated else words


def _meanings(experiment: Experiment, tables: Tables) -> str:
    columns = [*arm_columns(tables), *more_arm_columns(tables), *world_columns(tables)]
    words = {column.title: column.meaning for column in [*columns, *comparison_columns()]}
    words["95 % interval"] = caveat(experiment)
    words |= {f"arm {arm}": about for arm, about in experiment.abouts.items()}
    return definitions(words)


def what_was_run(experiment: Experiment) -> str:
    """Settings and versions."""
    return "".join(
        definitions({"suite": header.suite, "model": header.model or "none"} | header.settings)
        + definitions(header.versions)
        for header in experiment.headers[:5]
    )
