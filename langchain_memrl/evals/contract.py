"""What every suite has to keep, as one call for the tests of one's own suite."""

from collections.abc import Callable
from functools import partial
from typing import Any

from langchain_memrl.errors import InputError, MemRLError
from langchain_memrl.evals.arms import ARMS
from langchain_memrl.evals.environment import Setup, Suite
from langchain_memrl.evals.loop import records
from langchain_memrl.evals.running.checking import make_environment
from langchain_memrl.evals.settings import RunSettings

TASKS = 4


def check_suite(suite: Suite, *, model: Any = None) -> None:
    """Make every world twice and run a few tasks with and without memory.

    ```python
    def test_my_suite_keeps_the_contract():
        check_suite(SUITE)
    ```

    Args:
        suite: The suite.
        model: The chat model it asks, if it asks one; a scripted one will do.

    Raises:
        InputError: What the suite does not keep, in one sentence.
    """
    for world in (*suite.worlds, *suite.stress):
        name = f"{suite.name} {world}".strip()
        setup = Setup(world, 0, TASKS, model)
        first, second = (make_environment(suite, setup) for _ in range(2))
        if list(first.tasks) != list(second.tasks) or list(first.notes) != list(second.notes):
            raise InputError(f"{name}: the same seed gave other tasks or notes")
    _checked(suite.name, "a run", partial(_check_run, suite, model))


def _check_run(suite: Suite, model: Any) -> None:
    """Two epochs of a few tasks; what the bank refuses is an error of the suite."""
    names = ["none", "memrl", *(["oracle"] if suite.knows_truth else [])]
    settings = RunSettings(
        tuple(ARMS[name] for name in names),
        worlds=suite.worlds[:1],
        seeds=1,
        epochs=2,
        batch=2,
        tasks=TASKS,
        attempts=1,
        patience=1,
    )
    for _ in records(suite, settings, model):
        pass


def _checked(name: str, what: str, call: Callable[[], Any]) -> None:
    try:
        call()
    except (MemRLError, TypeError) as error:
        raise InputError(f"{name}: {what} is refused: {error}") from error
