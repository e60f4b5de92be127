"""What agents without a model can do in an exam: know the answers, or guess."""

import random
from collections.abc import Sequence

from langchain_memrl.evals.benchmarks.agents import Script
from langchain_memrl.evals.benchmarks.exams.attempt import ExamAttempt

LETTERS = "ABCDE"
GUESSES = ("0", "1", "2", "pi", "infinity", "yes", "no")
MEANINGLESS = (
    "hle has no agent {agent}: its questions share no forms that a memory of one could show for "
    "another; take model, oracle or random"
)


class ExamScript(Script[ExamAttempt]):
    """Answers. No memory of one question holds a part of the answer to another."""

    def solve(self, attempt: ExamAttempt) -> None:
        """Give the right answer."""
        attempt.commit(attempt.item.answer)

    def guess(self, attempt: ExamAttempt, rng: random.Random) -> None:
        """Give a letter, or one of a few short answers."""
        attempt.commit(rng.choice(LETTERS if attempt.item.chosen else GUESSES))

    def recite(self, attempt: ExamAttempt, memories: Sequence[str]) -> None:
        """Know nothing; the suite refuses agents that recite, because this is all they could do."""
        attempt.commit("I do not know")

    def fits(self, attempt: ExamAttempt, memory: str) -> bool:
        """Never."""
        return False

    def truth(self, attempt: ExamAttempt) -> str:
        """The right answer."""
        return attempt.item.answer
