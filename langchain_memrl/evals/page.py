"""The report as one HTML page that needs nothing else and loads nothing."""

import base64
import hashlib
import json
import math
import re
from collections.abc import Collection, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from langchain_memrl.evals.contents import (
    Column,
    arm_columns,
    comparison_columns,
    report_data,
    world_columns,
)
from langchain_memrl.evals.figures import Figure, looks
from langchain_memrl.evals.findings import findings, notes
from langchain_memrl.evals.intervals import DRAWS
from langchain_memrl.evals.measures import MEASURES
from langchain_memrl.evals.reading import Experiment
from langchain_memrl.evals.records import Header
from langchain_memrl.evals.tables import WHEN, Tables

SLOT = re.compile(r"\{\{(\w+)\}\}")
INTERVALS = (
    "An interval holds the middle 95 % of means over "
    f"{DRAWS:,} resamples (percentile bootstrap). For an arm the seeds are drawn again, after "
    "averaging over worlds; for two arms, the pairs of runs. It says how the number would move "
    "with other seeds in these worlds, not in other worlds. From 5 values it is too narrow (it "
    "holds the truth in about 84 of 100 cases, from 40 in 93), and of 20 intervals one misses "
    "the truth by chance: a margin that matters should hold with more seeds."
)


def render_page(experiment: Experiment, tables: Tables, figures: Sequence[Figure]) -> str:
    """The whole page.

    Its numbers are also in it as JSON (`<script id="data">`): tables, figures, comparisons, and
    each run's metrics, from which the others can be computed again.
    """
    style, script = _asset("page.css"), _asset("page.js")
    slots = {
        "title": escape(_title(experiment)),
        "lead": escape(_lead(experiment)),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "notes": "".join(f'<p class="note">{escape(note)}</p>' for note in notes(experiment)),
        "findings": _list(findings(tables)),
        "arms": _table("by-arm", _caption(experiment, "All worlds"), arm_columns(tables),
                       tables.arms, experiment),
        "worlds": _table("every", _caption(experiment, "Each world"), world_columns(tables),
                         tables.worlds, experiment),
        "comparisons": _table("pairs", _caption(experiment, WHEN[tables.headline]),
                              comparison_columns(), tables.comparisons[tables.headline],
                              experiment),
        "figures": "".join(_figure(figure, experiment.simulated) for figure in figures),
        "meanings": _meanings(experiment),
        "settings": _settings(experiment),
        "data": plain_json(report_data(experiment, tables, figures)),
    }  # fmt: skip
    return SLOT.sub(lambda found: slots[found[1]], _asset("page.html"))


def plain_json(value: Any) -> str:
    """JSON that may stand inside a page: no character in it can end the element it is in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files("langchain_memrl.evals").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


# --- pieces ---------------------------------------------------------------------------------------


def _title(experiment: Experiment) -> str:
    suite = experiment.headers[0].suite
    return f"Which memory helps? Suite {suite}" + (", simulation" if experiment.simulated else "")


def _lead(experiment: Experiment) -> str:
    episodes = sum(run.episodes for run in experiment.runs)
    seeds = {run.key.seed for run in experiment.runs}
    models = sorted({header.model for header in experiment.headers if header.model})
    protocols = sorted({_protocol(header) for header in experiment.headers} - {""})
    return (
        f"{episodes:,} episodes: {_count(experiment.arms, 'arm')}, "
        f"{_count(experiment.worlds, 'world')}, {_count(seeds, 'seed')}. "
        + "".join(f"{one} " for one in protocols)
        + (f"Model: {', '.join(models)}." if models else "No model was asked.")
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


def _caption(experiment: Experiment, words: str) -> str:
    return f"{words} (simulation)" if experiment.simulated else words


def _list(sentences: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(one)}</li>" for one in sentences) + "</ul>"


def _table(
    name: str, caption: str, columns: Sequence[Column], rows: Sequence[Any], experiment: Experiment
) -> str:
    colors = {arm: color for arm, (color, _) in looks(experiment.arms).items()}
    heads = "".join(map(_head, columns))
    body = "".join(
        f'<tr data-name="{escape(_name(columns, row))}">'
        + "".join(_cell(column, row, place, colors) for place, column in enumerate(columns))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table id="{name}"><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _head(column: Column) -> str:
    kind = "text" if column.digits is None else "number"
    return (
        f'<th scope="col" aria-sort="none" data-type="{kind}"{_class(column)}>'
        f'<button type="button" title="{escape(column.meaning)}">{escape(column.title)}</button>'
        "</th>"
    )


def _name(columns: Sequence[Column], row: Any) -> str:
    return " ".join(str(column.of(row)) for column in columns if column.digits is None)


def _cell(column: Column, row: Any, place: int, colors: dict[str, str]) -> str:
    value = column.of(row)
    if column.digits is None:
        key = f'<span class="key {colors[value]}"></span>' if value in colors else ""
        name = "th" if place == 0 else "td"
        scope = ' scope="row"' if place == 0 else ""
        sort = escape(str(value))
        return f'<{name}{scope}{_class(column)} data-value="{sort}">{key}{sort}</{name}>'
    sort = "" if math.isnan(value) else f"{value:.6g}"
    return f'<td data-value="{sort}">{escape(column.cell(row))}</td>'


def _class(column: Column) -> str:
    if column.digits is not None:
        return ""
    return ' class="text wide"' if column.title == "what it says" else ' class="text"'


def _figure(figure: Figure, simulated: bool) -> str:
    caption = ("Simulation. " if simulated else "") + figure.caption
    return (
        f'<figure id="figure-{figure.name}"><h3>{escape(figure.title)}</h3>{figure.svg}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _meanings(experiment: Experiment) -> str:
    words = {measure.title: measure.meaning for measure in MEASURES}
    words["95 % interval"] = INTERVALS
    words |= {f"arm {arm}": about for arm, about in experiment.abouts.items()}
    return _definitions(words)


def _settings(experiment: Experiment) -> str:
    return "".join(
        _definitions({"suite": header.suite, "model": header.model or "none"} | header.settings)
        + _definitions(header.versions)
        for header in experiment.headers[:5]
    )


def _definitions(words: dict[str, Any]) -> str:
    pairs = (
        f"<dt>{escape(str(name))}</dt><dd>{escape(_words(value))}</dd>"
        for name, value in words.items()
    )
    return f"<dl>{''.join(pairs)}</dl>"


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
