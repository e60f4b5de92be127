"""What agents without a model can do with a programming task."""

import random
from collections.abc import Sequence

from langchain_memrl.evals.benchmarks.agents import Script
from langchain_memrl.evals.benchmarks.programs.attempt import ProgramAttempt, fenced, programs_in
from langchain_memrl.evals.benchmarks.programs.forms import forms_of, without

VALUES = ("None", "True", "0", "1.0", "''", "[]", "{}", "()", "set()", "object()", "not_defined")
ENOUGH = 0.5
"""Share of a task's libraries that a memory of its kind shows."""


class ProgramScript(Script[ProgramAttempt]):
    """Programs made of statements; a memory shows which parts of libraries its programs use."""

    def solve(self, attempt: ProgramAttempt) -> None:
        """Hand in the right program."""
        attempt.commit(attempt.task.right)

    def guess(self, attempt: ProgramAttempt, rng: random.Random) -> None:
        """Return a value of some type."""
        attempt.commit(f"{attempt.task.beginning.rstrip()}\n    return {rng.choice(VALUES)}")

    def recite(self, attempt: ProgramAttempt, memories: Sequence[str]) -> None:
        """Write the statements whose libraries a memory shows, and leave out the others."""
        known = frozenset[str]().union(*map(forms_in, memories))
        attempt.commit(without(attempt.task.right, known))

    def fits(self, attempt: ProgramAttempt, memory: str) -> bool:
        """Whether a memory shows half of the libraries that the right program uses."""
        needed = forms_of(attempt.task.right)
        return len(needed & forms_in(memory)) >= ENOUGH * len(needed)

    def truth(self, attempt: ProgramAttempt) -> str:
        """The right program."""
        return fenced(attempt.task.right)


def forms_in(memory: str) -> frozenset[str]:
    """The forms in every program of a memory."""
    return frozenset[str]().union(*map(forms_of, programs_in(memory)))
