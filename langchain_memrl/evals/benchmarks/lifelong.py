"""Reading the task files of LifelongAgentBench, and of the split that MemRL's authors made."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from langchain_memrl.errors import InputError
from langchain_memrl.evals.benchmarks.downloads import read_download


class Asked(Protocol):
    """Whatever has an id and an instruction."""

    @property
    def id(self) -> str:
        """Its key in the file."""

    @property
    def instruction(self) -> str:
        """What is asked."""


T = TypeVar("T", bound=Asked)


@dataclass(frozen=True, slots=True)
class Tasks(Generic[T]):
    """What a download holds.

    Attributes:
        tasks: The tasks, in the order of their numbers.
        hashes: SHA-256 of each file that was read, by its name.
    """

    tasks: tuple[T, ...]
    hashes: Mapping[str, str]


def read_tasks(
    path: Path | None,
    read: Callable[[str, Mapping[str, Any], bool], T],
    *,
    stem: str,
    kind: str,
    where: str,
) -> Tasks[T]:
    """Read a file of tasks, or a folder with a split into training and validation.

    Args:
        path: A `.json` file, also `.json.xz` or `.json.gz`; or a folder.
        read: Makes a task of its key, its entry and whether it is held out. In some files the inner
            parts of an entry are Python literals in strings; it gets them as objects.
        stem: What the files in a folder begin with: `db` for `db_train` and `db_val`. Tasks of the
            second are held out in a transfer.
        kind: What the tasks are called, for errors.
        where: Where they can be had.

    Raises:
        InputError: There is no path, nothing there, or something else than tasks.
    """
    if path is None:
        raise InputError(where)
    found: list[T] = []
    hashes = {}
    for file in _files(path, stem, where):
        entries, hashes[file.name] = read_download(file, where)
        if not isinstance(entries, dict) or not entries:
            raise InputError(f"{file} holds no tasks: expected an object of tasks by number")
        held_out = path.is_dir() and file.name.startswith(f"{stem}_val")
        for key, entry in entries.items():
            try:
                found.append(read(key, _plain(entry), held_out))
            except (KeyError, TypeError, ValueError, SyntaxError, AttributeError) as error:
                raise InputError(
                    f"{file}: task {key} is not one of LifelongAgentBench's {kind} "
                    f"({type(error).__name__}: {error})"
                ) from error
    _check_unique(path, found)
    return Tasks(tuple(sorted(found, key=_number)), hashes)


def _files(path: Path, stem: str, where: str) -> list[Path]:
    if not path.is_dir():
        return [path]
    groups = [sorted(path.glob(f"{stem}_{part}.json*")) for part in ("train", "val")]
    if not all(groups):
        raise InputError(f"{path} holds no {stem}_train.json and {stem}_val.json; {where}")
    return [group[0] for group in groups]


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry, with its inner parts as objects."""
    return {
        name: ast.literal_eval(part)
        if name != "instruction" and isinstance(part, str) and part.startswith("{")
        else part
        for name, part in entry.items()
    }


def _number(task: Asked) -> tuple[int, str]:
    return (int(task.id) if task.id.isdecimal() else 0, task.id)


def _check_unique(path: Path, tasks: list[T]) -> None:
    for what in ("id", "instruction"):
        values = [getattr(task, what) for task in tasks]
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise InputError(f"{path}: two tasks have the {what} {twice!r}")
