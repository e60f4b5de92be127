"""Looking into a bank: `stats`, `list`, `show`, `search`. Nothing here writes."""

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer
from langchain_core.embeddings import Embeddings
from rich.console import Console
from rich.table import Table
from rich.text import Text

from langchain_memrl.errors import InputError
from langchain_memrl.importing import import_object
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.types import Memory

Bank = Annotated[
    str, typer.Argument(envvar="MEMRL_DSN", help="The bank: a folder, or postgresql://...")
]
Namespace = Annotated[str, typer.Option(help="Which namespace.")]
EmbeddingsName = Annotated[
    str, typer.Option(envvar="MEMRL_EMBEDDINGS", help="module:factory of the embeddings.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def stats(bank: Bank, as_json: Json = False) -> None:
    """Count what a bank holds, one column per namespace."""
    with open_bank(bank) as memory:
        found = [memory.stats(namespace=name) for name in memory.namespaces()]
    if as_json:
        print_json([asdict(item) for item in found])
        return
    if not found:
        _console().print("The bank is empty.")
        return
    names = [name for name in asdict(found[0]) if name != "namespace"]
    table = Table("", *(item.namespace for item in found))
    for name in names:
        table.add_row(name.replace("_", " "), *(_number(getattr(item, name)) for item in found))
    _console().print(table)


def list_memories(
    bank: Bank,
    limit: Annotated[int, typer.Option(min=0, help="How many, newest first.")] = 20,
    namespace: Namespace = "default",
    as_json: Json = False,
) -> None:
    """List memories, newest first."""
    with open_bank(bank) as memory:
        _print_memories(memory.list(limit=limit, namespace=namespace), as_json)


def show(
    id: Annotated[str, typer.Argument(help="The memory's id.")],
    bank: Bank,
    namespace: Namespace = "default",
    as_json: Json = False,
) -> None:
    """Show one memory with its text and every step of its Q."""
    with open_bank(bank) as memory:
        found = memory.get(id, namespace=namespace)
        steps = memory.history(id, namespace=namespace)
    if as_json:
        print_json({**asdict(found), "history": [asdict(step) for step in steps]})
        return
    table = Table(show_header=False, box=None)
    for name, value in asdict(found).items():
        table.add_row(name.replace("_", " "), Text(_plain(value)))
    for step in steps:
        moved = f"{step.before:+.3f} -> {step.after:+.3f}"
        table.add_row(
            f"reward {step.reward:+g}",
            Text(f"{moved}  {step.at:%Y-%m-%d %H:%M}  {step.episode_id}"),
        )
    _console().print(table)


def search(
    query: Annotated[str, typer.Argument(help="A task, or a text to find.")],
    bank: Bank,
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 5,
    q_weight: Annotated[float, typer.Option(min=0, max=1, help="Weight of Q.")] = 0.5,
    namespace: Namespace = "default",
    embeddings: Annotated[
        str | None,
        typer.Option(
            envvar="MEMRL_EMBEDDINGS",
            help="module:factory of the bank's embeddings. Without it the text is searched.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recall memories for a task, without recording anything."""
    if embeddings is None:
        Console(stderr=True).print("No --embeddings given: searching the text, not the meaning.")
        with open_bank(bank) as memory:
            _print_memories(memory.search_text(query, limit=limit, namespace=namespace), as_json)
        return
    with open_bank(bank, load_embeddings(embeddings)) as memory:
        recall = memory.recall(
            query,
            k=limit,
            fetch_k=max(limit, 10),
            q_weight=q_weight,
            distinct=False,
            namespace=namespace,
        )
    if as_json:
        print_json(
            [
                {**asdict(scored.memory), "similarity": scored.similarity, "score": scored.score}
                for scored in recall.memories
            ]
        )
        return
    if not recall.memories:
        needed = _number(recall.settings.get("threshold"))
        best = _number(recall.similarity_max)
        _console().print(f"Nothing is similar enough (best {best}, needed {needed}).")
        return
    for scored in recall.memories:
        numbers = f"similarity {scored.similarity:.3f}, score {scored.score:+.3f}, "
        _console().print(_block(scored.memory, numbers))


def open_bank(bank: str, embeddings: Embeddings | None = None) -> EpisodicMemory:
    """A bank for reading only."""
    return EpisodicMemory.open(bank, embeddings=embeddings, create=False, read_only=True)


def load_embeddings(name: str) -> Embeddings:
    """The embeddings that a `module:factory` name makes.

    Raises:
        InputError: There is no such factory, or it makes something else.
    """
    example = "langchain_memrl.offline:HashingEmbeddings"
    factory = import_object(name, "--embeddings", example, "factory")
    try:
        made = factory()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"--embeddings is {name!r} ({error}); expected module:factory, for example {example}"
        ) from error
    if not isinstance(made, Embeddings):
        raise InputError(f"--embeddings {name!r} made a {type(made).__name__}; expected Embeddings")
    return made


# --- printing -----------------------------------------------------------------------------------


def _console() -> Console:
    return Console(soft_wrap=False)


def print_json(value: Any) -> None:
    """Print plain values as JSON; times as ISO text."""
    typer.echo(json.dumps(value, default=_json_value, ensure_ascii=False, indent=2))


def _json_value(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else dict(value)


def _print_memories(memories: Sequence[Memory], as_json: bool) -> None:
    if as_json:
        print_json([asdict(memory) for memory in memories])
        return
    for memory in memories:
        _console().print(_block(memory))
    if not memories:
        _console().print("Nothing found.")


def _block(memory: Memory, numbers: str = "") -> Text:
    """A memory in three lines that fit a narrow terminal."""
    rewards = "1 reward" if memory.updates == 1 else f"{memory.updates} rewards"
    lesson = memory.lesson or f"(raw) {memory.trajectory}"
    block = Text(memory.id, style="bold")
    where = ", in quarantine" if memory.trust == "untrusted" else ""
    block.append(f"\n  {numbers}Q {memory.q_value:+.3f} after {rewards}, {memory.outcome}{where}")
    block.append(f"\n  {_first_line(memory.intent)}\n  {_first_line(lesson)}")
    block.stylize("not bold", len(memory.id))
    return block


def _first_line(text: str, width: int = 76) -> str:
    line = _visible(text.strip().splitlines()[0]) if text.strip() else ""
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _number(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(_number(item) for item in value) or "-"
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return json.dumps(dict(value), ensure_ascii=False)
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return value.isoformat() if isinstance(value, datetime) else _visible(str(value))


def _visible(text: str) -> str:
    """A stored text without control characters, which could rewrite the terminal."""
    return "".join(
        char if char in "\n\t" or unicodedata.category(char) != "Cc" else f"\\x{ord(char):02x}"
        for char in text
    )
