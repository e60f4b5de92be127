"""A chat model and a shell: it runs scripts until it says that it is finished."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_memrl.evals.benchmarks.conversing import Conversing
from langchain_memrl.evals.benchmarks.shells.attempt import OsAttempt, show_result

ACTION = re.compile(r"Action:\W*(Bash|Finish)", re.IGNORECASE)
SCRIPT = re.compile(r"```(?:bash|sh|shell)?[ \t]*\n(.*?)\s*(?:```|$)", re.DOTALL | re.IGNORECASE)


class Move(NamedTuple):
    """What a reply does: it runs a script, ends the try, or neither can be read off it."""

    script: str | None = None
    finished: bool = False


def read_move(reply: str) -> Move:
    """Read the first action of a reply."""
    action = ACTION.search(reply)
    if action is None:
        return Move()
    if action[1].lower() == "finish":
        return Move(finished=True)
    found = SCRIPT.search(reply, action.end())
    return Move(script=found[1] if found and found[1].strip() else None)


class ConversingWithShell(Conversing[OsAttempt]):
    """A chat model with memories in its prompt.

    A reply without a readable action ends the try, as the benchmark has it.

    Args:
        model: Any chat model, or a function of the prompt.
        prompts: The texts of `prompts.PROMPTS`.
        system: What the system calls itself, which the prompt names.
    """

    def __init__(self, model: Any, prompts: Mapping[str, str], system: str) -> None:
        super().__init__(model, prompts)
        self._system = system

    def opening(self, attempt: OsAttempt) -> list[BaseMessage]:
        """The rules, then the task."""
        values = {"system": self._system, "steps": attempt.steps}
        return [
            SystemMessage(self._prompts["SYSTEM"].format(**values)),
            HumanMessage(self._prompts["TASK"].format(instruction=attempt.instruction)),
        ]

    def perform(self, reply: str, attempt: OsAttempt) -> str | None:
        """Run a script, or end the try."""
        move = read_move(reply)
        if move.script is not None:
            return show_result(attempt.run(move.script))
        if move.finished:
            attempt.commit("done")
        else:
            attempt.unread = reply or "(nothing)"
        return None
