"""`memrl demo`: a real small model gets better because its notes are ranked by what worked."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from langchain_memrl.errors import ConfigError, InputError, MemRLError
from langchain_memrl.evals.records import EpisodeRecord, Header, write_records

EPOCHS = 3
TICKETS = 32
ANSWER_TOKENS = 12
MISSING = 'the demo needs more packages: pip install "langchain-memrl[demo]"'
VERSIONS = ("langchain-memrl", "langchain-core", "langgraph", "faiss-cpu", "numpy")

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
    with _chat_model(base_url, model) as (chat, name):
        records = _run(chat, episodes, seed, console)
    header = Header(
        suite="runbooks",
        model=name,
        settings={"seed": seed, "episodes": episodes, "epochs": EPOCHS, "k": 1, "render": "turns"},
        versions={package: version(package) for package in VERSIONS},
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


@contextmanager
def _chat_model(base_url: str | None, model: str | None) -> Iterator[tuple[Any, str]]:
    """The chat model and its name; the local server runs as long as the block."""
    if (base_url is None) != (model is None):
        raise ConfigError("--base-url and --model belong together; give both or neither")
    try:
        from langchain_memrl.offline import LocalModelServer, chat_model

        if base_url is None:
            with LocalModelServer() as server:
                chat = chat_model(server, max_tokens=ANSWER_TOKENS, stop=["\n"])
                yield chat, server.model
            return
    except ImportError as error:
        raise ConfigError(MISSING) from error
    from langchain_openai import ChatOpenAI

    key = os.environ.get("OPENAI_API_KEY", "unused")
    yield (
        ChatOpenAI(
            base_url=base_url,
            model=model or "",
            api_key=key,  # type: ignore[arg-type]
            temperature=0,
            max_completion_tokens=ANSWER_TOKENS,
        ),
        model or "",
    )


def _run(chat: Any, episodes: int, seed: int, console: Console) -> list[EpisodeRecord]:
    """All records, with a progress bar."""
    from openai import OpenAIError

    from langchain_memrl.evals.arms import ARMS
    from langchain_memrl.evals.loop import run_runbooks
    from langchain_memrl.offline import WordLlamaEmbeddings

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    total = len(ARMS) * EPOCHS * episodes
    records: list[EpisodeRecord] = []
    try:
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("loading", total=total)
            loop = run_runbooks(
                chat, WordLlamaEmbeddings(), seed=seed, tickets=episodes, epochs=EPOCHS
            )
            for record in loop:
                records.append(record)
                bar.update(
                    task, completed=len(records), description=f"epoch {record.epoch + 1}/{EPOCHS}"
                )
    except ImportError as error:
        raise ConfigError(MISSING) from error
    except OpenAIError as error:
        raise MemRLError(
            f"the model did not answer ({type(error).__name__}: {error}) after {len(records)} "
            "answers; check --base-url, --model and OPENAI_API_KEY"
        ) from error
    return records


def _save(
    out: Path, header: Header, records: list[EpisodeRecord], seconds: float
) -> dict[str, Any]:
    """Write records, figure and summary; the summary is returned."""
    from langchain_memrl.evals.metrics import arms, success_per_epoch
    from langchain_memrl.evals.report import save_curves, verdict

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
    from langchain_memrl.evals.report import epoch_table, terminal_curves

    console.print(epoch_table(records))
    width = max(40, min(console.width, 100))
    sys.stdout.write(terminal_curves(records, width, color=console.is_terminal) + "\n")
    console.print(summary["verdict"], style="bold", highlight=False)
    console.print(
        f"{len(records)} answers of {summary['model']}, seed {summary['seed']}, "
        f"{summary['seconds']:.0f} s. Records, summary and figure are in {out}.",
        highlight=False,
    )
