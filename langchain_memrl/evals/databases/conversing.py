"""A chat model tries the tasks: it thinks, runs a statement, reads what came, and answers."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_memrl.errors import SummaryError
from langchain_memrl.evals.asking import Reply, say, with_memories
from langchain_memrl.evals.databases.agents import Agent
from langchain_memrl.evals.databases.attempt import Attempt, StepLimitError, describe, show_result
from langchain_memrl.evals.environment import Situation
from langchain_memrl.summarizers import Attempt as Finished
from langchain_memrl.summarizers import LLMSummarizer, check_lesson
from langchain_memrl.types import Outcome

ACTION = re.compile(r"Action:\s*(Operation|Answer)", re.IGNORECASE)
STATEMENT = re.compile(r"```(?:sql)?\s*(.*?)\s*(?:```|$)", re.DOTALL | re.IGNORECASE)
ANSWER = re.compile(r"Final Answer:\s*(.*)", re.DOTALL | re.IGNORECASE)


class Move(NamedTuple):
    """What a reply does: it runs a statement, commits an answer, or neither can be read off it."""

    statement: str | None = None
    answer: str | None = None


def read_move(reply: str) -> Move:
    """Read the first action of a reply."""
    action = ACTION.search(reply)
    if action is None:
        return Move()
    rest = reply[action.end() :]
    if action[1].lower() == "operation":
        found = STATEMENT.search(rest)
        return Move(statement=found[1] if found and found[1] else None)
    found = ANSWER.search(rest)
    return Move(answer=found[1].strip() if found else None)


class Conversing(Agent):
    """A chat model with memories in its prompt.

    A reply without a readable action ends the try, as the benchmark has it.

    Args:
        model: Any chat model, or a function of the prompt.
        prompts: The texts of `prompts.PROMPTS`.
        server: The kind of server, which the prompt names.
    """

    def __init__(self, model: Any, prompts: Mapping[str, str], server: str) -> None:
        self._model = model
        self._prompts = prompts
        self._server = server

    def play(self, situation: Situation, attempt: Attempt) -> None:
        """Talk until an answer is committed, a reply cannot be read or the steps are used up."""
        prompt = with_memories(self._opening(attempt), situation.memories, "fenced")
        for left in range(attempt.steps - 1, -1, -1):
            reply = self._say(prompt, attempt, sample=situation.sample)
            move = read_move(reply)
            if move.answer is not None:
                attempt.commit(move.answer)
                return
            if move.statement is None:
                attempt.unread = reply or "(nothing)"
                return
            result = show_result(attempt.run(move.statement))
            told = self._prompts["RESULT"].format(result=result, left=left)
            prompt += [AIMessage(reply), HumanMessage(told)]
        raise StepLimitError

    def lesson(self, situation: Situation, attempt: Attempt, solved: bool) -> str:
        """What the model itself makes of the try; empty where that is no lesson."""
        outcome: Outcome = "success" if solved else "failure"
        finished = Finished(
            attempt.task.instruction,
            attempt.as_text(),
            attempt.answer or "",
            outcome,
            1.0 if solved else -1.0,
        )
        summarize = LLMSummarizer(cast(Any, _Counted(self, attempt)))
        try:
            return check_lesson(summarize(finished)) or ""
        except SummaryError:
            return ""

    def _opening(self, attempt: Attempt) -> list[BaseMessage]:
        task = attempt.task
        values = {"server": self._server, "steps": attempt.steps}
        asked = {"instruction": task.instruction, "table": describe(task.table)}
        return [
            SystemMessage(self._prompts["SYSTEM"].format(**values)),
            HumanMessage(self._prompts["TASK"].format(**asked)),
        ]

    def _say(self, prompt: Sequence[BaseMessage], attempt: Attempt, *, sample: bool) -> str:
        reply: Reply = say(self._model, prompt, sample=sample)
        attempt.prompt_tokens += reply.prompt_tokens
        attempt.completion_tokens += reply.completion_tokens
        attempt.calls += 1
        return reply.text


class _Counted:
    """The model of an attempt, whose calls the attempt counts."""

    def __init__(self, agent: Conversing, attempt: Attempt) -> None:
        self._agent = agent
        self._attempt = attempt

    def invoke(self, prompt: Sequence[BaseMessage], config: Any = None) -> AIMessage:
        return AIMessage(self._agent._say(prompt, self._attempt, sample=False))
