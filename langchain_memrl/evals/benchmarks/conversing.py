"""A chat model tries the tasks: it thinks, acts, reads what came, and ends when it is done."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_memrl.errors import SummaryError
from langchain_memrl.evals.asking import say, with_memories
from langchain_memrl.evals.benchmarks.agents import Agent
from langchain_memrl.evals.benchmarks.attempts import Attempt, StepLimitError
from langchain_memrl.evals.environment import Situation
from langchain_memrl.summarizers import Attempt as Finished
from langchain_memrl.summarizers import LLMSummarizer, check_lesson
from langchain_memrl.types import Outcome

A = TypeVar("A", bound=Attempt)


class Conversing(Agent[A]):
    """A chat model with memories in its prompt.

    Args:
        model: Any chat model, or a function of the prompt.
        prompts: The texts of the suite; `RESULT` has places for `{result}` and `{left}`.
    """

    def __init__(self, model: Any, prompts: Mapping[str, str]) -> None:
        self._model = model
        self._prompts = prompts

    @abstractmethod
    def opening(self, attempt: A) -> list[BaseMessage]:
        """What the model is told first, the task last."""

    @abstractmethod
    def perform(self, reply: str, attempt: A) -> str | None:
        """Do what a reply says.

        Returns:
            What came of it, for the model to read; None where the try is over.
        """

    def play(self, situation: Situation, attempt: A) -> None:
        """Talk until the try is over or the steps are used up."""
        prompt = with_memories(self.opening(attempt), situation.memories, "fenced")
        while attempt.taken < attempt.steps:
            reply = self.say(prompt, attempt, sample=situation.sample)
            result = self.perform(reply, attempt)
            if result is None:
                return
            left = attempt.steps - attempt.taken
            told = self._prompts["RESULT"].format(result=result, left=left)
            prompt += [AIMessage(reply), HumanMessage(told)]
        raise StepLimitError

    def lesson(self, situation: Situation, attempt: A, solved: bool) -> str:
        """What the model itself makes of the try; empty where that is no lesson."""
        outcome: Outcome = "success" if solved else "failure"
        finished = Finished(
            attempt.instruction,
            attempt.as_text(),
            attempt.answer or "",
            outcome,
            1.0 if solved else -1.0,
            b"",  # the same prompt in every run
        )
        summarize = LLMSummarizer(cast(Any, _CountedModel(self, attempt)))
        try:
            return check_lesson(summarize(finished)) or ""
        except SummaryError:
            return ""

    def say(self, prompt: Sequence[BaseMessage], attempt: A, *, sample: bool) -> str:
        """Ask the model, and count it."""
        reply = say(self._model, prompt, sample=sample)
        attempt.prompt_tokens += reply.prompt_tokens
        attempt.completion_tokens += reply.completion_tokens
        attempt.calls += 1
        return reply.text


class _CountedModel:
    """The model of an attempt, whose calls the attempt counts."""

    def __init__(self, agent: Conversing[Any], attempt: Attempt) -> None:
        self._agent = agent
        self._attempt = attempt

    def invoke(self, prompt: Sequence[BaseMessage], config: Any = None) -> AIMessage:
        return AIMessage(self._agent.say(prompt, self._attempt, sample=False))
