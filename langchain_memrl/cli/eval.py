"""`memrl eval`: run experiments on the product, and read them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from langchain_memrl.cli.models import chat_model
from langchain_memrl.evals.settings import Protocol

app = typer.Typer(help="Experiments: run arms on suites, and read what came out.")


@app.command("list")
def list_() -> None:
    """Show the suites with their worlds, and the arms."""
    from langchain_memrl.evals.arms import ARMS
    from langchain_memrl.evals.suites import find_suites, load_suite

    console = Console()
    suites = Table("suite", "worlds", "model", box=None)
    for name in find_suites():
        suite = load_suite(name)
        worlds = ", ".join(filter(None, suite.worlds + suite.stress))
        suites.add_row(name, worlds, "yes" if suite.asks_model else "no")
    console.print(suites)
    arms = Table("arm", "", box=None)
    for arm in ARMS.values():
        arms.add_row(arm.name, arm.about)
    console.print(arms)


@app.command()
def run(
    suite: Annotated[str, typer.Argument(help="A suite of `memrl eval list`, or module:SUITE.")],
    out: Annotated[Path, typer.Option(help="Folder of the records; the same run goes on there.")],
    arms: Annotated[str | None, typer.Option(help="Arms, by comma; all by default.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many draws.")] = 5,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the tasks.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Episodes that recall together.")] = None,
    guard: Annotated[
        bool, typer.Option("--guard/--no-guard", help="No task recalls its own memories.")
    ] = False,
    protocol: Annotated[Protocol, typer.Option(help="runtime, transfer or stream.")] = "runtime",
    worlds: Annotated[
        str | None, typer.Option(help="Patterns by comma, such as 'alike-*'; 'all'.")
    ] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="How many tasks.")] = None,
    model: Annotated[str | None, typer.Option(help="The model to ask for at --base-url.")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="An OpenAI-compatible endpoint instead of the small model.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes (simulated suites), or tasks tried at a time."),
    ] = None,
) -> None:
    """Run every arm on the same tasks. Interrupted, the same command goes on where it stopped.

    Without --base-url nothing leaves this machine; with it, the key is read from OPENAI_API_KEY.
    """
    from langchain_memrl.evals import loop
    from langchain_memrl.evals.arms import choose_arms
    from langchain_memrl.evals.settings import RunSettings, choose_worlds
    from langchain_memrl.evals.suites import load_suite

    found = load_suite(suite)
    names = None if arms is None else [name.strip() for name in arms.split(",")]
    settings = RunSettings(
        choose_arms(names, found, guard=guard),
        worlds=choose_worlds(worlds, found),
        seeds=seeds,
        protocol=protocol,
        epochs=epochs or found.epochs,
        batch=batch or found.batch,
        guard=guard,
        tasks=tasks,
    )
    console = Console()
    jobs = jobs or ((os.cpu_count() or 1) if found.simulated else 1)
    with _model(found, base_url, model) as (chat, name), _bar(console) as show:
        files = loop.run(
            found, settings, out, model=chat, model_name=name, jobs=jobs, progress=show
        )
    _show(console, files)


@contextmanager
def _model(suite: Any, base_url: str | None, model: str | None) -> Iterator[tuple[Any, str]]:
    """The chat model and its name; none where the suite asks none."""
    if not suite.asks_model and base_url is None:
        yield None, ""
        return
    with chat_model(base_url, model, suite.model_settings) as found:
        yield found


@contextmanager
def _bar(console: Console) -> Iterator[Any]:
    """A progress bar over units, as the loop's callback."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("loading", total=None)

        def show(done: float, total: int, unit: Any) -> None:
            description = " ".join(filter(None, (unit.world, unit.arm, f"seed {unit.seed}")))
            bar.update(task, completed=done, total=total, description=description)

        yield show


def _show(console: Console, files: Sequence[Path]) -> None:
    """Mean success of each arm, over all worlds and seeds."""
    from langchain_memrl.evals import metrics
    from langchain_memrl.evals.records import read_records

    found: dict[str, list[list[float]]] = {}
    count = failed = 0
    for file in files:
        episodes = read_records(file).episodes
        count += len(episodes)
        failed += sum(record.success is None for record in episodes)
        for arm in metrics.arms(episodes):
            found.setdefault(arm, []).append(metrics.success_per_epoch(episodes, arm))
    epochs = max((len(shares) for worlds in found.values() for shares in worlds), default=0)
    table = Table("solved", *(f"epoch {epoch + 1}" for epoch in range(epochs)), "mean")
    for arm, worlds in found.items():
        means = [fmean(shares) for shares in zip(*worlds, strict=True)]
        table.add_row(arm, *(f"{mean:.3f}" for mean in means), f"{fmean(means):.3f}")
    console.print(table)
    if failed:
        console.print(f"{failed} episodes got no answer; their `error` says why.")
    console.print(f"{count} episodes. Records are in {files[0].parent}.", highlight=False)
