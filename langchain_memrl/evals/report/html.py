"""Pieces of a page: its shell, tables, figures, lists; text is escaped in one place, here."""

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from langchain_memrl.evals.report.contents import Column
from langchain_memrl.evals.report.figures import Figure, looks

SLOT = re.compile(r"\{\{(\w+)\}\}")


def shell(title: str, lead: str, body: str, data: Any) -> str:
    """A whole page that needs nothing else and loads nothing; its numbers are in it as JSON."""
    style, script = _asset("page.css"), _asset("page.js")
    slots = {
        "title": escape(title),
        "lead": escape(lead),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "body": body,
        "data": plain_json(data),
    }
    return filled("page.html", slots)


def filled(template: str, slots: Mapping[str, str]) -> str:
    """A template with its places filled; what is filled in is HTML already."""
    return SLOT.sub(lambda found: slots[found[1]], _asset(template))


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


def listed(sentences: Sequence[str]) -> str:
    """Sentences as a list."""
    return "<ul>" + "".join(f"<li>{escape(one)}</li>" for one in sentences) + "</ul>"


def table(
    name: str,
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Any],
    arms: Sequence[str] = (),
) -> str:
    """A table that sorts; `arms` gives names of arms their colours."""
    colors = {arm: color for arm, (color, _) in looks(arms).items()}
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


def figure_element(figure: Figure, simulated: bool, prefix: str = "") -> str:
    """A figure with its caption; a prefix keeps its name apart from others on the page."""
    caption = ("Simulation. " if simulated else "") + figure.caption
    return (
        f'<figure id="{prefix}figure-{figure.name}"><h3>{escape(figure.title)}</h3>{figure.svg}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def definitions(words: Mapping[str, Any]) -> str:
    """Names and what they mean."""
    pairs = (
        f"<dt>{escape(str(name))}</dt><dd>{escape(_words(value))}</dd>"
        for name, value in words.items()
    )
    return f"<dl>{''.join(pairs)}</dl>"


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
