"""Records as a table, learning curves and one honest sentence."""

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from langchain_memrl.evals.analysis.metrics import arms, running_success, success_per_epoch
from langchain_memrl.evals.records import EpisodeRecord

NAMES = {
    "none": "no memory",
    "rag": "similarity only (RAG)",
    "memrl": "similarity and Q (MemRL)",
    "oracle": "oracle: handed the right note",
}
COLORS = {"none": "gray", "rag": "orange", "memrl": "green", "oracle": "blue"}
WINDOW = 8
TIE = 0.05
"""Differences of success up to this are called no difference."""


def epoch_table(records: Sequence[EpisodeRecord]) -> Table:
    """Share of the tickets solved, per arm and epoch."""
    found = {arm: success_per_epoch(records, arm) for arm in arms(records)}
    epochs = max(map(len, found.values()), default=0)
    table = Table("solved", *(f"epoch {epoch + 1}" for epoch in range(epochs)))
    for arm, values in found.items():
        table.add_row(NAMES.get(arm, arm), *(f"{value:.2f}" for value in values))
    return table


def terminal_curves(records: Sequence[EpisodeRecord], width: int = 78, color: bool = True) -> str:
    """Learning curves as text: share solved among the last 8 tickets of each arm."""
    import plotext

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(width, 16)
    for arm in arms(records):
        curve = running_success(records, arm, WINDOW)
        style = {"color": COLORS.get(arm), "marker": "braille"} if color else {"marker": arm[0]}
        plotext.plot(range(1, len(curve) + 1), curve, label=arm, **style)
    plotext.ylim(0, 1)
    plotext.xlabel("tickets answered")
    plotext.title(f"solved among the last {WINDOW}")
    text: str = plotext.build()
    return text if color else plotext.uncolorize(text)


def save_curves(records: Sequence[EpisodeRecord], path: Path) -> None:
    """Learning curves as a picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for arm in arms(records):
        curve = running_success(records, arm, WINDOW)
        axes.plot(range(1, len(curve) + 1), curve, label=NAMES.get(arm, arm), color=COLORS.get(arm))
    axes.set(
        xlabel="tickets answered",
        ylabel=f"solved among the last {WINDOW}",
        ylim=(-0.02, 1.02),
    )
    axes.legend()
    figure.savefig(path, dpi=150)


def verdict(records: Sequence[EpisodeRecord]) -> str:
    """What happened in the last epoch, in one sentence, whoever won."""
    last = {arm: success_per_epoch(records, arm)[-1] for arm in arms(records)}
    memrl, rag, oracle = (last.get(arm, 0.0) for arm in ("memrl", "rag", "oracle"))
    numbers = f"{memrl:.0%} with Q against {rag:.0%} by similarity alone"
    if memrl > rag + TIE:
        gap = "as many as" if memrl >= oracle - TIE else "still fewer than"
        return (
            f"Ranking by what worked helped: in the last epoch the same model solved {numbers}, "
            f"{gap} the oracle that is handed the right note ({oracle:.0%})."
        )
    if memrl < rag - TIE:
        return f"Ranking by what worked hurt here: the model solved {numbers}."
    return f"Ranking by what worked made no difference here: the model solved {numbers}."
