"""The items in a file of Humanity's Last Exam, read and checked. Nothing of them is kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_memrl.errors import ConfigError, InputError
from langchain_memrl.evals.benchmarks.downloads import digest, read_download

WHERE = (
    "hle needs its items: ask for access at https://huggingface.co/datasets/cais/hle, download "
    "them and give the file (.jsonl, .json or .parquet) as --data PATH"
)
KINDS = ("exactMatch", "multipleChoice")
NO_PARQUET = "reading .parquet needs pyarrow: pip install pyarrow, or give the items as .jsonl"


@dataclass(frozen=True, slots=True)
class Item:
    """One question.

    Attributes:
        id: Its name; nothing else of it is recorded.
        question: What is asked.
        answer: What is right.
        chosen: Whether the answer is the letter of one of several choices.
    """

    id: str
    question: str
    answer: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Items:
    """What a download holds.

    Attributes:
        items: The questions in words, in the order of the file.
        pictured: How many with an image were left out.
        hashes: SHA-256 of the file, by its name.
    """

    items: tuple[Item, ...]
    pictured: int
    hashes: Mapping[str, str]


def load_items(path: Path | None) -> Items:
    """Read a file of items. Those with an image are left out and counted.

    Args:
        path: JSON lines, a JSON list or a Parquet file, with the fields of the official data set.

    Raises:
        InputError: There is no path, nothing there, or something else than items. No text of an
            item is repeated in the message.
        ConfigError: It is a Parquet file and pyarrow is not installed.
    """
    if path is None:
        raise InputError(WHERE)
    entries, sha256 = _read_parquet(path) if path.suffix == ".parquet" else _read(path)
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path} holds no items: expected a list of objects; {WHERE}")
    found: dict[str, Item] = {}
    pictured = 0
    questions = set()
    for place, entry in enumerate(entries, 1):
        item = _item(path, place, entry)
        if item is None:
            pictured += 1
        elif item.id in found or item.question in questions:
            raise InputError(f"{path}: item {place} is there twice")
        else:
            found[item.id] = item
            questions.add(item.question)
    if not found:
        raise InputError(f"{path}: all {pictured} items have images, which are left out")
    return Items(tuple(found.values()), pictured, {path.name: sha256})


def _read(path: Path) -> tuple[Any, str]:
    return read_download(path, WHERE)


def _read_parquet(path: Path) -> tuple[Any, str]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigError(NO_PARQUET) from error
    try:
        raw = path.read_bytes()
        return pyarrow.parquet.read_table(pyarrow.BufferReader(raw)).to_pylist(), digest(raw)
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{path} cannot be read ({type(error).__name__}); {WHERE}") from error


def _item(path: Path, place: int, entry: Any) -> Item | None:
    """An item; None where it has an image."""
    try:
        if entry.get("image"):
            return None
        kind = entry["answer_type"]
        id, question, answer = (str(entry[name]).strip() for name in ("id", "question", "answer"))
    except (KeyError, AttributeError) as error:
        raise InputError(
            f"{path}: item {place} is not one of the exam's ({type(error).__name__}); expected "
            "the fields id, question, answer, answer_type and image"
        ) from error
    if kind not in KINDS or not (id and question and answer):
        raise InputError(
            f"{path}: item {place} has an empty field, or an answer_type other than "
            f"{' or '.join(KINDS)}"
        )
    return Item(id, question, answer, kind == KINDS[1])
