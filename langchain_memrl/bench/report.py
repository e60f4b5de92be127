"""The bench as a table, as JSON, and as a figure of how cost grows with the bank."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.table import Table

from langchain_memrl.bench.rows import Row

PACKAGES = ("langchain-memrl", "faiss-cpu", "numpy", "langchain-core", "langgraph")


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
            "ms": row.times._asdict(),
            "beside": row.floor or None,
            "beside_ms": None if row.floor_times is None else row.floor_times._asdict(),
            "ratio": row.ratio,
            "goal": None if row.goal is None else row.goal._asdict(),
            "met": row.is_met,
        }
        for row in rows
    ]


def as_table(rows: Sequence[Row]) -> Table:
    """The rows as a table; times are medians in milliseconds."""
    table = Table("what", "memories", "d", "ms", "99 %", "beside", "ms", "ratio", "goal", box=None)
    for row in rows:
        beside = row.floor_times
        table.add_row(
            row.what,
            f"{row.size:,}" if row.size else "",
            str(row.dimension or ""),
            f"{row.times.median:.3g}",
            f"{row.times.p99:.3g}" if row.times.calls > 1 else "",
            row.floor,
            "" if beside is None else f"{beside.median:.3g}",
            "" if row.ratio is None else f"{row.ratio:.2f}",
            _goal(row),
        )
    return table


def _goal(row: Row) -> str:
    if row.goal is None:
        return ""
    extra = f" + {row.goal.extra:.2g} ms" if row.goal.extra else ""
    return f"{'met' if row.is_met else 'MISSED'}: {row.goal.factor:g}x{extra}"


def draw(rows: Sequence[Row], path: Path) -> None:
    """Save how the cost of each call grows with the bank, one panel per dimension."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    dimensions = sorted({row.dimension for row in rows if row.dimension})
    figure, panels = pyplot.subplots(
        1, len(dimensions), figsize=(6 * len(dimensions), 5), squeeze=False, sharey=True
    )
    for panel, dimension in zip(panels[0], dimensions, strict=True):
        names = dict.fromkeys(
            row.what for row in rows if row.dimension == dimension and "update" not in row.what
        )
        for name in names:
            points = sorted(
                (row.size, row.times.median)
                for row in rows
                if row.what == name and row.dimension == dimension
            )
            style = "--" if name.startswith("peer") else "-"
            panel.plot(*zip(*points, strict=True), style, marker="o", label=name)
        panel.set(
            xscale="log", yscale="log", xlabel="memories", title=f"{dimension} numbers per vector"
        )
    panels[0][0].set_ylabel("milliseconds, median")
    panels[0][-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
