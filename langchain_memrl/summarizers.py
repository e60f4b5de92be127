"""What an episode taught, in a few sentences: attempt -> lesson.

A summarizer is any callable, sync or async, that takes an `Attempt` and returns the lesson, or
None to keep the trajectory raw.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_memrl import prompts
from langchain_memrl.errors import SummaryError
from langchain_memrl.evaluators import NO_STREAM
from langchain_memrl.fencing import quote
from langchain_memrl.inputs import check_text
from langchain_memrl.types import Outcome

LESSON_LIMIT = 8_000
"""Bytes; a longer "lesson" is not a summary."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One finished episode.

    Attributes:
        intent: The task text.
        trajectory: What the agent did, verbatim.
        answer: The text of its last message.
        outcome: `"success"`, `"failure"` or `"unknown"`.
        reward: The reward it got.
        fence_key: The bank's random key; prompts that quote the texts make their fence from it.
            None takes a key of the summariser's own, so that no two processes write the same fence.
    """

    intent: str = field(repr=False)
    trajectory: str = field(repr=False)
    answer: str = field(repr=False)
    outcome: Outcome
    reward: float | None
    fence_key: bytes | None = field(default=None, repr=False, compare=False)


Summarizer = Callable[[Attempt], str | Awaitable[str | None] | None]


def verbatim(attempt: Attempt) -> str | None:
    """The agent's last answer, unchanged; None where it is too long or blank. No model call."""
    try:
        return check_lesson(attempt.answer)
    except SummaryError:
        return None


class LLMSummarizer:
    """A chat model writes a lesson on success and a reflection on failure.

    One model call per episode, whose tokens never appear in the graph's message stream. The task
    and what was done are quoted, inside a fence that their authors cannot know.

    Args:
        model: Any chat model.
    """

    def __init__(self, model: BaseChatModel) -> None:
        self._model = model
        self._key = secrets.token_bytes(32)

    def __call__(self, attempt: Attempt) -> str:
        """The lesson of one attempt."""
        return self._lesson(self._model.invoke(self._prompt(attempt), {"tags": [NO_STREAM]}))

    async def acall(self, attempt: Attempt) -> str:
        """The same, awaited."""
        reply = await self._model.ainvoke(self._prompt(attempt), {"tags": [NO_STREAM]})
        return self._lesson(reply)

    def _prompt(self, attempt: Attempt) -> list[BaseMessage]:
        request = {
            "success": prompts.LESSON_SUCCESS,
            "failure": prompts.LESSON_FAILURE,
            "unknown": prompts.LESSON_UNKNOWN,
        }[attempt.outcome]
        record = prompts.LESSON_RECORD.format(intent=attempt.intent, trajectory=attempt.trajectory)
        key = self._key if attempt.fence_key is None else attempt.fence_key
        quoted = quote("record", record, key, prompts.LESSON_INTRO)
        reward = prompts.LESSON_REWARD.format(reward=attempt.reward)
        return [
            SystemMessage(f"{prompts.LESSON_SYSTEM}\n\n{request}"),
            HumanMessage(f"{quoted}\n\n{reward}"),
        ]

    @staticmethod
    def _lesson(reply: AIMessage) -> str:
        if _was_cut_off(reply.response_metadata):
            raise SummaryError("the summary was cut off at the model's token limit")
        return str(reply.text).strip()


def _was_cut_off(metadata: Mapping[str, Any]) -> bool:
    """Whether a reply ended at the token limit; every provider says so in its own words."""
    keys = ("finish_reason", "stop_reason", "stopReason", "done_reason")
    reasons = {str(metadata.get(key)).lower() for key in keys}
    return bool(reasons & {"length", "max_tokens"}) or metadata.get("status") == "incomplete"


def check_lesson(lesson: Any) -> str | None:
    """A summariser's reply as a lesson that can be stored; None stays None.

    Raises:
        SummaryError: Not a text, blank, with characters no store keeps, or over 8,000 bytes.
    """
    if lesson is None:
        return None
    try:
        return check_text("the summary", lesson, limit=LESSON_LIMIT)
    except ValueError as error:
        raise SummaryError(str(error)) from error
