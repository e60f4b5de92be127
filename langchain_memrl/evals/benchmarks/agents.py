"""Who tries the tasks of a benchmark: agents that need no model, in one form for every environment.

They act in the real environment and are graded like any other. They show what a memory does, not
what a model can: what they know is written down in a `Script`.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from langchain_memrl.errors import ConfigError
from langchain_memrl.evals.benchmarks.attempts import Attempt
from langchain_memrl.evals.environment import Situation

A = TypeVar("A", bound=Attempt)

MODEL = "model"
"""What the agent that asks a chat model is called."""
PRIOR = 0.5
"""How often the prior-bound agent would solve a task without any memory in sight."""
DISTRACTION = 0.1
"""Share of that chance that each memory of another kind takes away."""
CORRECTION = 0.5
"""How often a failure is corrected afterwards, so that its memory holds a right solution."""
CORRECTED = "Corrected afterwards, this is right:"


class Agent(ABC, Generic[A]):
    """Who tries the tasks."""

    @abstractmethod
    def play(self, situation: Situation, attempt: A) -> None:
        """Take steps and commit an answer. A `StepLimitError` ends the try."""

    def correction(self, situation: Situation, attempt: A, solved: bool) -> str:
        """What somebody said afterwards; every arm keeps it. Empty: nothing."""
        return ""

    def lesson(self, situation: Situation, attempt: A, solved: bool) -> str:
        """What is to be learned; asked for only where an arm keeps lessons. Empty: nothing."""
        return ""


class Script(ABC, Generic[A]):
    """What agents without a model can do in one environment.

    A memory is what `Attempt.as_text` made of a try, or what `truth` gave for it.
    """

    @abstractmethod
    def solve(self, attempt: A) -> None:
        """Do what is right."""

    @abstractmethod
    def guess(self, attempt: A, rng: random.Random) -> None:
        """Do something that the environment understands, at random."""

    @abstractmethod
    def recite(self, attempt: A, memories: Sequence[str]) -> None:
        """Do what is right as far as its forms are found in memories, and nothing else."""

    @abstractmethod
    def fits(self, attempt: A, memory: str) -> bool:
        """Whether a memory is of the kind that this task needs."""

    @abstractmethod
    def truth(self, attempt: A) -> str:
        """What is right, in lines of the form that `recite` reads."""


class Scripted(Agent[A]):
    """An agent without a model.

    Args:
        script: What it can do.
        seed: Draws what is random; the same draw for the same epoch and task in every arm.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    learns: ClassVar[bool] = True
    """Whether memories can change what it does."""

    def __init__(self, script: Script[A], seed: int) -> None:
        self._script = script
        self._seed = seed

    def correction(self, situation: Situation, attempt: A, solved: bool) -> str:
        """For half of the failures, what would have been right."""
        if solved or not self.learns or self._draw("correction", situation) >= CORRECTION:
            return ""
        return f"{CORRECTED}\n{self._script.truth(attempt)}"

    def _draw(self, what: str, situation: Situation) -> float:
        return self._random(what, situation).random()

    def _random(self, what: str, situation: Situation) -> random.Random:
        name = f"{self._seed} {what} {situation.epoch} {situation.task.id}"
        return random.Random(name)  # noqa: S311 - an experiment, not a secret


class Oracle(Scripted[A]):
    """Does what is right: what it does not solve, nobody can."""

    name = "oracle"
    about = "does what the benchmark calls right; it measures the environment"
    learns = False

    def play(self, situation: Situation, attempt: A) -> None:
        """Do what is right."""
        self._script.solve(attempt)


class Random(Scripted[A]):
    """Does something at random."""

    name = "random"
    about = "acts at random; it measures what luck solves"
    learns = False

    def play(self, situation: Situation, attempt: A) -> None:
        """Do something that the environment understands."""
        self._script.guess(attempt, self._random("guess", situation))


class MemoryBound(Scripted[A]):
    """Knows nothing but the forms it finds in its memories.

    It reads a task perfectly, so the names and values that it fills in are those of the task's own
    solution. What has a form that no memory shows is left out.
    """

    name = "memory-bound"
    about = "reads perfectly, but knows only what its memories show; it measures the memory"

    def play(self, situation: Situation, attempt: A) -> None:
        """Do what the memories allow."""
        self._script.recite(attempt, memories_of(situation))


class PriorBound(Scripted[A]):
    """Sometimes knows what is right, unless memories of other kinds distract it.

    Its chance is `PRIOR * (1 - DISTRACTION) ** n` with n such memories in sight, so memories can
    hurt it. Where it does not know, it does as `MemoryBound` does.
    """

    name = "prior-bound"
    about = "knows some answers, and unfit memories distract it; it measures the memory"

    def play(self, situation: Situation, attempt: A) -> None:
        """Know it, or fall back on the memories."""
        memories = memories_of(situation)
        unfit = sum(not self._script.fits(attempt, memory) for memory in memories)
        if self._draw("idea", situation) < PRIOR * (1 - DISTRACTION) ** unfit:
            self._script.solve(attempt)
        else:
            self._script.recite(attempt, memories)


SCRIPTED: dict[str, type[Scripted[Any]]] = {
    agent.name: agent for agent in (Oracle, Random, MemoryBound, PriorBound)
}


def memories_of(situation: Situation) -> list[str]:
    """The texts of the memories in sight, best first."""
    return [scored.memory.experience for scored in situation.memories]


def check_agent(name: str) -> str:
    """The name of an agent; empty means the one that asks a model.

    Raises:
        ConfigError: Nobody is called so.
    """
    if name and name != MODEL and name not in SCRIPTED:
        raise ConfigError(f"agent is {name!r}; expected one of {MODEL}, {', '.join(SCRIPTED)}")
    return name or MODEL
