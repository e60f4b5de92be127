"""One try at a database task: its statements, what they gave, and all that as text."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from langchain_memrl.evals.benchmarks.attempts import KEPT, Attempt, cut
from langchain_memrl.evals.benchmarks.databases.connection import Database, Result
from langchain_memrl.evals.benchmarks.databases.grading import show_rows
from langchain_memrl.evals.benchmarks.databases.tasks import DbTask, Row, Table

RESULT_LIMIT = 4000
"""Characters of a result that an agent sees; the benchmark's longest right answer has 1,600."""
SQL = "SQL: "
"""Begins a line of a memory that holds a statement."""
TABLE = "Table: "


class Step(NamedTuple):
    """A statement, and what it gave."""

    statement: str
    result: Result


@dataclass(slots=True, kw_only=True)
class DbAttempt(Attempt):
    """One try.

    Attributes:
        task: The task.
        database: Its database.
        statements: The statements so far, with what they gave.
    """

    task: DbTask
    database: Database
    statements: list[Step] = field(default_factory=list)

    def run(self, statement: str) -> Result:
        """Run a statement; that is a step.

        Raises:
            StepLimitError: There is no step left.
        """
        self.step()
        result = self.database.run(statement)
        self.statements.append(Step(" ".join(statement.split()), result))
        return result

    def commit_rows(self, rows: Sequence[Row] | None) -> None:
        """Commit rows as the answer; after a change of the table there are none."""
        self.commit("done" if rows is None else show_rows(rows))

    @property
    def acted(self) -> bool:
        """Whether any statement was carried out."""
        return any(not step.result.error for step in self.statements)

    def done(self) -> str:
        """The table, the statements and what they gave."""
        lines = [describe(self.task.table)]
        for step in self.statements:
            lines += [f"{SQL}{step.statement}", f"Result: {show_result(step.result, KEPT)}"]
        return "\n".join(lines)


def describe(table: Table) -> str:
    """A table's name and columns in one line."""
    columns = ", ".join(f"{name} {kind}" for name, kind in table.columns)
    return f"{TABLE}{table.name} ({columns})"


def show_result(result: Result, limit: int = RESULT_LIMIT) -> str:
    """What an agent sees of a result; what is cut off is said."""
    if result.error:
        return cut(f"error: {result.error}", limit)
    if result.rows is None:
        return f"done, {result.changed} rows changed"
    return cut(show_rows(result.rows), limit)
