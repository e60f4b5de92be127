"""A chat model and a programming task: one reply, the whole program."""

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_memrl.evals.benchmarks.conversing import Conversing
from langchain_memrl.evals.benchmarks.programs.attempt import ProgramAttempt
from langchain_memrl.evals.benchmarks.programs.replies import read_program


class ConversingAboutPrograms(Conversing[ProgramAttempt]):
    """A chat model with memories in its prompt, which has one reply."""

    def opening(self, attempt: ProgramAttempt) -> list[BaseMessage]:
        """The rules, then the task."""
        return [
            SystemMessage(self._prompts["SYSTEM"]),
            HumanMessage(self._prompts["TASK"].format(instruction=attempt.instruction)),
        ]

    def perform(self, reply: str, attempt: ProgramAttempt) -> str | None:
        """Hand in the program of the reply."""
        program = read_program(reply, attempt.task.function)
        if program:
            attempt.commit(program)
        else:
            attempt.unread = reply or "(nothing)"
        return None
