"""`memrl eval report`: what the records of experiments say."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from langchain_memrl.cli.bank import Json, print_json
from langchain_memrl.errors import InputError
from langchain_memrl.evals.analysis.reading import Experiment


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(help="The folder of a run; several folders go on one page, side by side."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Where the page goes; report.html in the folder, or where all lie."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tables and one HTML page from the records of a run, or of several.

    Every number is computed from the *.jsonl files below the folders. The page is one file, loads
    nothing, and holds all numbers as JSON.
    """
    experiments = _read(folders)
    page = out or _common(folders) / "report.html"
    text, data, show = _single(experiments[0]) if len(experiments) == 1 else _several(experiments)
    try:
        page.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out {page} cannot be written ({error}); choose another") from error
    if as_json:
        print_json(data)
        return
    console = Console()
    show(console if console.is_terminal else Console(width=160))
    console.print(f"Page: {page}", highlight=False, markup=False, soft_wrap=True)


def _single(experiment: Experiment) -> tuple[str, Any, Any]:
    """The page of one experiment, its numbers, and what prints it."""
    from langchain_memrl.evals.analysis.tables import tabulate
    from langchain_memrl.evals.report.contents import all_figures, report_data
    from langchain_memrl.evals.report.page import render_page
    from langchain_memrl.evals.report.printing import print_report

    tables = tabulate(experiment)
    figures = all_figures(experiment, tables)
    data = report_data(experiment, tables, figures)
    return (
        render_page(experiment, tables, figures),
        {name: value for name, value in data.items() if name != "runs"},
        lambda console: print_report(experiment, tables, console),
    )


def _several(experiments: Sequence[Experiment]) -> tuple[str, Any, Any]:
    """The same of several."""
    from langchain_memrl.evals.report.printing import print_several
    from langchain_memrl.evals.report.several import gather, render_several, several_data

    several = gather(experiments)
    data = several_data(several)
    for one in data["experiments"]:
        del one["runs"]
    return render_several(several), data, lambda console: print_several(several, console)


def _common(folders: Sequence[Path]) -> Path:
    """The folder itself, or the one that holds all of them."""
    if len(folders) == 1:
        return folders[0]
    return Path(os.path.commonpath([folder.resolve() for folder in folders]))


def _read(folders: Sequence[Path]) -> list[Experiment]:
    """Read the folders with a progress bar."""
    from langchain_memrl.evals.analysis.reading import read_experiment, record_files

    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=sum(len(record_files(folder)) for folder in folders))
        return [read_experiment(folder, lambda _: bar.advance(task)) for folder in folders]
