"""A chat model and a question: one reply."""

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_memrl.evals.benchmarks.conversing import Conversing
from langchain_memrl.evals.benchmarks.exams.attempt import ExamAttempt
from langchain_memrl.evals.benchmarks.exams.grading import read_answer


class ConversingInExam(Conversing[ExamAttempt]):
    """A chat model with memories in its prompt, which has one reply."""

    def opening(self, attempt: ExamAttempt) -> list[BaseMessage]:
        """The rules, then the question."""
        return [
            SystemMessage(self._prompts["SYSTEM"]),
            HumanMessage(self._prompts["TASK"].format(question=attempt.instruction)),
        ]

    def perform(self, reply: str, attempt: ExamAttempt) -> str | None:
        """Keep the reply and its answer."""
        attempt.reply = reply
        attempt.commit(read_answer(reply))
        return None
