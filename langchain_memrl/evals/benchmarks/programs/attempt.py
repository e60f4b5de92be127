"""One try at a programming task: the program, and what its tests said."""

import re
from dataclasses import dataclass

from langchain_memrl.evals.benchmarks.attempts import KEPT, Attempt, cut
from langchain_memrl.evals.benchmarks.programs.tasks import ProgramTask

PROGRAM_KEPT = 6000
"""Characters of a program that a memory keeps; the longest right one of the benchmark has 3,300."""
FENCE = re.compile(r"```python\n(.*?)\n```", re.S)


@dataclass(slots=True, kw_only=True)
class ProgramAttempt(Attempt):
    """One try. Its answer is the program.

    Attributes:
        task: The task.
        report: What the tests said.
    """

    task: ProgramTask
    report: str = ""

    def done(self) -> str:
        """The program and what its tests said."""
        if self.answer is None:
            return ""
        return f"{fenced(cut(self.answer, PROGRAM_KEPT))}\nTests: {self.report}"

    def as_text(self) -> str:
        """What a memory keeps of it."""
        unread = f"No program could be read in: {cut(self.unread, KEPT)}" if self.unread else ""
        return "\n".join(filter(None, [self.done(), unread, self.correction]))


def fenced(program: str) -> str:
    """A program as a memory shows it."""
    return f"```python\n{program.strip()}\n```"


def programs_in(memory: str) -> list[str]:
    """The programs that a memory shows."""
    return FENCE.findall(memory)
