"""`memrl threshold`: does the automatic threshold suit these tasks?"""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from langchain_memrl.cli.bank import EmbeddingsName, Json, load_embeddings, print_json
from langchain_memrl.errors import InputError
from langchain_memrl.evals.thresholds import passed


def threshold(
    own: Annotated[Path, typer.Argument(help="Task texts of one kind; one a line, or .jsonl.")],
    foreign: Annotated[Path, typer.Argument(help="Task texts of another kind.")],
    embeddings: EmbeddingsName,
    sizes: Annotated[str, typer.Option(help="How many tasks the banks hold.")] = "5,20,60,128",
    draws: Annotated[int, typer.Option(min=1, help="Banks per size.")] = 10,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    as_json: Json = False,
) -> None:
    """Measure what the automatic threshold lets through: own tasks, and foreign ones."""
    results = passed(
        _texts(own),
        _texts(foreign),
        load_embeddings(embeddings),
        sizes=[int(size) for size in sizes.split(",")],
        draws=draws,
        seed=seed,
    )
    if as_json:
        print_json([result._asdict() for result in results])
        return
    table = Table("intents", "own pass", "least", "foreign pass", "most", box=None)
    for result in results:
        table.add_row(str(result.size), *(f"{share:.3f}" for share in result[1:]))
    Console().print(table)


def _texts(path: Path) -> list[str]:
    """The different task texts of a file: its lines, or the strings of a .jsonl file."""
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        if path.suffix == ".jsonl":
            lines = [json.loads(line) for line in lines]
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error})") from error
    if not all(isinstance(line, str) for line in lines):
        raise InputError(f"{path} holds something else than JSON strings, one a line")
    return [*dict.fromkeys(lines)]
