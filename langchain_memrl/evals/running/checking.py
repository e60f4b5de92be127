"""What a suite hands over is checked here, before anything is asked, kept or recorded."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_memrl.config import LearningConfig, RecallConfig
from langchain_memrl.errors import InputError, MemRLError
from langchain_memrl.evals.environment import Environment, Setup, Suite, Task, Trial
from langchain_memrl.importing import describe
from langchain_memrl.inputs import check_count, check_metadata, check_name, check_text

LEARNING = LearningConfig()
LONGEST_EPOCH = "9999-"
"""An episode's id is its epoch and its task's id; together they have to be a usable name."""


def make_environment(suite: Suite, setup: Setup) -> Environment:
    """The environment of one world and seed, with usable tasks.

    Raises:
        InputError: What is wrong with it, in one sentence with the suite, world and task.
    """
    name = _name(suite, setup.world)
    try:
        found: Any = suite.make(setup)
    except MemRLError:
        raise
    except Exception as error:  # the suite's own code may raise anything
        raise InputError(
            f"{name}: the environment of seed {setup.seed} cannot be made ({describe(error)})"
        ) from error
    if not isinstance(found, Environment):
        raise InputError(f"{name}: make gave a {type(found).__name__}; expected an Environment")
    check_tasks(name, found)
    try:
        RecallConfig(**found.recall)
    except (MemRLError, TypeError) as error:
        raise InputError(f"{name}: recall is refused: {error}") from error
    return found


def _name(suite: Suite, world: str) -> str:
    return f"suite {suite.name}, world {world}" if world else f"suite {suite.name}"


def check_tasks(name: str, environment: Environment) -> None:
    """Make sure that there are tasks, all told apart by id and by text.

    Raises:
        InputError: They are not.
    """
    try:
        tasks = list(environment.tasks)
    except TypeError as error:
        raise InputError(
            f"{name}: tasks is a {type(environment.tasks).__name__}; expected a list of Task"
        ) from error
    if not tasks:
        raise InputError(f"{name}: there are no tasks; `tasks` is empty")
    seen: dict[tuple[str, str], int] = {}
    for place, task in enumerate(tasks):
        where = f"{name}, task {place + 1} of {len(tasks)}"
        if not isinstance(task, Task):
            raise InputError(f"{where} is a {type(task).__name__}; expected a Task")
        _passed(where, partial(check_name, "id", task.id))
        _passed(f"{where} ({task.id})", partial(check_name, "id", LONGEST_EPOCH + task.id))
        _passed(f"{where} ({task.id})", partial(check_text, "text", task.text))
        for what in ("id", "text"):
            other = seen.setdefault((what, getattr(task, what)), place)
            if other != place:
                raise InputError(
                    f"{where} ({task.id}) and task {other + 1} ({tasks[other].id}) have the same "
                    f"{what}; expected another one for each task"
                )


def check_trial(trial: Any, where: str) -> Trial:
    """What `act` returned, with its reward as a float.

    Args:
        trial: What was returned.
        where: The task and the arm, for the error.

    Raises:
        InputError: It is no Trial, or a field of it cannot be recorded or learned.
    """
    if not isinstance(trial, Trial):
        raise InputError(f"{where}: act returned a {type(trial).__name__}; expected a Trial")
    if not isinstance(trial.success, bool):
        raise InputError(f"{where}: success is {trial.success!r}; expected a bool: True or False")
    for name in ("answer", "trajectory", "lesson"):
        _passed(where, partial(check_text, name, getattr(trial, name), blank=True))
    for name in ("prompt_tokens", "completion_tokens", "calls"):
        _passed(where, partial(check_count, name, getattr(trial, name)))
    metadata = _passed(where, partial(check_metadata, trial.metadata))
    if trial.reward is None:
        return replace(trial, metadata=metadata)
    reward = _passed(where, partial(LEARNING.reward, trial.reward))
    return replace(trial, reward=reward, metadata=metadata)


def _passed(where: str, check: Callable[[], Any]) -> Any:
    try:
        return check()
    except MemRLError as error:
        raise InputError(f"{where}: {error}") from error
