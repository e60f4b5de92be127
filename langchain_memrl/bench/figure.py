"""How the cost of a call grows with the bank, as a figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_memrl.bench.rows import Row

LINES = {
    "recall": ("recall", "#1f5fbf", "-"),
    "recall in an episode": ("recall in an episode, on disk", "#7aa6e8", "-"),
    "reinforce 5 memories": ("reinforce 5 memories, on disk", "#c2571a", "-"),
    "remember": ("remember, on disk", "#8a6d1a", "-"),
    "stats": ("stats", "#3d8b4f", "-"),
}
FLOOR = ("the scan alone", "#1f5fbf", ":")
Points = list[tuple[int, float]]


def draw(rows: Sequence[Row], path: Path) -> None:
    """Save how the cost of the main calls grows, one panel per dimension, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    dimensions = sorted({row.dimension for row in rows if row.what == "recall"})
    figure, panels = pyplot.subplots(
        1, len(dimensions), figsize=(1 + 4.6 * len(dimensions), 4.2), squeeze=False, sharey=True
    )
    for panel, dimension in zip(panels[0], dimensions, strict=True):
        _panel(panel, [row for row in rows if row.dimension == dimension])
        panel.set_title(f"{dimension:,} numbers per vector", fontsize=11)
    panels[0][0].set_ylabel("median, milliseconds")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.tight_layout(rect=(0, 0.14, 1, 1))
    figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _panel(panel: Any, rows: Sequence[Row]) -> None:
    for what, (label, colour, style) in LINES.items():
        panel.plot(*_columns(_points(rows, what)), style, marker="o", color=colour, label=label)
        if what == "recall":
            label, colour, style = FLOOR
            floor = [(row.size, row.floor_value or 0.0) for row in rows if row.what == what]
            panel.plot(*_columns(floor), style, marker=".", color=colour, label=label)
    sizes = sorted({row.size for row in rows})
    panel.set(xscale="log", yscale="log", xlabel="memories in the bank")
    panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
    panel.minorticks_off()
    panel.yaxis.set_major_formatter(lambda value, place: f"{value:g}")
    panel.grid(visible=True, color="#dddddd", linewidth=0.7)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def _points(rows: Sequence[Row], what: str) -> Points:
    return [(row.size, row.value) for row in rows if row.what == what]


def _columns(points: Points) -> tuple[list[int], list[float]]:
    ordered = sorted(points)
    return [size for size, _ in ordered], [value for _, value in ordered]
