"""What agents without a model can do in a household."""

import random
from collections.abc import Iterable, Sequence

from langchain_memrl.errors import InputError
from langchain_memrl.evals.benchmarks.agents import Script
from langchain_memrl.evals.benchmarks.households.attempt import COMMAND, GameAttempt
from langchain_memrl.evals.benchmarks.households.forms import form_of

DEEDS = ("heat", "cool", "clean", "use")
"""Verbs that tell one kind of task from another; a task without any of them moves things."""


class HouseholdScript(Script[GameAttempt]):
    """Commands of the stored walkthrough; a memory shows the forms of its commands."""

    def solve(self, attempt: GameAttempt) -> None:
        """Walk through the game."""
        _carry_out(walkthrough_of(attempt), attempt)

    def guess(self, attempt: GameAttempt, rng: random.Random) -> None:
        """Do whatever is possible, until the game is won or the steps are used up."""
        while not attempt.seen.won:
            attempt.do(rng.choice(attempt.seen.commands))

    def recite(self, attempt: GameAttempt, memories: Sequence[str]) -> None:
        """Walk through the game as far as memories show how; leave out all other commands."""
        known = {form for memory in memories for form in forms_in(memory)}
        walk = walkthrough_of(attempt)
        _carry_out((command for command in walk if form_of(command) in known), attempt)

    def fits(self, attempt: GameAttempt, memory: str) -> bool:
        """Whether a memory shows the deed that this task needs, and none of another kind."""
        return _deeds(forms_in(memory)) == _deeds(map(form_of, walkthrough_of(attempt)))

    def truth(self, attempt: GameAttempt) -> str:
        """The walkthrough."""
        return "\n".join(f"{COMMAND}{command}" for command in walkthrough_of(attempt))


def walkthrough_of(attempt: GameAttempt) -> tuple[str, ...]:
    """The commands that win a game.

    Raises:
        InputError: Its file has none.
    """
    if not attempt.game.walkthrough:
        raise InputError(
            f"{attempt.game.id} has no walkthrough, and agents without a model follow it; take "
            "the official json_2.1.1, or --agent model"
        )
    return attempt.game.walkthrough


def forms_in(experience: str) -> set[str]:
    """The forms of all commands in a memory."""
    lines = (line for line in experience.splitlines() if line.startswith(COMMAND))
    return {form_of(line.removeprefix(COMMAND)) for line in lines}


def _carry_out(commands: Iterable[str], attempt: GameAttempt) -> None:
    for command in commands:
        if attempt.do(command).won:
            return


def _deeds(forms: Iterable[str]) -> set[str]:
    return {form.split(" ")[0] for form in forms} & set(DEEDS)
