"""Agents that need no model. They act on the real server and are graded like any other.

They show what a memory does, not what a model can: what they know is written down here.
"""

import random
from abc import ABC, abstractmethod
from typing import ClassVar

from langchain_memrl.evals.databases.attempt import CORRECTED, SQL, Attempt
from langchain_memrl.evals.databases.clauses import clauses_of
from langchain_memrl.evals.environment import Situation

PRIOR = 0.5
"""How often the prior-bound agent would solve a task without any memory in sight."""
DISTRACTION = 0.1
"""Share of that chance that each memory of another kind of statement takes away."""
CORRECTION = 0.5
"""How often a failure is corrected afterwards, so that its memory holds the right statement."""


class Agent(ABC):
    """Who tries the tasks."""

    @abstractmethod
    def play(self, situation: Situation, attempt: Attempt) -> None:
        """Run statements and commit an answer. A `StepLimitError` ends the try."""

    def correction(self, situation: Situation, attempt: Attempt, solved: bool) -> str:
        """What somebody said afterwards; every arm keeps it. Empty: nothing."""
        return ""

    def lesson(self, situation: Situation, attempt: Attempt, solved: bool) -> str:
        """What is to be learned; asked for only where an arm keeps lessons. Empty: nothing."""
        return ""


class Scripted(Agent):
    """An agent without a model.

    Args:
        seed: Draws what is random; the same draw for the same epoch and task in every arm.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    learns: ClassVar[bool] = True
    """Whether memories can change what it does."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def correction(self, situation: Situation, attempt: Attempt, solved: bool) -> str:
        """For half of the failures, the right statement."""
        if solved or not self.learns or self._draw("correction", situation) >= CORRECTION:
            return ""
        return f"{CORRECTED}\n{SQL}{' '.join(attempt.task.sql.split())}"

    def _draw(self, what: str, situation: Situation) -> float:
        return self._random(what, situation).random()

    def _random(self, what: str, situation: Situation) -> random.Random:
        name = f"{self._seed} {what} {situation.epoch} {situation.task.id}"
        return random.Random(name)  # noqa: S311 - an experiment, not a secret


class Oracle(Scripted):
    """Runs the ground truth: what it does not solve, nobody can."""

    name = "oracle"
    about = "runs the ground truth; it measures the environment"
    learns = False

    def play(self, situation: Situation, attempt: Attempt) -> None:
        """Run the right statement and commit what it gives."""
        attempt.commit_rows(attempt.run(attempt.task.sql).rows)


class Random(Scripted):
    """Asks for something, or deletes something, at random."""

    name = "random"
    about = "acts at random; it measures what luck solves"
    learns = False

    def play(self, situation: Situation, attempt: Attempt) -> None:
        """Run one statement that the server understands, and commit what it gives."""
        rng = self._random("statement", situation)
        table = attempt.task.table
        columns = rng.sample(table.names, rng.randint(1, len(table.names)))
        place = rng.randrange(len(table.names))
        value = str(rng.choice(table.rows)[place]).replace("'", "''") if table.rows else ""
        start = rng.choice([f"SELECT `{'`, `'.join(columns)}` FROM", "DELETE FROM"])
        where = f"`{table.names[place]}` {rng.choice('=<>')} '{value}'"
        attempt.commit_rows(attempt.run(f"{start} `{table.name}` WHERE {where}").rows)


class MemoryBound(Scripted):
    """Knows no SQL: it writes only clauses whose form it finds in its memories.

    It reads a task perfectly, so the names and values in them are those of the task's own
    solution. A clause of a form that no memory shows is left out; without a beginning it gives up.
    """

    name = "memory-bound"
    about = "reads perfectly, but knows only the SQL in its memories; it measures the memory"

    def play(self, situation: Situation, attempt: Attempt) -> None:
        """Write what the memories allow, run it and commit what it gives."""
        known = {
            form for scored in situation.memories for form in forms_in(scored.memory.experience)
        }
        clauses = [clause for clause in clauses_of(attempt.task.sql) if clause.form in known]
        if not clauses or not clauses[0].opens:
            attempt.commit("I do not know")
            return
        statement = " ".join(clause.text for clause in clauses)
        attempt.commit_rows(attempt.run(statement).rows)


class PriorBound(MemoryBound):
    """Sometimes knows the answer, unless memories of other kinds of statements distract it.

    Its chance is `PRIOR * (1 - DISTRACTION) ** n` with n such memories in sight, so memories can
    hurt it. Where it does not know, it does as `MemoryBound` does.
    """

    name = "prior-bound"
    about = "knows some answers, and unfit memories distract it; it measures the memory"

    def play(self, situation: Situation, attempt: Attempt) -> None:
        """Know it, or fall back on the memories."""
        beginning = clauses_of(attempt.task.sql)[0].form
        seen = [forms_in(scored.memory.experience) for scored in situation.memories]
        unfit = sum(beginning not in forms for forms in seen)
        if self._draw("idea", situation) < PRIOR * (1 - DISTRACTION) ** unfit:
            attempt.commit_rows(attempt.run(attempt.task.sql).rows)
        else:
            super().play(situation, attempt)


SCRIPTED: dict[str, type[Scripted]] = {
    agent.name: agent for agent in (Oracle, Random, MemoryBound, PriorBound)
}


def forms_in(experience: str) -> set[str]:
    """The forms of the clauses of every statement in a memory."""
    return {
        clause.form
        for line in experience.splitlines()
        if line.startswith(SQL)
        for clause in clauses_of(line.removeprefix(SQL))
    }
