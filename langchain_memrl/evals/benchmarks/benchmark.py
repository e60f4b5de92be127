"""What every benchmark does alike: one try from an open attempt to a `Trial`, and its set-up."""

import json
import random
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from langchain_core.embeddings import Embeddings

from langchain_memrl.config import RecallConfig
from langchain_memrl.errors import ConfigError, InputError
from langchain_memrl.evals.asking import word_embeddings
from langchain_memrl.evals.benchmarks.agents import MODEL, SCRIPTED, Agent, Script
from langchain_memrl.evals.benchmarks.attempts import Attempt, StepLimitError
from langchain_memrl.evals.benchmarks.downloads import digest
from langchain_memrl.evals.environment import Environment, Setup, Situation, Task, Trial

BATCH = 5
"""Episodes that recall together, in every benchmark of the paper here."""
EPOCHS = 10
"""Passes over the tasks in the paper."""
MEMORY_TOKENS = 200
"""Typical length of a memory, for estimates."""
MODEL_SETTINGS = {"max_tokens": 1024}
"""How a model is asked that acts in steps."""


class HasId(Protocol):
    """Whatever has an id."""

    @property
    def id(self) -> str:
        """Its name."""


A = TypeVar("A", bound=Attempt)
T = TypeVar("T", bound=HasId)


class Benchmark(Environment, Generic[A]):
    """Tasks of a benchmark, tried by one agent.

    Args:
        tasks: The tasks.
        agent: Who tries them.
        preset: The paper's settings of recall.
    """

    def __init__(self, tasks: Sequence[Task], agent: Agent[A], preset: RecallConfig) -> None:
        self.tasks = tasks
        self.recall = {
            "k": preset.k,
            "fetch_k": preset.fetch_k,
            "score_threshold": preset.score_threshold,
        }
        self._agent = agent

    @abstractmethod
    def attempt(self, situation: Situation) -> AbstractContextManager[A]:
        """A try in an environment of its own, which is there as long as the `with` block lasts."""

    @abstractmethod
    def solved(self, attempt: A) -> bool:
        """Whether the benchmark counts a try, while its environment is still there, as solved."""

    def act(self, situation: Situation) -> Trial:
        """Try a task once, in an environment of its own."""
        with self.attempt(situation) as attempt:
            with suppress(StepLimitError):
                self._agent.play(situation, attempt)
            success = self.solved(attempt)
        attempt.correction = self._agent.correction(situation, attempt, success)
        lesson = self._agent.lesson(situation, attempt, success) if situation.lessons else ""
        return Trial(
            success=success,
            answer=attempt.answer or attempt.unread,
            trajectory=attempt.as_text(),
            lesson=lesson,
            prompt_tokens=attempt.prompt_tokens,
            completion_tokens=attempt.completion_tokens,
            calls=attempt.calls,
        )

    def embeddings(self) -> Embeddings:
        """Static word vectors that come along."""
        return word_embeddings()


def choose_agent(name: str, setup: Setup, script: Script[A], conversing: Agent[A]) -> Agent[A]:
    """The agent of a name: the one that asks a model, or one that follows a script."""
    if name == MODEL:
        return conversing
    return SCRIPTED[name](script, setup.seed)


def about_agent(name: str) -> dict[str, Any]:
    """What a suite has to say of who tries its tasks: arguments of `Suite`."""
    if name == MODEL:
        return {"asks_model": True, "once": False, "note": ""}
    agent = SCRIPTED[name]
    return {
        "asks_model": False,
        "once": not agent.learns,
        "note": f"agent {name}: {agent.about}",
    }


def unprepared(where: str) -> Callable[[Setup], Environment]:
    """What a suite makes environments with before it was prepared: an error that says how.

    Args:
        where: Where its data can be had.
    """

    def make(setup: Setup) -> Environment:
        raise InputError(where)

    return make


def drawn(tasks: Sequence[T], setup: Setup) -> list[T]:
    """As many tasks as asked for, drawn by the seed, in their own order."""
    if setup.tasks is None or setup.tasks >= len(tasks):
        return list(tasks)
    rng = random.Random(f"tasks {setup.seed}")  # noqa: S311 - an experiment, not a secret
    return [tasks[place] for place in sorted(rng.sample(range(len(tasks)), setup.tasks))]


def own_prompts(
    path: Path | None, prompts: Mapping[str, str], places: Sequence[str]
) -> dict[str, str]:
    """The prompts of a suite, with those of the user's file in their place.

    Args:
        path: A JSON object of texts by name; names that it leaves out keep the suite's text.
        prompts: The suite's own.
        places: What a text may name in braces.

    Raises:
        ConfigError: The file is no such object, or a text names something else.
    """
    if path is None:
        return dict(prompts)
    try:
        own = json.loads(path.read_text(encoding="utf-8"))
        unknown = sorted(set(own) - set(prompts))
        if unknown:
            raise ValueError(f"unknown prompts {', '.join(unknown)}")
        for text in own.values():
            text.format(**dict.fromkeys(places, ""))
    except (OSError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise ConfigError(
            f"{path} holds no prompts ({error}); expected a JSON object with some of "
            f"{', '.join(prompts)}"
        ) from error
    return {**prompts, **own}


def prompts_digest(prompts: Mapping[str, str]) -> str:
    """SHA-256 of the prompts in use, for the header of the records."""
    return digest(json.dumps(prompts))


def listed(
    known: Mapping[str, Mapping[str, str]], instructions: Mapping[str, str]
) -> dict[str, str]:
    """The tasks of a download that are known not to be solvable, with the reasons.

    Args:
        known: For each reason the ids, each with the beginning of the SHA-256 of what is asked, so
            that a number means the same task in every download.
        instructions: What is asked, by id.
    """
    return {
        id: reason
        for id, asked in instructions.items()
        for reason, marks in known.items()
        if id in marks and digest(asked).startswith(marks[id])
    }
