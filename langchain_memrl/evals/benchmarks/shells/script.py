"""What agents without a model can do with a shell."""

import random
import re
from collections.abc import Sequence

from langchain_memrl.evals.benchmarks.agents import Script
from langchain_memrl.evals.benchmarks.shells.attempt import OsAttempt, forms_in, show_command
from langchain_memrl.evals.benchmarks.shells.forms import forms_of, parts_of, write

GUESSES = (
    "mkdir -p {path}",
    "touch {path}",
    "chmod {mode} {path}",
    "echo {name} > {path}",
    "rm -rf {path}",
    "useradd -m {name}",
    "addgroup {name}",
    "chown {name} {path}",
)
MODES = ("644", "755", "700", "640")
PATH = re.compile(r"/[\w./-]*\w")
NAME = re.compile(r"'(\w[\w.-]*)'")
ENOUGH = 0.5
"""Share of a solution's forms that a memory of the same kind shows."""


class ShellScript(Script[OsAttempt]):
    """Scripts made of parts; a memory shows the forms of the commands in it."""

    def solve(self, attempt: OsAttempt) -> None:
        """Run the right script."""
        attempt.run(attempt.task.truth)
        attempt.commit("done")

    def guess(self, attempt: OsAttempt, rng: random.Random) -> None:
        """Run one command with a path and a name that the task speaks of."""
        asked = attempt.instruction
        values = {
            "path": rng.choice(PATH.findall(asked) or ["/tmp/file"]),  # noqa: S108 - a guess
            "name": rng.choice(NAME.findall(asked) or ["user"]),
            "mode": rng.choice(MODES),
        }
        attempt.run(rng.choice(GUESSES).format(**values))
        attempt.commit("done")

    def recite(self, attempt: OsAttempt, memories: Sequence[str]) -> None:
        """Run the parts whose forms the memories show; without any give up."""
        known = {form for memory in memories for form in forms_in(memory)}
        parts = [part for part in parts_of(attempt.task.truth) if part.forms <= known]
        if not parts:
            attempt.commit("I do not know")
            return
        attempt.run(write(parts))
        attempt.commit("done")

    def fits(self, attempt: OsAttempt, memory: str) -> bool:
        """Whether a memory shows at least half of what the task needs."""
        needed = forms_of(attempt.task.truth)
        return len(needed & forms_in(memory)) >= ENOUGH * len(needed)

    def truth(self, attempt: OsAttempt) -> str:
        """The right script."""
        return show_command(attempt.task.truth)
