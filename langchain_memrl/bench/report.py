"""The bench as a table and as JSON."""

import itertools
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from langchain_memrl.bench.rows import PEER, SERVER, UPDATE, Goal, Row

PACKAGES = (
    *(
        "langchain-memrl",
        "faiss-cpu",
        "numpy",
        "langchain-core",
        "langgraph",
        "chromadb",
        "lancedb",
    ),
    *("milvus-lite", "qdrant-client", "langchain-community", "sqlite-vec", "apsw"),
)
WIDTH = 100
"""Columns the table fits into."""
Side = Literal["left", "right"]
COLUMNS: tuple[tuple[str, Side, int], ...] = (
    *(("what", "left", 31), ("", "right", 9), ("99 %", "right", 6)),
    *(("beside", "left", 18), ("", "right", 6), ("ratio", "right", 5), ("goal", "left", 18)),
)
"""Heading, side and least width, so that tables below each other line up."""


def machine() -> dict[str, Any]:
    """What the numbers were taken on."""
    return {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows as plain values."""
    return [
        {
            "what": row.what,
            "size": row.size,
            "dimension": row.dimension,
            "unit": row.unit,
            "of": row.of,
            "value": row.value,
            "measured": row.times._asdict(),
            "beside": row.floor or None,
            "beside_measured": None if row.floor_times is None else row.floor_times._asdict(),
            "ratio": row.ratio,
            "goal": None if row.goal is None else row.goal._asdict(),
            "met": row.is_met,
            "error": row.error or None,
        }
        for row in rows
    ]


def as_table(rows: Sequence[Row]) -> Table:
    """The rows as a table of at most 100 columns, a heading for every bank.

    A line shows the median, or the 99 % or the slowest where it says so.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name, side, width in COLUMNS:
        table.add_column(name, justify=side, min_width=width, no_wrap=True)
    for place, (heading, group) in enumerate(itertools.groupby(rows, _heading)):
        if place:
            table.add_row()
        table.add_row(Text(heading, style="bold"))
        for row in group:
            _add(table, row)
    return table


def _heading(row: Row) -> str:
    if not row.dimension:
        return "whatever the bank"
    others = ", other stores" if row.what.startswith((PEER, UPDATE)) else ""
    others += ", on PostgreSQL" if row.what.startswith(SERVER) else ""
    return f"{row.size:,} x {row.dimension}{others}"


def _name(row: Row) -> str:
    if row.what.startswith(UPDATE):
        return f"{row.what.removeprefix(UPDATE)}, update"
    return row.what.removeprefix(PEER).removeprefix(SERVER)


def _add(table: Table, row: Row) -> None:
    floor = row.floor_value
    table.add_row(
        _name(row),
        f"{_number(row.value)} {row.unit}",
        _number(row.times.p99) if row.times.calls > 1 and row.of == "median" else "",
        row.floor,
        "" if floor is None else _number(floor),
        "" if row.ratio is None else _ratio(row.ratio),
        "" if row.goal is None else _verdict(row, row.goal),
    )
    if row.error:
        table.add_row(Text(row.error, style="red"))


def _verdict(row: Row, goal: Goal) -> Text:
    factor = f"{_ratio(goal.factor)}x" if goal.factor else ""
    limit = _number(goal.extra) if goal.extra else ""
    text = " +".join(filter(None, (factor, limit)))
    if row.error:
        return Text("WRONG", style="red")
    return Text(f"met {text}", style="green") if row.is_met else Text(f"MISSED {text}", style="red")


def _ratio(value: float) -> str:
    """A ratio; a small one as a fraction."""
    if 0 < value < 0.1:
        return f"1/{1 / value:.0f}"
    return f"{value:.4g}" if value == round(value, 2) else _number(value)


def _number(value: float) -> str:
    """Three digits, below a tenth two."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.1 else f"{value:.2g}"
