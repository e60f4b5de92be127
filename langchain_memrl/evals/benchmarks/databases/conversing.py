"""A chat model and a database: it runs statements and commits rows."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_memrl.evals.benchmarks.conversing import Conversing
from langchain_memrl.evals.benchmarks.databases.attempt import DbAttempt, describe, show_result

ACTION = re.compile(r"Action:\s*(Operation|Answer)", re.IGNORECASE)
STATEMENT = re.compile(r"```(?:sql)?\s*(.*?)\s*(?:```|$)", re.DOTALL | re.IGNORECASE)
ANSWER = re.compile(r"Final Answer:\s*(.*)", re.DOTALL | re.IGNORECASE)


class Move(NamedTuple):
    """What a reply does: it runs a statement, commits an answer, or neither can be read off it."""

    statement: str | None = None
    answer: str | None = None


def read_move(reply: str) -> Move:
    """Read the first action of a reply."""
    action = ACTION.search(reply)
    if action is None:
        return Move()
    rest = reply[action.end() :]
    if action[1].lower() == "operation":
        found = STATEMENT.search(rest)
        return Move(statement=found[1] if found and found[1] else None)
    found = ANSWER.search(rest)
    return Move(answer=found[1].strip() if found else None)


class ConversingWithDatabase(Conversing[DbAttempt]):
    """A chat model with memories in its prompt.

    A reply without a readable action ends the try, as the benchmark has it.

    Args:
        model: Any chat model, or a function of the prompt.
        prompts: The texts of `prompts.PROMPTS`.
        server: The kind of server, which the prompt names.
    """

    def __init__(self, model: Any, prompts: Mapping[str, str], server: str) -> None:
        super().__init__(model, prompts)
        self._server = server

    def opening(self, attempt: DbAttempt) -> list[BaseMessage]:
        """The rules, then the task and its table."""
        values = {"server": self._server, "steps": attempt.steps}
        asked = {"instruction": attempt.instruction, "table": describe(attempt.task.table)}
        return [
            SystemMessage(self._prompts["SYSTEM"].format(**values)),
            HumanMessage(self._prompts["TASK"].format(**asked)),
        ]

    def perform(self, reply: str, attempt: DbAttempt) -> str | None:
        """Run a statement or commit an answer."""
        move = read_move(reply)
        if move.statement is not None:
            return show_result(attempt.run(move.statement))
        if move.answer is not None:
            attempt.commit(move.answer)
        else:
            attempt.unread = reply or "(nothing)"
        return None
