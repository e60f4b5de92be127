"""`memrl eval`: run experiments on the product, and read them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from langchain_memrl.cli.eval_progress import Speaker, show
from langchain_memrl.cli.models import chat_model
from langchain_memrl.errors import ConfigError
from langchain_memrl.evals.settings import Protocol

app = typer.Typer(help="Experiments: run arms on suites, and read what came out.")


@app.command("list")
def list_() -> None:
    """Show the suites with their worlds, and the arms."""
    from langchain_memrl.evals.arms import ARMS
    from langchain_memrl.evals.suites import find_suites, load_suite

    console = Console()
    suites = Table("suite", "world", "what", "model", box=None)
    for name in find_suites():
        suite = load_suite(name)
        for place, world in enumerate(suite.worlds + suite.stress):
            shown = (name, "yes" if suite.asks_model else "no") if place == 0 else ("", "")
            suites.add_row(shown[0], world, suite.about.get(world, ""), shown[1])
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
    seeds: Annotated[int | None, typer.Option(min=1, help="How many draws; 5.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the tasks.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Episodes that recall together.")] = None,
    guard: Annotated[
        bool, typer.Option("--guard/--no-guard", help="No task recalls its own memories.")
    ] = False,
    protocol: Annotated[
        Protocol | None, typer.Option(help="runtime (the default), transfer or stream.")
    ] = None,
    worlds: Annotated[
        str | None, typer.Option(help="Patterns by comma, such as 'alike-*'; 'all'.")
    ] = None,
    tasks: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many tasks of the suite.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model to ask for at --base-url.")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="An OpenAI-compatible endpoint instead of the small model.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes (simulated suites), or tasks tried at a time."),
    ] = None,
    retry_errors: Annotated[
        bool,
        typer.Option(
            "--retry-errors",
            help="Run units again from their first batch in which the environment failed.",
        ),
    ] = False,
    accept_edits: Annotated[
        bool,
        typer.Option("--accept-edits", help="Go on although the suite's file was edited."),
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Your download of a benchmark.")] = None,
    agent: Annotated[
        str, typer.Option(help="Who tries a benchmark: model, or one that needs no model.")
    ] = "",
    steps: Annotated[int | None, typer.Option(min=1, help="Steps per try.")] = None,
    dsn: Annotated[
        str, typer.Option(help="A database server to use instead of a private one.")
    ] = "",
    root: Annotated[
        Path | None, typer.Option(help="A folder with the files of a system, for lifelong-os.")
    ] = None,
    prompts: Annotated[Path | None, typer.Option(help="A file of your own prompts.")] = None,
) -> None:
    """Run every arm on the same tasks. Interrupted, the same command goes on where it stopped.

    More --arms or --seeds add to a folder; any other change needs another folder.

    Without --base-url nothing leaves this machine; with it, the key is read from OPENAI_API_KEY.
    """
    from langchain_memrl.evals.environment import Setup
    from langchain_memrl.evals.running.headers import source_of
    from langchain_memrl.evals.suites import load_suite

    setup = Setup(data=data, agent=agent, steps=steps, dsn=dsn, root=root, prompts=prompts)
    with _prepared(load_suite(suite), setup) as found:
        chosen = "none" if arms is None and found.once else arms
        _run(
            found,
            out,
            None if chosen is None else [name.strip() for name in chosen.split(",")],
            {
                "seeds": seeds or (1 if found.once else 5),
                "protocol": protocol or ("stream" if found.once else "runtime"),
                "epochs": epochs or found.epochs,
                "batch": batch or found.batch,
                "guard": guard,
                "tasks": tasks,
            },
            worlds,
            (base_url, model),
            jobs or ((os.cpu_count() or 1) if found.simulated else 1),
            {
                "source": source_of(suite),
                "accept_edits": accept_edits,
                "retry_errors": retry_errors,
            },
        )


@contextmanager
def _prepared(suite: Any, setup: Any) -> Iterator[Any]:
    """The suite to run; one that has nothing to choose must not be told what to choose."""
    if suite.prepare is not None:
        with suite.prepare(setup) as found:
            yield found
        return
    if setup != type(setup)():
        raise ConfigError(
            f"the suite {suite.name} takes no --data, --agent, --steps, --dsn, --root or --prompts"
        )
    yield suite


def _run(
    suite: Any,
    out: Path,
    arms: Sequence[str] | None,
    options: dict[str, Any],
    worlds: str | None,
    where: tuple[str | None, str | None],
    jobs: int,
    going_on: dict[str, Any],
) -> None:
    """Say what it will cost, run it and show what came out."""
    from langchain_memrl.evals import loop
    from langchain_memrl.evals.arms import choose_arms
    from langchain_memrl.evals.estimate import estimate
    from langchain_memrl.evals.exceptions import exception_lines
    from langchain_memrl.evals.records import read_records
    from langchain_memrl.evals.settings import RunSettings, choose_worlds

    chosen = choose_arms(arms, suite, guard=options["guard"], batch=options["batch"])
    settings = RunSettings(chosen, worlds=choose_worlds(worlds, suite), **options)
    console = Console()
    expected = estimate(suite, settings, jobs)
    for line in (expected, suite.note):
        if line:
            console.print(str(line), highlight=False, markup=False)
    speaker = Speaker(console, simulated=suite.simulated, jobs=jobs)
    try:
        with _model(suite, *where) as (chat, name), speaker.bar():
            files = loop.run(
                suite,
                settings,
                out,
                model=chat,
                model_name=name,
                jobs=jobs,
                progress=speaker,
                **going_on,
            )
    except KeyboardInterrupt:
        speaker.stop()
    if speaker.idle:
        console.print(f"nothing to do: all {speaker.total} episodes are recorded", highlight=False)
    show(console, files)
    episodes = [record for file in files for record in read_records(file).episodes]
    for line in exception_lines(suite, episodes):
        console.print(line, highlight=False, markup=False)


@contextmanager
def _model(suite: Any, base_url: str | None, model: str | None) -> Iterator[tuple[Any, str]]:
    """The chat model and its name; none where the suite asks none."""
    if not suite.asks_model and (base_url is None or suite.prepare is not None):
        yield None, ""
        return
    with chat_model(base_url, model, suite.model_settings) as found:
        yield found
