"""One try at a game: its commands, what the game said, and all that as text."""

from dataclasses import dataclass, field
from typing import NamedTuple

from langchain_memrl.evals.benchmarks.attempts import KEPT, Attempt, cut
from langchain_memrl.evals.benchmarks.households.games import Game
from langchain_memrl.evals.benchmarks.households.houses import House, Seen

BANNER = "-= Welcome to TextWorld, ALFRED! =-"
TASK = "Task: "
COMMAND = "> "
"""Begins a line of a memory that holds a command."""
WON = "won"


class Step(NamedTuple):
    """A command, and what the game said to it."""

    command: str
    text: str


@dataclass(slots=True, kw_only=True)
class GameAttempt(Attempt):
    """One try.

    Attributes:
        game: The game.
        house: Where it is played.
        seen: What it showed last.
        commands: The commands so far, with what the game said.
    """

    game: Game
    house: House
    seen: Seen
    commands: list[Step] = field(default_factory=list)

    def do(self, command: str) -> Seen:
        """Give a command, possible or not; that is a step. A game that is won is over.

        Raises:
            StepLimitError: There is no step left.
        """
        self.step()
        command = " ".join(command.split())
        self.seen = self.house.do(command)
        self.commands.append(Step(command, self.seen.text))
        if self.seen.won:
            self.answer = WON
        return self.seen

    def done(self) -> str:
        """The goal, the commands and what the game said."""
        lines = [f"{TASK}{self.game.goal}"]
        for step in self.commands:
            lines += [f"{COMMAND}{step.command}", cut(" ".join(step.text.split()), KEPT)]
        return "\n".join(lines)


def opening_of(seen: Seen) -> str:
    """The room and the goal, without the engine's greeting."""
    return seen.text.removeprefix(BANNER).strip()
