"""Figures about Q: how it spread in the bank, and what a large Q was worth."""

from collections.abc import Iterable, Sequence

from langchain_memrl.evals.analysis.q_metrics import Q_EDGES
from langchain_memrl.evals.analysis.reading import Experiment
from langchain_memrl.evals.analysis.tables import MEMRL
from langchain_memrl.evals.report import svg
from langchain_memrl.evals.report.figures import Figure, Line, looks, named_lines
from langchain_memrl.evals.report.svg import Frame

FEW = 10
"""Q bins with fewer episodes are not drawn."""
ROWS = 6
"""Most epochs in the histogram of Q."""


def bank_by_q(experiment: Experiment, arm: str) -> list[dict[str, list[int]]]:
    """An arm's memories and failure memories per Q bin after each epoch, over all its runs."""
    banks = [run.banks for run in experiment.runs if run.key.arm == arm]
    return [
        {
            "memories": _added(own[epoch].by_q for own in banks if len(own) > epoch),
            "failures": _added(own[epoch].failures_by_q for own in banks if len(own) > epoch),
        }
        for epoch in range(max(map(len, banks), default=0))
    ]


def _added(rows: Iterable[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]


def histogram_figure(experiment: Experiment, arm: str = MEMRL) -> Figure | None:
    """How the Q of a bank spread over the epochs, and which memories come from failures."""
    data = bank_by_q(experiment, arm)
    if not any(sum(epoch["memories"]) for epoch in data):
        return None
    epochs = sorted({round(place * (len(data) - 1) / (ROWS - 1)) for place in range(ROWS)})
    pitch, top = 44, 34
    bottom = top + pitch * len(epochs)
    frame = Frame(64, top, 372, bottom, Q_EDGES[0], Q_EDGES[-1])
    parts = [frame.x_axis(svg.ticks(-1, 1, 5), "Q of the memory")]
    for row, epoch in enumerate(epochs):
        parts += _bars(frame, top + pitch * (row + 1), pitch - 8, data[epoch])
        parts.append(svg.text(58, top + pitch * (row + 1) - 8, f"epoch {epoch + 1}", "end"))
    parts += [
        svg.element("rect", x=64, y=8, width=11, height=11, fill="currentColor", class_="c1"),
        svg.text(79, 14, "written by a success"),
        svg.element("rect", x=220, y=8, width=11, height=11, fill="currentColor", opacity=0.5),
        svg.text(235, 14, "by a failure"),
    ]
    title = f"Q in the bank of {arm}, after single epochs"
    caption = (
        "Share of the bank's memories per Q bin, after an epoch. Memories written by failures stay "
        "as warnings; some come to be worth as much as successes."
    )
    drawing = svg.drawing(bottom + 38, *parts, title=title)
    return Figure("q_histogram", title, caption, drawing, {"arm": arm, "epochs": data})


def _bars(frame: Frame, base: float, height: float, row: dict[str, list[int]]) -> list[str]:
    whole = sum(row["memories"]) or 1
    highest = max(row["memories"]) or 1
    parts = [
        svg.element(
            "line",
            x1=frame.left,
            x2=frame.right,
            y1=base,
            y2=base,
            stroke="currentColor",
            opacity=0.3,
        )
    ]
    for place, (count, failed) in enumerate(zip(row["memories"], row["failures"], strict=True)):
        left, right = frame.x(Q_EDGES[place]) + 1, frame.x(Q_EDGES[place + 1]) - 1
        lost, won = height * failed / highest, height * (count - failed) / highest
        share = {"x": left, "width": right - left, "fill": "currentColor"}
        parts.append(
            svg.titled(
                f"Q from {Q_EDGES[place]:g} to {Q_EDGES[place + 1]:g}: {count:,} memories "
                f"({count / whole:.0%}), {failed:,} of them from failures",
                svg.element("rect", y=base - lost, height=lost, opacity=0.5, **share),
                svg.element("rect", y=base - lost - won, height=won, class_="c1", **share),
            )
        )
    return parts


def calibration(experiment: Experiment) -> dict[str, list[dict[str, float]]]:
    """For each arm and Q bin: episodes, solved, and the share of both, over all its runs."""
    found = {}
    for arm in experiment.arms:
        own = [run.by_q for run in experiment.runs if run.key.arm == arm]
        found[arm] = [
            {
                "low": bins[0].low,
                "high": bins[0].high,
                "episodes": sum(one.episodes for one in bins),
                "solved": sum(one.solved for one in bins),
            }
            for bins in zip(*own, strict=True)
        ]
    return found


def calibration_figure(experiment: Experiment) -> Figure | None:
    """Success by Q: whether a memory with a larger Q really helped more."""
    data = calibration(experiment)
    drawn = {arm: [one for one in bins if one["episodes"] >= FEW] for arm, bins in data.items()}
    drawn = {arm: bins for arm, bins in drawn.items() if len(bins) > 1}
    if not drawn:
        return None
    frame = Frame(36, 32, 264, 280, -1, 1)
    look = looks(experiment.arms)
    parts = [
        frame.y_axis(svg.ticks(0, 1), "share solved"),
        frame.x_axis(svg.ticks(-1, 1, 5), "mean Q of the memories shown"),
        svg.element(
            "line", x1=frame.x(-1), x2=frame.x(1), y1=frame.y(0), y2=frame.y(1),
            stroke="currentColor", stroke_dasharray="1 4", opacity=0.7,
        ),
    ]  # fmt: skip
    lines = []
    for arm, bins in drawn.items():
        told = ", ".join(f"{one['solved']:,.0f} of {one['episodes']:,.0f}" for one in bins)
        xs = [(one["low"] + one["high"]) / 2 for one in bins]
        ys = [one["solved"] / one["episodes"] for one in bins]
        lines.append(Line(arm, f"{arm}: {told}", xs, ys, *look[arm]))
    parts += named_lines(frame, lines)
    title = "What a Q is worth, all epochs"
    caption = (
        "Share of the episodes solved, by the mean Q of the memories they were shown, all epochs "
        f"together; bins with fewer than {FEW} episodes are not drawn. A line that rises means "
        "that Q tells what helps. Dotted: where Q would equal the mean of rewards 1 and -1."
    )
    drawing = svg.drawing(316, *parts, title=title)
    return Figure("calibration", title, caption, drawing, data)
