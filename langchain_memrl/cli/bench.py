"""`memrl bench`: what a bank costs on this machine."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from langchain_memrl.cli.bank import Json, print_json
from langchain_memrl.errors import InputError

SIZES = "1000,10000"
LARGE = "1000,10000,100000,1000000"


def bench(
    sizes: Annotated[str, typer.Option(help="Memories per bank.")] = SIZES,
    dimensions: Annotated[str, typer.Option(help="Numbers per vector.")] = "384,1536",
    rounds: Annotated[int, typer.Option(min=5, help="How often each call is timed.")] = 50,
    peers: Annotated[bool, typer.Option(help="Also measure what else is installed.")] = True,
    large: Annotated[bool, typer.Option("--large", help=f"Sizes {LARGE}.")] = False,
    figure: Annotated[Path | None, typer.Option(help="Where to save the figure (PNG).")] = None,
    as_json: Json = False,
) -> None:
    """Time every call beside the least that the same work can cost, and beside other stores.

    The calls take turns in one run; times are medians, and ratios say more than times.
    """
    from langchain_memrl.bench.footprint import imports
    from langchain_memrl.bench.measures import measure
    from langchain_memrl.bench.report import as_json as plain
    from langchain_memrl.bench.report import as_table, draw, machine

    missing: dict[str, str] = {}
    plan = [
        (size, dimension)
        for dimension in _numbers("--dimensions", dimensions)
        for size in _numbers("--sizes", LARGE if large else sizes)
    ]
    console = Console(stderr=True)
    rows, memory = imports(max(1, min(3, rounds // 5)))
    with console.status("measuring") as status, _quiet():
        for place, (size, dimension) in enumerate(plan, start=1):
            status.update(f"{place} of {len(plan)}: {size:,} memories, {dimension} numbers each")
            found = measure(size, dimension, rounds=rounds, peers=peers)
            rows += found.rows
            missing |= found.missing
    if figure is not None:
        draw(rows, figure)
    if as_json:
        print_json(
            {
                "machine": machine(),
                "memory_mb": memory,
                "rows": plain(rows),
                "not_measured": missing,
            }
        )
        return
    Console(width=None if Console().is_terminal else 160).print(as_table(rows))
    for name, size_ in memory.items():
        typer.echo(f"memory after the import, {name}: {size_:.0f} MB")
    for name, reason in missing.items():
        typer.echo(f"not measured: {name}, {reason}")


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
