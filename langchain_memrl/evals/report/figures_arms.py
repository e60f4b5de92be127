"""Figures that set arms side by side: how far they are apart, and what they cost."""

import math
from collections.abc import Sequence

from langchain_memrl.evals.analysis.intervals import Interval
from langchain_memrl.evals.analysis.measures import BY_KEY
from langchain_memrl.evals.analysis.reading import Experiment
from langchain_memrl.evals.analysis.tables import MEMP, MEMRL, WHEN, Row, Tables, by_world
from langchain_memrl.evals.report import svg
from langchain_memrl.evals.report.figures import Figure, looks
from langchain_memrl.evals.report.svg import Frame

PITCH = 20  # height of a row
COSTS = ("tokens", "ms", "bank")


def against_arms_figure(experiment: Experiment, tables: Tables) -> Figure | None:
    """MemRL against every other arm."""
    found = [one for one in tables.comparisons[tables.headline] if one.left == MEMRL]
    data = {one.right: one.difference for one in found if one.difference.count}
    when = "last epoch" if tables.headline == "success" else "held-out tasks"
    title = f"MemRL against every arm, {when}"
    caption = (
        f"{WHEN[tables.headline]}, memrl minus the arm, seed by seed, worlds averaged first. An "
        "interval that holds 0 tells no difference; from fewer than 5 seeds there is none. memp is "
        "the fair rival without Q."
    )
    colors = {arm: color for arm, (color, _) in looks(experiment.arms).items()}
    return forest("against_arms", title, caption, data, ("the arm", MEMRL), colors)


def in_worlds_figure(experiment: Experiment, rival: str) -> Figure | None:
    """MemRL against an arm without Q, world by world."""
    if len(experiment.worlds) < 2:
        return None
    found = by_world(experiment, MEMRL, rival)
    data = dict(sorted(found.items(), key=lambda item: -item[1].mean))
    title = f"MemRL against {rival} in each world, all epochs"
    differs = (
        "The two differ only in Q."
        if rival == MEMP
        else "They differ in more than Q: rag keeps raw trajectories and has no gate."
    )
    caption = (
        f"Success over all epochs, memrl minus {rival}, over the same seeds. {differs} One "
        "interval in twenty misses the truth by chance; from fewer than 5 seeds there is none."
    )
    return forest(f"against_{rival}", title, caption, data, (rival, MEMRL), {})


def forest(
    name: str,
    title: str,
    caption: str,
    data: dict[str, Interval],
    sides: tuple[str, str],
    colors: dict[str, str],
) -> Figure | None:
    """Rows with a difference and its interval, around a line at 0."""
    if not data:
        return None
    ends = [end for one in data.values() for end in (one.low, one.high, one.mean)]
    reach = max(0.02, *(abs(end) for end in ends if not math.isnan(end)))
    bottom = 34.0 + PITCH * len(data)
    frame = Frame(128, 34, 366, bottom, -reach, reach)
    middle = frame.x(0)
    parts = [
        frame.x_axis(list(svg.ticks(-reach, reach, 5)), "difference of success"),
        svg.text(middle - 8, 14, f"\u2190 {sides[0]} ahead", "end"),
        svg.text(middle + 8, 14, f"{sides[1]} ahead \u2192"),
        svg.element(
            "line", x1=middle, x2=middle, y1=24, y2=bottom, stroke="currentColor", opacity=0.5
        ),
    ]
    for row, (label, one) in enumerate(data.items()):
        color = colors.get(label, "c1" if one.low > 0 else "c2" if one.high < 0 else "c0")
        parts.append(_whisker(frame, 34 + PITCH * (row + 0.5), label, one, color))
    return Figure(name, title, caption, svg.drawing(bottom + 38, *parts, title=title), data)


def _whisker(frame: Frame, y: float, label: str, one: Interval, color: str) -> str:
    parts = [svg.text(120, y, svg.short(label, 21), "end")]
    if not math.isnan(one.low):
        low, high = frame.x(one.low), frame.x(one.high)
        parts.append(
            svg.element("line", x1=low, x2=high, y1=y, y2=y, stroke="currentColor", stroke_width=2)
        )
    parts.append(svg.element("circle", cx=frame.x(one.mean), cy=y, r=4, fill="currentColor"))
    told = f"{label}: {one.mean:+.3f}, {'95 % interval ' * one.known}{one.ends('+')}"
    told += f", {one.count} seeds" * one.known
    return svg.titled(told, parts[0], svg.element("g", *parts[1:], class_=color))


def cost_figure(experiment: Experiment, tables: Tables) -> Figure | None:
    """What each arm costs per episode: tokens, milliseconds, and memories kept."""
    rows = tables.arms
    panels = [key for key in COSTS if any(row.values[key] > 0 for row in rows)]
    if not panels:
        return None
    look = looks(experiment.arms)
    left, gap = 96.0, 47.0
    width = (svg.WIDTH - left) / len(panels) - gap
    parts = []
    for row, one in enumerate(rows):
        parts.append(svg.text(88, 40 + PITCH * row, svg.short(one.arm, 15), "end"))
    for place, key in enumerate(panels):
        start = left + place * (width + gap)
        parts.append(svg.text(start, 14, BY_KEY[key].title))
        parts += _panel(rows, key, start, width, {arm: color for arm, (color, _) in look.items()})
    title = "Cost, all epochs"
    caption = (
        "Per episode: tokens sent and received, median milliseconds; and the memories in the bank "
        "at the end. What is 0 for every arm is left out."
    )
    data = {row.arm: {key: row.values[key] for key in panels} for row in rows}
    drawing = svg.drawing(34.0 + PITCH * len(rows), *parts, title=title)
    return Figure("cost", title, caption, drawing, data)


def _panel(
    rows: Sequence[Row], key: str, start: float, width: float, colors: dict[str, str]
) -> list[str]:
    most = max(row.values[key] for row in rows if not math.isnan(row.values[key]))
    parts = []
    for place, row in enumerate(rows):
        value, y = row.values[key], 40.0 + PITCH * place
        if math.isnan(value):
            continue
        long = width * value / most
        bar = svg.element("rect", x=start, y=y - 6, width=long, height=12, fill="currentColor")
        shown = svg.number(float(f"{value:.2g}" if value < 1 else f"{value:.3g}"))
        parts += [
            svg.element("g", bar, class_=colors[row.arm]),
            svg.text(start + long + 4, y, shown, class_="tick"),
        ]
    return parts
