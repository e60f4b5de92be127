"""Looking after a bank: `history`, `verify`, `export`, `forget`, `reembed` and the like."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from langchain_memrl.cli.bank import (
    Bank,
    EmbeddingsName,
    Json,
    Namespace,
    load_embeddings,
    print_json,
)
from langchain_memrl.errors import InputError
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.store.base import Progress as Report
from langchain_memrl.store.places import without_secrets

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be forgotten.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def history(
    id: Annotated[str, typer.Argument(help="The memory's id.")],
    bank: Bank,
    namespace: Namespace = "default",
    as_json: Json = False,
) -> None:
    """Show every step of a memory's Q."""
    with _look(bank) as memory:
        steps = memory.history(id, namespace=namespace)
    if as_json:
        print_json([asdict(step) for step in steps])
        return
    table = Table("when", "episode", "reward", "Q before", "Q after", box=None)
    for step in steps:
        table.add_row(
            f"{step.at:%Y-%m-%d %H:%M:%S}",
            step.episode_id,
            f"{step.reward:+g}",
            f"{step.before:+.3f}",
            f"{step.after:+.3f}",
        )
    Console().print(table if steps else "No reward has moved it yet.")


def verify(bank: Bank, as_json: Json = False) -> None:
    """Check that everything in a bank agrees; exit code 1 where it does not."""
    with _look(bank) as memory, _busy("checking"):
        found = memory.verify()
    if as_json:
        print_json(asdict(found))
    else:
        for problem in found.problems:
            typer.echo(problem)
        count = len(found.problems)
        problems = "1 problem" if count == 1 else f"{count} problems"
        typer.echo(f"{problems} in {found.memories} memories, {found.intents} intents")
    raise typer.Exit(0 if found.ok else 1)


def rebuild(bank: Bank) -> None:
    """Make anew what follows from the rows: the vector index and the counters."""
    with _change(bank) as memory, _busy("rebuilding"):
        memory.rebuild_index()
    typer.echo("The index is rebuilt.")


def compact(bank: Bank) -> None:
    """Free the space of what was forgotten and leave no trace of it."""
    with _change(bank) as memory, _busy("compacting"):
        memory.compact()
    typer.echo("The bank is compact.")


def reembed(bank: Bank, embeddings: EmbeddingsName) -> None:
    """Go over to another embedding model; repeating an interrupted call goes on."""
    with _change(bank) as memory, _bar("embedding") as report:
        made = memory.reembed(load_embeddings(embeddings), progress=report)
    typer.echo(f"{made} texts embedded")


def export(
    bank: Bank,
    file: Annotated[Path | None, typer.Argument(help="The file to write.")] = None,
) -> None:
    """Write a whole bank as JSON lines."""
    bank, file = _bank_and(bank, file)
    with _look(bank) as memory, _bar("exporting") as report:
        lines = memory.export_jsonl(file, progress=report)
    typer.echo(f"{lines} lines in {file}")


def import_(
    file: Annotated[Path, typer.Argument(help="A file made by export.")],
    bank: Bank,
) -> None:
    """Add an export to a bank, which may be new; repeating an interrupted import completes it."""
    with _bar("importing") as report:
        EpisodicMemory.import_jsonl(file, bank, progress=report).close()
    typer.echo(f"{without_secrets(bank)} holds everything that is in {file}")


def backup(
    bank: Bank, folder: Annotated[Path | None, typer.Argument(help="A new folder.")] = None
) -> None:
    """Copy a bank while others go on using it."""
    bank, folder = _bank_and(bank, folder)
    with _look(bank) as memory, _bar("copying") as report:
        memory.backup(folder, progress=report)
    typer.echo(f"The copy is in {folder}")


def forget(
    bank: Bank,
    id: Annotated[list[str] | None, typer.Option(help="A memory; may be repeated.")] = None,
    episode: Annotated[str | None, typer.Option(help="What this episode wrote.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="The whole namespace.")] = False,
    derived: Annotated[bool, typer.Option("--derived", help="Also what was made of it.")] = False,
    namespace: Namespace = "default",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Forget memories by id, by episode, or a whole namespace."""
    chosen = {"ids": id, "episode_id": episode, "all": everything, "derived": derived}
    with _change(bank) as memory:
        found = memory.forget(**chosen, namespace=namespace, dry_run=True)  # type: ignore[arg-type]
        if _agreed(len(found), dry_run, yes):
            memory.forget(**chosen, namespace=namespace)  # type: ignore[arg-type]


def prune(
    bank: Bank,
    max_q: Annotated[float, typer.Option(help="Highest Q to forget.")],
    min_updates: Annotated[int, typer.Option(min=1, help="Fewest rewards behind it.")] = 3,
    namespace: Namespace = "default",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Forget memories that have proved useless; pinned ones stay."""
    with _change(bank) as memory:
        found = memory.prune(
            max_q=max_q, min_updates=min_updates, namespace=namespace, dry_run=True
        )
        if _agreed(len(found), dry_run, yes):
            memory.prune(max_q=max_q, min_updates=min_updates, namespace=namespace)


def _agreed(count: int, dry_run: bool, yes: bool) -> bool:
    memories = "1 memory" if count == 1 else f"{count} memories"
    if dry_run or not count:
        typer.echo(f"{memories} would be forgotten")
        return False
    if not yes:
        typer.confirm(f"Forget {memories} for good?", abort=True)
    typer.echo(f"forgetting {memories}")
    return True


def _bank_and(bank: str, path: Path | None) -> tuple[str, Path]:
    """The bank and the path: where only the path is given, the bank is that of MEMRL_DSN."""
    if path is not None:
        return bank, path
    known = os.environ.get("MEMRL_DSN", "")
    if not known or known == bank:
        raise InputError("two things are needed: the bank, or MEMRL_DSN, and a path to write to")
    return known, Path(bank)


def _look(bank: str) -> EpisodicMemory:
    return EpisodicMemory.open(bank, create=False, read_only=True)


def _change(bank: str) -> EpisodicMemory:
    return EpisodicMemory.open(bank, create=False)


def _busy(title: str) -> AbstractContextManager[object]:
    """A sign on standard error that work goes on."""
    return Console(stderr=True).status(title)


@contextmanager
def _bar(title: str) -> Iterator[Report]:
    """A progress bar on standard error."""
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title)
        yield lambda done, total: bar.update(task, completed=done, total=total)
