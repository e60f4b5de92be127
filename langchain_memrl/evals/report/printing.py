"""The report in a terminal."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from langchain_memrl.evals.analysis.reading import Experiment
from langchain_memrl.evals.analysis.tables import WHEN, Tables
from langchain_memrl.evals.report.contents import Column, arm_columns, more_arm_columns
from langchain_memrl.evals.report.findings import caveat, findings, notes
from langchain_memrl.evals.report.several import Several, overview_columns, truth_columns

FIRST, NARROW, WIDE = 16, 11, 26  # letters that a column takes


def print_report(experiment: Experiment, tables: Tables, console: Console) -> None:
    """Notes, a row per arm, what it comes to, and every comparison."""
    for note in notes(experiment):
        console.print(_text(note, "bold yellow"))
    suite = experiment.headers[0].suite
    title = f"{suite} (simulation)" if experiment.simulated else suite
    every = [*arm_columns(tables), *more_arm_columns(tables)[1:]]
    for columns in in_width(every, console.width):
        console.print(as_table(title, columns, tables.arms))
    for heading, sentences in (
        ("In short", [*findings(tables), caveat(experiment)]),
        (WHEN[tables.headline], [one.sentence for one in tables.comparisons[tables.headline]]),
    ):
        if sentences:
            console.print(Text(f"\n{heading}", "bold"))
        for sentence in sentences:
            console.print(_text(f"  {sentence}"))


def print_several(several: Several, console: Console) -> None:
    """What right solutions pass, and a line per experiment."""
    groups = (
        ("Right solutions", truth_columns(), several.truths),
        ("Side by side", overview_columns(several.lines), several.lines),
    )
    for title, columns, rows in groups:
        if rows:
            for part in in_width(columns, console.width):
                console.print(as_table(title, part, rows))


def in_width(columns: Sequence[Column], width: int) -> list[list[Column]]:
    """Columns in groups that fit the terminal; each group starts with the first column."""
    first, *others = columns
    groups: list[list[Column]] = [[first]]
    taken = FIRST
    for column in others:
        needed = WIDE if column.show else NARROW
        if taken + needed > width and len(groups[-1]) > 1:
            groups.append([first])
            taken = FIRST
        groups[-1].append(column)
        taken += needed
    return groups


def as_table(title: str, columns: Sequence[Column], rows: Sequence[Any]) -> Table:
    """Rows as a table; numbers to the right."""
    table = Table(title=_text(title), title_justify="left", box=None, padding=(0, 1))
    for column in columns:
        table.add_column(
            column.title,
            justify="left" if column.digits is None else "right",
            no_wrap=column.digits is None or column.show is not None,
            vertical="bottom",
        )
    for row in rows:
        table.add_row(*(_text(column.cell(row)) for column in columns))
    return table


def _text(words: str, style: str = "") -> Text:
    """Words without control characters, which could rewrite the terminal."""
    return Text("".join(char if char.isprintable() else "?" for char in words), style)
