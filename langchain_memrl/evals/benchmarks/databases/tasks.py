"""The tasks in a file of LifelongAgentBench, read and checked. Nothing of them comes along."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_memrl.errors import InputError
from langchain_memrl.evals.benchmarks.downloads import read_download

WHERE = (
    "lifelong-db needs its tasks: download db_bench of LifelongAgentBench from "
    "https://huggingface.co/datasets/csyq/LifelongAgentBench (or the db_*.json files that MemRL's "
    "authors split) and give the file, or a folder with the split, as --data PATH"
)
TYPES = ("INT", "TEXT", "BIGINT", "FLOAT", "DOUBLE", "REAL", "DATE", "DATETIME")
Value = int | float | str | None
Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table as a task finds it.

    Attributes:
        name: Its name.
        columns: The name and the type of each column.
        rows: Its rows.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(name for name, _ in self.columns)


@dataclass(frozen=True, slots=True)
class DbTask:
    """One task.

    Attributes:
        id: Its key in the file.
        instruction: What is asked.
        table: The only table of its database.
        sql: A statement that solves it.
        rows: The right answer of a question.
        md5: The right state of the table after a change; see `connection.STATE`.
        held_out: Whether its file is the validation part of a split.
    """

    id: str
    instruction: str
    table: Table
    sql: str
    rows: tuple[Row, ...] | None
    md5: str | None
    held_out: bool = False

    @property
    def asks(self) -> bool:
        """Whether it asks for rows; else it changes the table."""
        return self.sql.lstrip("( ").upper().startswith(("SELECT", "WITH"))


@dataclass(frozen=True, slots=True)
class DbTasks:
    """What a download holds.

    Attributes:
        tasks: The tasks, in the order of their numbers.
        hashes: SHA-256 of each file that was read, by its name.
    """

    tasks: tuple[DbTask, ...]
    hashes: Mapping[str, str]


def load_tasks(path: Path | None) -> DbTasks:
    """Read a file of tasks, or a folder with `db_train` and `db_val`.

    Args:
        path: A `.json` file, also `.json.xz` or `.json.gz`; or a folder, whose files are called as
            MemRL's authors call them. Tasks of `db_val` are held out in a transfer.

    Raises:
        InputError: There is no path, nothing there, or something else than tasks.
    """
    if path is None:
        raise InputError(WHERE)
    found: list[DbTask] = []
    hashes = {}
    for file in _files(path):
        entries, hashes[file.name] = read_download(file, WHERE)
        if not isinstance(entries, dict) or not entries:
            raise InputError(f"{file} holds no tasks: expected an object of tasks by number")
        held_out = path.is_dir() and file.name.startswith("db_val")
        found += [_task(file, key, entry, held_out) for key, entry in entries.items()]
    _check_unique(path, found)
    return DbTasks(tuple(sorted(found, key=_number)), hashes)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    groups = [sorted(path.glob(f"{name}.json*")) for name in ("db_train", "db_val")]
    if not all(groups):
        raise InputError(f"{path} holds no db_train.json and db_val.json; {WHERE}")
    return [group[0] for group in groups]


def _number(task: DbTask) -> tuple[int, str]:
    return (int(task.id) if task.id.isdecimal() else 0, task.id)


def _check_unique(path: Path, tasks: Sequence[DbTask]) -> None:
    for what in ("id", "instruction"):
        values = [getattr(task, what) for task in tasks]
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise InputError(f"{path}: two tasks have the {what} {twice!r}")


def _task(file: Path, key: str, entry: Any, held_out: bool) -> DbTask:
    """One entry. In some files the inner parts are Python literals in strings."""
    try:
        answer, table = _value(entry["answer_info"]), _value(entry["table_info"])
        columns = tuple((str(c["name"]), _type(c["type"])) for c in table["column_info_list"])
        rows = tuple(map(tuple, table["row_list"]))
        if any(len(row) != len(columns) for row in rows):
            raise ValueError("a row is longer or shorter than the list of columns")
        direct, md5 = answer.get("direct"), answer.get("md5")
        return DbTask(
            key,
            str(entry["instruction"]),
            Table(str(table["name"]), columns, rows),
            str(answer["sql"]).strip(),
            None if direct is None else tuple(map(tuple, direct)),
            None if md5 is None else str(md5),
            held_out,
        )
    except (KeyError, TypeError, ValueError, SyntaxError, AttributeError) as error:
        raise InputError(
            f"{file}: task {key} is not one of LifelongAgentBench's database tasks "
            f"({type(error).__name__}: {error})"
        ) from error


def _value(field: Any) -> Any:
    literal = isinstance(field, str) and field.lstrip().startswith("{")
    return ast.literal_eval(field) if literal else field


def _type(name: Any) -> str:
    if str(name).upper() not in TYPES:
        raise ValueError(f"the type of a column is {name!r}; expected one of {', '.join(TYPES)}")
    return str(name).upper()
