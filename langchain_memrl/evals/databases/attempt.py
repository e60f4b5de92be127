"""One try at a task: its statements, what they gave, what it cost, and all of that as text."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from langchain_memrl.evals.databases.connection import Database, Result
from langchain_memrl.evals.databases.grading import show_rows
from langchain_memrl.evals.databases.tasks import DbTask, Row, Table

RESULT_LIMIT = 4000
"""Characters of a result that an agent sees; the benchmark's longest right answer has 1,600."""
KEPT = 400
"""Characters of a result that a memory keeps."""
SQL = "SQL: "
"""Begins a line of a memory that holds a statement."""
TABLE = "Table: "
CORRECTED = "Corrected afterwards, this is right:"


class StepLimitError(Exception):
    """An agent wanted one step more than it has."""


class Step(NamedTuple):
    """A statement, and what it gave."""

    statement: str
    result: Result


@dataclass(slots=True)
class Attempt:
    """One try, while it lasts and afterwards.

    Attributes:
        task: The task.
        steps: The most steps: statements, and the answer.
        done: The statements so far.
        answer: What was committed in the end; None: nothing.
        unread: A reply that told neither a statement nor an answer.
        correction: What somebody said afterwards.
        prompt_tokens: Tokens sent to a model, over all calls.
        completion_tokens: Tokens received.
        calls: Calls of a model.
    """

    task: DbTask
    database: Database
    steps: int
    done: list[Step] = field(default_factory=list)
    answer: str | None = None
    unread: str = ""
    correction: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0

    def run(self, statement: str) -> Result:
        """Run a statement; that is a step.

        Raises:
            StepLimitError: There is no step left.
        """
        if len(self.done) >= self.steps:
            raise StepLimitError
        result = self.database.run(statement)
        self.done.append(Step(" ".join(statement.split()), result))
        return result

    def commit(self, answer: str) -> None:
        """Commit an answer; that is the last step.

        Raises:
            StepLimitError: There is no step left.
        """
        if len(self.done) >= self.steps:
            raise StepLimitError
        self.answer = answer

    def commit_rows(self, rows: Sequence[Row] | None) -> None:
        """Commit rows as the answer; after a change of the table there are none."""
        self.commit("done" if rows is None else show_rows(rows))

    @property
    def acted(self) -> bool:
        """Whether any statement was carried out."""
        return any(not step.result.error for step in self.done)

    def as_text(self) -> str:
        """What a memory keeps of it."""
        lines = [describe(self.task.table)]
        for step in self.done:
            lines += [f"{SQL}{step.statement}", f"Result: {show_result(step.result, KEPT)}"]
        answer = "none" if self.answer is None else cut(self.answer, KEPT)
        unread = f"No action could be read in: {cut(self.unread, KEPT)}" if self.unread else ""
        lines += [unread, f"Answer: {answer}", self.correction]
        return "\n".join(filter(None, lines))


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


def cut(text: str, limit: int) -> str:
    """The beginning of a text, and how much is missing."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} [... {len(text) - limit} characters more]"
