"""`memrl bench`: what a bank costs on this machine."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from langchain_memrl.bench.plan import Step
from langchain_memrl.bench.rows import Found, Say
from langchain_memrl.cli.bank import Json, print_json
from langchain_memrl.errors import InputError

SIZES = "1000,10000,100000"
UPDATES, LARGE_UPDATES = 250, 2_000
EPISODES = 100
IMPORT_ROUNDS = 15
ONCE_SECONDS = 40
LEGEND = """
Each line is the median of a call (99 %: one in a hundred took longer), beside the least that the
same work can cost, and the ratio of the two. A goal of "1.25x +0.2" is met where ours is at most
1.25 times what stands beside it, plus 0.2 in the line's unit. Goals are what this package strives
for on an idle machine: MISSED means that there is room, not that something is wrong.
"""


def bench(
    sizes: Annotated[str, typer.Option(help="Memories per bank.")] = SIZES,
    dimensions: Annotated[str, typer.Option(help="Numbers per vector.")] = "384,1536",
    rounds: Annotated[
        int | None, typer.Option(min=5, help="How often each call is timed; by size if left out.")
    ] = None,
    peers: Annotated[bool, typer.Option(help="Also measure what else is installed.")] = True,
    large: Annotated[
        bool, typer.Option("--large", help="Also a million memories, and more rewards at once.")
    ] = False,
    postgres: Annotated[
        str | None,
        typer.Option(
            envvar="MEMRL_BENCH_DSN",
            help="postgresql://...: also measure there, in a schema that is dropped afterwards.",
        ),
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Where to save the figure (PNG).")] = None,
    as_json: Json = False,
) -> None:
    """Time every call beside the least that the same work can cost, and beside other stores.

    The calls take turns in one run; times are medians, and ratios say more than times. Exit code 1
    says that an answer was wrong, not that a goal was missed.
    """
    from langchain_memrl.bench.figure import draw
    from langchain_memrl.bench.plan import plan
    from langchain_memrl.bench.report import as_json as plain
    from langchain_memrl.bench.report import machine

    numbers = _numbers("--sizes", sizes), _numbers("--dimensions", dimensions)
    steps = plan(*numbers, rounds=rounds, peers=peers, large=large)
    found = []
    with _quiet():
        updates = LARGE_UPDATES if large else UPDATES
        for one in _measure(steps, updates, rounds or IMPORT_ROUNDS, postgres):
            found.append(one)
            if not as_json:
                _print(one)
    rows = [row for one in found for row in one.rows]
    missing = {name: reason for one in found for name, reason in one.missing.items()}
    if figure is not None:
        draw(rows, figure)
    if as_json:
        told = {"machine": machine(), "rows": plain(rows), "not_measured": missing}
        print_json(told)
    if any(row.error for row in rows):
        raise typer.Exit(1)


def _measure(
    steps: Sequence[Step], updates: int, import_rounds: int, server: str | None
) -> Iterator[Found]:
    """Measure one part after the other, and say how far it is."""
    from langchain_memrl.bench.measures import measure, measure_once
    from langchain_memrl.bench.plan import duration, seconds

    console = Console(stderr=True, highlight=False)
    expected = duration(ONCE_SECONDS + sum(map(seconds, steps)))
    banks = f"{len(steps)} bank{'s' * (len(steps) != 1)}"
    console.print(f"Measuring {banks}; this takes about {expected} on an idle machine.")
    console.print(LEGEND)
    with _progress(console, "whatever the bank") as say:
        found = measure_once(updates, EPISODES, import_rounds, say)
    yield found
    for place, step in enumerate(steps, start=1):
        left = duration(sum(map(seconds, steps[place - 1 :])))
        head = f"{place} of {len(steps)}: {step.size:,} x {step.dimension}, about {left} to go"
        with _progress(console, head) as say:
            found = measure(step, say, server)
        yield found


def _print(found: Found) -> None:
    """Print a part as soon as it is measured, so that a run that is stopped has told something."""
    from langchain_memrl.bench.report import WIDTH, as_table

    Console(width=max(WIDTH, Console().width)).print(as_table(found.rows))
    for name, reason in found.missing.items():
        typer.echo(f"not measured: {name}: {reason}")
    typer.echo("")


@contextmanager
def _progress(console: Console, head: str) -> Iterator[Say]:
    """Shows what is measured: one moving line on a terminal, else a line for each part."""
    if not console.is_terminal:
        console.print(head)
        yield lambda what: console.print(f"  {what}")
        return
    with console.status(head) as status:
        yield lambda what: status.update(f"{head}: {what}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warning about recalls that carry no episode id: here they are meant."""
    logger = logging.getLogger("langchain_memrl")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _numbers(name: str, text: str) -> list[int]:
    """Whole numbers above 0, separated by commas."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise InputError(f"{name} is {text!r}; expected whole numbers above 0, such as 1000,10000")
    return numbers
