"""Figures: what each shows (numbers first), then how it is drawn. Here: lines over the epochs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_memrl.evals.analysis.intervals import Interval
from langchain_memrl.evals.analysis.reading import Experiment
from langchain_memrl.evals.analysis.runs import ORACLE, Run
from langchain_memrl.evals.analysis.tables import MEMRL, NONE, SHARE, over_seeds
from langchain_memrl.evals.report import svg
from langchain_memrl.evals.report.svg import LINE, Frame

LOOKS = {
    NONE: ("c0", ""),
    "placebo": ("c9", "2 3"),
    "pass@k": ("c10", "7 3"),
    ORACLE: ("ink", "7 3"),
    MEMRL: ("c1", ""),
    "memrl-rag": ("c11", "7 3"),
    "memrl-plain": ("c12", "2 3"),
    "rag": ("c2", ""),
    "shrunk": ("c3", ""),
    "memp": ("c4", ""),
}
FREE = 4  # the colours c5 to c8 go to the other arms, in order


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        name: Its name in the data.
        title: What it shows.
        caption: How to read it.
        svg: The drawing.
        data: The numbers that are drawn.
    """

    name: str
    title: str
    caption: str
    svg: str
    data: Any

    def _repr_svg_(self) -> str:
        """The drawing with its own colours, as notebooks show it."""
        return self.svg.replace(">", f"><style>{svg.STYLE}</style>", 1)


def looks(arms: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour class and dashes of each arm, the same in every figure.

    Each has a colour of its own (until more than four are unknown here); references and variants
    of MemRL are dashed too.
    """
    others = [arm for arm in arms if arm not in LOOKS]
    found = {arm: LOOKS[arm] for arm in arms if arm in LOOKS}
    for place, arm in enumerate(others):
        found[arm] = (f"c{5 + place % FREE}", ("", "7 3", "2 3")[place // FREE % 3])
    return found


def curves(
    experiment: Experiment,
    of: Callable[[Run], Sequence[float]],
    within: tuple[float, float] | None = None,
) -> dict[str, list[Interval]]:
    """For each arm and epoch the mean over worlds and seeds, with its interval over seeds."""
    found = {}
    for arm in experiment.arms:
        own = [run for run in experiment.runs if run.key.arm == arm]
        epochs = max(len(of(run)) for run in own)
        longest = [[run for run in own if len(of(run)) > epoch] for epoch in range(epochs)]
        found[arm] = [
            over_seeds(runs, [of(run)[epoch] for run in runs], within)
            for epoch, runs in enumerate(longest)
        ]
    return {arm: found[arm] for arm in found if found[arm]}


def curve_figure(
    experiment: Experiment,
    name: str,
    title: str,
    unit: str,
    caption: str,
    of: Callable[[Run], Sequence[float]],
    x: str = "epoch",
) -> Figure | None:
    """Lines over the epochs with bands over seeds; None where there are no two points to join."""
    data = curves(experiment, of, SHARE if unit.startswith("share") else None)
    known = [
        value
        for points in data.values()
        for point in points
        for value in (point.mean, point.low, point.high)
        if not math.isnan(value)
    ]
    epochs = max(map(len, data.values()), default=0)
    if not known or epochs < 2:
        return None
    marks = svg.ticks(min(known), max(known))
    step = marks[1] - marks[0] if len(marks) > 1 else 0.1
    low, high = (
        math.floor(min(known) / step + 1e-9) * step,
        math.ceil(max(known) / step - 1e-9) * step,
    )
    frame = Frame(36, 32, 264, 280, 1, epochs, low, max(high, low + step))
    parts = [
        frame.y_axis(svg.ticks(frame.y_low, frame.y_high), unit),
        frame.x_axis(range(1, epochs + 1, math.ceil(epochs / 10)), x),
        *_lines(frame, data, looks(experiment.arms)),
    ]
    return Figure(name, title, caption, svg.drawing(316, *parts, title=title), data)


def _lines(
    frame: Frame, data: dict[str, list[Interval]], look: dict[str, tuple[str, str]]
) -> list[str]:
    bands, lines = [], []
    for arm, points in data.items():
        xs = range(1, len(points) + 1)
        sure = [(x, one) for x, one in zip(xs, points, strict=True) if one.known]
        if len(sure) > 1:
            lows, highs = [one.low for _, one in sure], [one.high for _, one in sure]
            band = frame.band([x for x, _ in sure], lows, highs)
            bands.append(svg.element("g", band, class_=look[arm][0]))
        means = [point.mean for point in points]
        told = ", ".join(svg.number(round(mean, 3)) for mean in means)
        lines.append(Line(arm, f"{arm}: {told}", xs, means, *look[arm]))
    return bands + named_lines(frame, lines)


class Line(NamedTuple):
    """A line of a figure; `told` is shown when it is pointed at."""

    name: str
    told: str
    xs: Sequence[float]
    ys: Sequence[float]
    color: str
    dash: str


def named_lines(frame: Frame, lines: Sequence[Line]) -> list[str]:
    """Lines with their names to the right of the plot, moved apart where they would overlap."""
    ends = [_end(frame, line) for line in lines]
    places = svg.spread([y for _, y in ends], LINE, frame.top, frame.bottom)
    return [
        svg.titled(
            line.told,
            frame.line(line.xs, line.ys, line.dash),
            svg.element(
                "path",
                d=f"M{x + 5:.1f},{y:.1f}L{frame.right + 17:.1f},{place:.1f}",
                stroke="currentColor",
                opacity=0.4,
                fill="none",
            ),
            svg.text(frame.right + 20, place, svg.short(line.name, 14), fill="currentColor"),
            class_=line.color,
        )
        for line, (x, y), place in zip(lines, ends, places, strict=True)
    ]


def _end(frame: Frame, line: Line) -> tuple[float, float]:
    """Where a line ends."""
    known = [point for point in zip(line.xs, line.ys, strict=True) if not math.isnan(point[1])]
    return (frame.x(known[-1][0]), frame.y(known[-1][1])) if known else (frame.right, frame.bottom)
