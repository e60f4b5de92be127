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

from langchain_memrl.evals.analysis.reading import Experiment
from langchain_memrl.evals.analysis.tables import WHEN, Tables
from langchain_memrl.evals.records import Header
from langchain_memrl.evals.report.contents import (
    Column,
    arm_columns,
    comparison_columns,
    more_arm_columns,
    report_data,
    world_columns,
)
from langchain_memrl.evals.report.figures import Figure, looks
from langchain_memrl.evals.report.findings import caveat, findings, notes

SLOT = re.compile(r"\{\{(\w+)\}\}")


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
        "caveat": escape(caveat(experiment)),
        "arms": _table("by-arm", _caption(experiment, "All worlds"), arm_columns(tables),
                       tables.arms, experiment),
        "more": _table("by-arm-more", _caption(experiment, "All worlds, more columns"),
                       more_arm_columns(tables), tables.arms, experiment),
        "worlds": _table("every", _caption(experiment, "Each world"), world_columns(tables),
                         tables.worlds, experiment),
        "comparisons": _table("pairs", _caption(experiment, WHEN[tables.headline]),
                              comparison_columns(), tables.comparisons[tables.headline],
                              experiment),
        "figures": "".join(_figure(figure, experiment.simulated) for figure in figures),
        "meanings": _meanings(experiment, tables),
        "settings": _settings(experiment),
        "data": plain_json(report_data(experiment, tables, figures)),
    }  # fmt: skip
    return SLOT.sub(lambda found: slots[found[1]], _asset("page.html"))


def plain_json(value: Any) -> str:
    """JSON that may stand inside a page: no character in it can end the element it is in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return (
        files("langchain_memrl.evals.report").joinpath("assets", name).read_text(encoding="utf-8")
    )


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
    number, *ends = column.cell(row).split(" (", 1)
    more = "".join(f' <span class="ends">({escape(one)}</span>' for one in ends)
    return f'<td data-value="{sort}">{escape(number)}{more}</td>'


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


def _meanings(experiment: Experiment, tables: Tables) -> str:
    columns = [*arm_columns(tables), *more_arm_columns(tables), *world_columns(tables)]
    words = {column.title: column.meaning for column in [*columns, *comparison_columns()]}
    words["95 % interval"] = caveat(experiment)
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
