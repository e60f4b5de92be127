"""`memrl demo`: a real small model gets better because its notes are ranked by what worked."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from langchain_memrl.cli.models import MISSING, chat_model
from langchain_memrl.errors import ConfigError, InputError, MemRLError
from langchain_memrl.evals.records import EpisodeRecord, Header, write_records

EPOCHS = 3
TICKETS = 32
DEMO_ARMS = ("none", "rag", "memrl", "oracle")

STORY = (
    "A team's runbook has three notes for each kind of support ticket. They read alike, but two "
    "of the three are stale, and only sending a ticket to the queue tells. The same model answers "
    "every ticket with one note in its prompt; only the way that note is chosen differs. The same "
    "tickets come back in every epoch."
)


def demo(
    episodes: Annotated[
        int, typer.Option(min=1, max=TICKETS, help="Tickets that each arm answers in an epoch.")
    ] = TICKETS,
    seed: Annotated[int, typer.Option(help="Draws the notes, the tickets and their order.")] = 0,
    out: Annotated[Path, typer.Option(help="Where records and figure go.")] = Path("memrl-demo"),
    base_url: Annotated[
        str | None, typer.Option(help="An OpenAI-compatible endpoint instead of the small model.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model to ask for there.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Watch a real small model get better at support tickets.

    Four arms answer the same tickets: without memory, with the note that is most similar, with
    the note that is similar and has proved useful, and with the right note handed over. Without
    --base-url nothing leaves this machine; with it, the key is read from OPENAI_API_KEY.
    """
    console = Console(stderr=as_json)
    _make_folder(out)
    console.print(STORY, highlight=False)
    started = time.perf_counter()
    from langchain_memrl.evals.settings import versions
    from langchain_memrl.evals.suites.runbooks import SUITE

    with chat_model(base_url, model, SUITE.model_settings) as (chat, name):
        records = _run(chat, episodes, seed, console)
    header = Header(
        suite="runbooks",
        model=name,
        settings={"seed": seed, "episodes": episodes, "epochs": EPOCHS, "k": 1, "render": "turns"},
        versions=dict(versions()),
    )
    summary = _save(out, header, records, time.perf_counter() - started)
    if as_json:
        typer.echo(json.dumps(summary, indent=2))
    else:
        _show(console, records, summary, out)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "records.jsonl").touch()
    except OSError as error:
        raise InputError(
            f"--out {out} cannot be written ({error}); choose another folder"
        ) from error


def _run(chat: Any, episodes: int, seed: int, console: Console) -> list[EpisodeRecord]:
    """All records, with a progress bar."""
    from langchain_memrl.evals.arms import ARMS
    from langchain_memrl.evals.loop import records
    from langchain_memrl.evals.settings import RunSettings
    from langchain_memrl.evals.suites.runbooks import SUITE

    settings = RunSettings(
        tuple(ARMS[name] for name in DEMO_ARMS),
        seeds=1,
        first_seed=seed,
        epochs=EPOCHS,
        tasks=episodes,
        attempts=1,
        patience=1,
    )
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    found: list[EpisodeRecord] = []
    try:
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("loading", total=len(DEMO_ARMS) * EPOCHS * episodes)
            for record in records(SUITE, settings, chat):
                if isinstance(record, EpisodeRecord):
                    found.append(record)
                    bar.update(task, completed=len(found), description=record.arm)
    except ImportError as error:
        raise ConfigError(MISSING) from error
    except MemRLError as error:
        raise MemRLError(
            f"the model did not answer after {len(found)} answers ({error}); check --base-url, "
            "--model and OPENAI_API_KEY"
        ) from error
    return found


def _save(
    out: Path, header: Header, records: list[EpisodeRecord], seconds: float
) -> dict[str, Any]:
    """Write records, figure and summary; the summary is returned."""
    from langchain_memrl.evals.analysis.metrics import arms, success_per_epoch
    from langchain_memrl.evals.report.demo import save_curves, verdict

    per_epoch = {arm: success_per_epoch(records, arm) for arm in arms(records)}
    summary = {
        "last_epoch": {arm: values[-1] for arm, values in per_epoch.items()},
        "per_epoch": per_epoch,
        "verdict": verdict(records),
        "model": header.model,
        **header.settings,
        "seconds": round(seconds, 1),
    }
    write_records(out / "records.jsonl", header, records)
    save_curves(records, out / "learning_curves.png")
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return summary


def _show(
    console: Console, records: list[EpisodeRecord], summary: dict[str, Any], out: Path
) -> None:
    from langchain_memrl.evals.report.demo import epoch_table, terminal_curves

    console.print(epoch_table(records))
    width = max(40, min(console.width, 100))
    sys.stdout.write(terminal_curves(records, width, color=console.is_terminal) + "\n")
    console.print(summary["verdict"], style="bold", highlight=False)
    console.print(
        f"{len(records)} answers of {summary['model']}, seed {summary['seed']}, "
        f"{summary['seconds']:.0f} s. Records, summary and figure are in {out}.",
        highlight=False,
    )
