"""One try at an operating-system task: its commands, what they gave, and all that as text."""

from dataclasses import dataclass, field
from typing import NamedTuple

from langchain_memrl.evals.benchmarks.attempts import KEPT, Attempt, cut
from langchain_memrl.evals.benchmarks.shells.forms import forms_of
from langchain_memrl.evals.benchmarks.shells.machine import LIMIT, Machine, Result
from langchain_memrl.evals.benchmarks.shells.tasks import OsTask

OUTPUT_LIMIT = 4000
"""Characters of an output that an agent sees."""
FIRST, FURTHER = "$ ", "> "
"""Begin the lines of a memory that hold a command, as in a terminal."""


class Step(NamedTuple):
    """A command, and what it gave."""

    command: str
    result: Result


@dataclass(slots=True, kw_only=True)
class OsAttempt(Attempt):
    """One try.

    Attributes:
        task: The task.
        machine: Its system.
        commands: The commands so far, with what they gave.
    """

    task: OsTask
    machine: Machine
    commands: list[Step] = field(default_factory=list)

    def run(self, command: str) -> Result:
        """Run a command; that is a step.

        Raises:
            StepLimitError: There is no step left.
        """
        self.step()
        result = self.machine.run(command)
        self.commands.append(Step(command.strip(), result))
        return result

    def done(self) -> str:
        """The commands and what they gave."""
        lines = []
        for step in self.commands:
            shown = show_result(step.result, KEPT).replace("\n", "\n  ")
            lines += [show_command(step.command), f"  {shown}"]
        return "\n".join(lines)


def show_command(command: str) -> str:
    """A command as a terminal shows it."""
    return FIRST + command.replace("\n", f"\n{FURTHER}")


def forms_in(experience: str) -> set[str]:
    """The forms of all commands in a memory."""
    lines = (line for line in experience.splitlines() if line.startswith((FIRST, FURTHER)))
    return forms_of("\n".join(line[2:] for line in lines))


def show_result(result: Result, limit: int = OUTPUT_LIMIT) -> str:
    """What an agent sees of a result; what is cut off is said."""
    output = cut(result.output.strip("\n"), limit)
    lost = f" [... {result.lost} bytes more]" if result.lost else ""
    told = (
        f"not finished after {LIMIT:g} s, still running"
        if result.code is None
        else f"exit code {result.code}"
    )
    return f"{output}{lost}\n({told})".lstrip("\n")
