"""The tasks in a file of LifelongAgentBench, read and checked. Nothing of them comes along."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_memrl.evals.benchmarks.lifelong import Tasks, read_tasks

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


def load_tasks(path: Path | None) -> Tasks[DbTask]:
    """Read a file of tasks, or a folder with `db_train` and `db_val`.

    Raises:
        InputError: There is no path, nothing there, or something else than tasks.
    """
    return read_tasks(path, _task, stem="db", kind="database tasks", where=WHERE)


def _task(key: str, entry: Mapping[str, Any], held_out: bool) -> DbTask:
    answer, table = entry["answer_info"], entry["table_info"]
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


def _type(name: Any) -> str:
    if str(name).upper() not in TYPES:
        raise ValueError(f"the type of a column is {name!r}; expected one of {', '.join(TYPES)}")
    return str(name).upper()
