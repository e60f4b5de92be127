"""What `memrl eval run` says before, while and after it runs."""

import math
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

SIMULATED_SECONDS = 0.0035
"""What a simulated episode takes on one core, about."""
INTERRUPTED = 130
PARTS = 10


class Speaker:
    """The loop's callback: says how much there is to do, then how far it is.

    Args:
        console: Where.
        simulated: Whether the time can be told beforehand.
        jobs: How many episodes run at a time.
    """

    def __init__(self, console: Console, *, simulated: bool, jobs: int) -> None:
        self._console = console
        self._simulated = simulated
        self._jobs = jobs
        self._bar: tuple[Progress, Any] | None = None
        self._began = 0.0
        self._before = self._part = 0
        self._idle = False
        self.done = self.total = 0

    @contextmanager
    def bar(self) -> Iterator[None]:
        """Draw a bar on a terminal; elsewhere, lines are printed."""
        if not self._console.is_terminal:
            yield
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self._console, transient=True) as bar:
            self._bar = bar, bar.add_task("loading", total=None)
            yield
        self._bar = None

    def __call__(self, done: int, total: int, unit: Any) -> None:
        """Take note of how far it is."""
        first, self.done, self.total = unit is None, done, total
        if first:
            self._begin()
            return
        if self._part < 0 and done > self._before:
            self._part = 0
            left = (total - done) * (time.monotonic() - self._began) / (done - self._before)
            if left:
                self._say(f"about {duration(left)} to go, by the first batch")
        if self._bar is not None:
            names = " ".join(filter(None, (unit.world, unit.arm, f"seed {unit.seed}")))
            self._bar[0].update(self._bar[1], completed=done, total=total, description=names)
        elif total and done * PARTS // total > max(self._part, 0):
            self._part = done * PARTS // total
            self._say(f"{100 * done // total} %: {done} of {total} episodes")

    @property
    def idle(self) -> bool:
        """Whether there was nothing to do."""
        return self._idle

    def _begin(self) -> None:
        left = self.total - self.done
        self._began, self._before = time.monotonic(), self.done
        self._part = 0 if self._simulated else -1
        self._idle = not left
        if not left:
            return
        there = f" ({self.done} of {self.total} are recorded)" if self.done else ""
        seconds = duration(left * SIMULATED_SECONDS / self._jobs)
        when = f"about {seconds}" if self._simulated else "how long is told after the first batch"
        self._say(f"{left} episodes to run{there}, {when}")
        if self.done:
            part = self.done * PARTS // self.total
            self._part = part if self._simulated else -1

    def _say(self, words: str) -> None:
        self._console.print(words, highlight=False, soft_wrap=True)

    def stop(self) -> None:
        """Say where an interrupted run goes on, and end."""
        self._say(f"stopped after {self.done} of {self.total}; the same command goes on there")
        sys.stdout.flush()
        if any(one is not threading.main_thread() and not one.daemon for one in _threads()):
            os._exit(INTERRUPTED)  # a model that is still answering would hold us for a while
        raise typer.Exit(INTERRUPTED)


def _threads() -> Iterable[threading.Thread]:
    return threading.enumerate()


def duration(seconds: float) -> str:
    """About so long, in words."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def show(console: Console, files: Sequence[Path]) -> None:
    """Mean success of each arm among the episodes with an answer, over all worlds and seeds."""
    from langchain_memrl.evals.analysis import metrics
    from langchain_memrl.evals.records import read_records

    found: dict[str, list[list[float]]] = {}
    means: dict[str, list[float]] = {}
    count, errors = 0, []
    for file in files:
        episodes = read_records(file).episodes
        count += len(episodes)
        errors += [record.error for record in episodes if record.success is None]
        for arm, own in metrics.by_arm(episodes).items():
            found.setdefault(arm, []).append(metrics.success_per_epoch(own))
            means.setdefault(arm, []).append(metrics.mean_success(own))
    epochs = max((len(shares) for worlds in found.values() for shares in worlds), default=0)
    table = Table("solved", *(f"epoch {epoch + 1}" for epoch in range(epochs)), "mean")
    for arm, worlds in found.items():
        columns = [
            [shares[epoch] for shares in worlds if epoch < len(shares)] for epoch in range(epochs)
        ]
        table.add_row(arm, *map(_mean, [*columns, means[arm]]))
    console.print(table)
    if errors:
        console.print(
            f"{len(errors)} episodes got no answer and count in no share; the first says: "
            f"{errors[0]}\nThe same command with --retry-errors runs their units again from there.",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    console.print(f"{count} episodes. Records are in {files[0].parent}.", highlight=False)


def _mean(shares: Sequence[float]) -> str:
    """The mean of what there is; a dash where nothing was answered."""
    known = [share for share in shares if not math.isnan(share)]
    return f"{fmean(known):.3f}" if known else "-"
