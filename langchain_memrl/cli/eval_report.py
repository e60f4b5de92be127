"""`memrl eval report`: what the records of an experiment say."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from langchain_memrl.cli.bank import Json, print_json
from langchain_memrl.errors import InputError
from langchain_memrl.evals.analysis.reading import Experiment


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.")],
    out: Annotated[
        Path | None, typer.Option(help="Where the page goes; report.html in the folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Tables and one HTML page from the records of a run.

    Every number is computed from the *.jsonl files below the folder. The page is one file, loads
    nothing, and holds all numbers as JSON.
    """
    from langchain_memrl.evals.analysis.tables import tabulate
    from langchain_memrl.evals.report.contents import all_figures, report_data
    from langchain_memrl.evals.report.page import render_page
    from langchain_memrl.evals.report.printing import print_report

    experiment = _read(folder)
    tables = tabulate(experiment)
    figures = all_figures(experiment, tables)
    page = out or folder / "report.html"
    try:
        page.write_text(render_page(experiment, tables, figures), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out {page} cannot be written ({error}); choose another") from error
    if as_json:
        data = report_data(experiment, tables, figures)
        print_json({name: value for name, value in data.items() if name != "runs"})
        return
    console = Console()
    print_report(experiment, tables, console if console.is_terminal else Console(width=160))
    console.print(f"Page: {page}", highlight=False, markup=False, soft_wrap=True)


def _read(folder: Path) -> Experiment:
    """Read the folder with a progress bar."""
    from langchain_memrl.evals.analysis.reading import read_experiment, record_files

    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=len(record_files(folder)))
        return read_experiment(folder, lambda _: bar.advance(task))
