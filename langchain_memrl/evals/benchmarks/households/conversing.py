"""A chat model in a household: a thought and a command per reply."""

import re

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_memrl.evals.benchmarks.conversing import Conversing
from langchain_memrl.evals.benchmarks.households.attempt import GameAttempt, opening_of

ACTION = re.compile(r"Action:[ \t]*(.*)", re.IGNORECASE)
AROUND = " \t`*\"'."
"""What models like to put around a command."""


def read_command(reply: str) -> str:
    """The command of a reply: what stands behind its first `Action:`, else all of it.

    What is no command is given to the game all the same, which says that nothing happens: so has
    MemRL's released code.
    """
    found = ACTION.search(reply)
    return (reply if found is None else found[1]).strip(AROUND + "\n")


class ConversingInHousehold(Conversing[GameAttempt]):
    """A chat model with memories in its prompt. Only a won game or the last step ends a try."""

    def opening(self, attempt: GameAttempt) -> list[BaseMessage]:
        """The rules, then the room and the goal as the game tells them."""
        rules = self._prompts["SYSTEM"].format(steps=attempt.steps)
        task = self._prompts["TASK"].format(observation=opening_of(attempt.seen))
        return [SystemMessage(rules), HumanMessage(task)]

    def perform(self, reply: str, attempt: GameAttempt) -> str | None:
        """Give the command to the game."""
        seen = attempt.do(read_command(reply))
        return None if seen.won else seen.text
