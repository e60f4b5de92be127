"""What the graph and the middleware share: task, prompt, judgement, lesson."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_memrl.callables import acall, call
from langchain_memrl.config import LearningConfig
from langchain_memrl.errors import ConfigError, InputError
from langchain_memrl.evaluators import Evaluator, settle
from langchain_memrl.inputs import TEXT_LIMIT, is_blank
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.rendering import Render, check_render, to_prompt
from langchain_memrl.summarizers import (
    Attempt,
    LLMSummarizer,
    Summarizer,
    check_lesson,
    verbatim,
)
from langchain_memrl.types import ShownMemory, Verdict

logger = logging.getLogger("langchain_memrl")

State = Mapping[str, Any]
NO_ANSWER = "(no answer)"


class Learner:
    """The settings of a learning loop and the steps that touch no memory.

    Args:
        memory: Where the loop learns.
        evaluator: Judges an answer; `"human"` is left to whoever can wait for a person.
        summarizer: Writes the lesson; None uses the agent itself where it is a chat model.
        agent: What acts; only looked at for the default summarizer.
        intent: Finds the task text in the state; the last human message by default.
        render: How memories enter the prompt.
        max_memory_tokens: Budget of the memories in one prompt.

    Raises:
        ConfigError: A setting is unusable.
    """

    def __init__(
        self,
        memory: EpisodicMemory,
        *,
        evaluator: Evaluator | str,
        summarizer: Summarizer | None,
        agent: Any = None,
        intent: Callable[[Any], str] | None = None,
        render: Render = "fenced",
        max_memory_tokens: int = 1500,
    ) -> None:
        if type(max_memory_tokens) is not int or max_memory_tokens < 1:
            raise ConfigError(
                f"max_memory_tokens is {max_memory_tokens!r}; expected a whole number of at least 1"
            )
        if not callable(evaluator) and evaluator != "human":
            raise ConfigError(
                f'evaluator is a {type(evaluator).__name__}; expected a callable or "human"'
            )
        if summarizer is not None and not callable(summarizer):
            raise ConfigError(
                f"summarizer is a {type(summarizer).__name__}; expected a callable or None: "
                "a chat model writes lessons through LLMSummarizer(model)"
            )
        if intent is not None and not callable(intent):
            raise ConfigError(f"intent is a {type(intent).__name__}; expected a callable or None")
        self.memory = memory
        self.evaluator = evaluator
        self.max_memory_tokens = max_memory_tokens
        self._render = check_render(render)
        self._intent = intent or last_human_text
        self._summarizer = summarizer or _default_summarizer(agent)

    def task(self, state: State) -> str:
        """The task text of a state.

        Raises:
            InputError: There is none, or it is blank.
        """
        text = self._intent(state)
        if not isinstance(text, str):
            raise InputError(f"intent returned a {type(text).__name__}; expected the task as a str")
        if is_blank(text):
            raise InputError(
                "the task is blank, so nothing could be learned from it; "
                "pass intent=callable where the task is not the text of the last human message"
            )
        return str(text)  # the text of a message is a subclass of str

    def prompt(
        self, messages: Sequence[BaseMessage], memories: Sequence[ShownMemory]
    ) -> list[BaseMessage]:
        """The conversation with the memories in it."""
        return to_prompt(messages, memories, self._render, self.memory.fence_key)

    def redacted(self, state: State) -> State:
        """The state as it may be summarised and stored; its intent was redacted when recalled."""
        redact = self.memory.redactor.text
        return {**state, **{name: redact(name, state[name]) for name in ("trajectory", "answer")}}

    async def aredacted(self, state: State) -> State:
        """The same, awaited; the caller's function does not run on the event loop."""
        given = self.memory.redactor.is_given
        return await asyncio.to_thread(self.redacted, state) if given else state

    def redacted_lesson(self, lesson: str | None, attempt: Attempt) -> str | None:
        """A lesson as it may be stored; one that repeats a redacted text is that text."""
        return _redacted_lesson(self.memory, lesson, attempt)

    async def aredacted_lesson(self, lesson: str | None, attempt: Attempt) -> str | None:
        """The same, awaited."""
        if not self.memory.redactor.is_given:
            return lesson
        return await asyncio.to_thread(self.redacted_lesson, lesson, attempt)

    def judge(self, state: State) -> Verdict:
        """The evaluator's verdict, with the reward in the bank's range."""
        return settle(call(self._evaluate, state), self.learning())

    async def ajudge(self, state: State) -> Verdict:
        """The same, awaited."""
        judgement = await acall(self._evaluate, state)
        return settle(judgement, await self.alearning())

    def learning(self) -> LearningConfig:
        """The bank's learning settings as they are now."""
        return self.memory.learning

    async def alearning(self) -> LearningConfig:
        """The same; the disk is not read on the event loop."""
        return await asyncio.to_thread(self.learning)

    @property
    def _evaluate(self) -> Evaluator:
        if isinstance(self.evaluator, str):
            raise ConfigError('evaluator "human" needs a graph, which can wait for a person')
        return self.evaluator

    def lesson(self, attempt: Attempt) -> str | None:
        """The summariser's lesson; None keeps the trajectory raw.

        Raises:
            SummaryError: The reply is no lesson.
        """
        return check_lesson(call(self._summarizer, self._with_key(attempt)))

    async def alesson(self, attempt: Attempt) -> str | None:
        """The same, awaited."""
        return check_lesson(await acall(self._summarizer, self._with_key(attempt)))

    def _with_key(self, attempt: Attempt) -> Attempt:
        return replace(attempt, fence_key=self.memory.fence_key)


def _redacted_lesson(memory: EpisodicMemory, lesson: str | None, attempt: Attempt) -> str | None:
    if lesson in (attempt.answer, attempt.trajectory):
        return lesson
    redacted: str | None = memory.redactor.text("lesson", lesson)
    return redacted


def _default_summarizer(agent: Any) -> Summarizer:
    if isinstance(agent, BaseChatModel):
        logger.info("no summarizer given: the agent's own model writes the lessons")
        return LLMSummarizer(agent)
    logger.info("no summarizer given: lessons are the agent's answers, verbatim")
    return verbatim


def last_human_text(state: State) -> str:
    """The text of the last human message.

    Raises:
        InputError: There is no human message.
    """
    for message in reversed(state.get("messages") or []):
        if isinstance(message, HumanMessage):
            return str(message.text)
    raise InputError(
        "the state has no human message to take the task from; "
        "add one, or pass intent=callable that finds the task"
    )


def answer_of(messages: Sequence[BaseMessage]) -> str:
    """The text of the last AI message; of the last message where that has none.

    A tool that returns directly, or structured output, ends a run with its own message.
    """
    answers = [message for message in messages if isinstance(message, AIMessage)]
    return next((str(m.text) for m in (*answers[-1:], *messages[-1:]) if m.text), "")


def trajectory_text(messages: Sequence[BaseMessage]) -> str:
    """What an agent did, as text: its answer alone, or one line per step.

    A text over the store's limit loses its middle, and says so.
    """
    if len(messages) == 1 and isinstance(messages[0], AIMessage) and not messages[0].tool_calls:
        text = str(messages[0].text)
    else:
        text = "\n".join(line for message in messages for line in _lines(message))
    text = text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
    return NO_ANSWER if is_blank(text) else _within_limit(text)


def _lines(message: BaseMessage) -> list[str]:
    """One message of a trajectory."""
    name = f" {message.name}" if isinstance(message, ToolMessage) and message.name else ""
    lines = [f"{message.type}{name}: {message.text}"] if message.text else []
    if isinstance(message, AIMessage):
        lines += [
            f"ai calls {tool['name']}({json.dumps(tool['args'], ensure_ascii=False, default=str)})"
            for tool in message.tool_calls
        ]
    return lines


def _within_limit(text: str) -> str:
    size = len(text.encode())
    if size <= TEXT_LIMIT:
        return text
    half = TEXT_LIMIT // 2 - 100
    data = text.encode()
    head, tail = data[:half].decode("utf-8", "ignore"), data[-half:].decode("utf-8", "ignore")
    return f"{head}\n[... {size - 2 * half} bytes left out ...]\n{tail}"


def summarize_pending(
    memory: EpisodicMemory, summarizer: Summarizer, *, limit: int | None = None
) -> int:
    """Give raw memories their lessons, oldest waiting last; Q and history stay.

    Args:
        memory: The bank, or its view of one namespace.
        summarizer: Writes the lessons.
        limit: How many at most; None for all that wait.

    Returns:
        How many got a lesson.

    Raises:
        SummaryError: A reply is no lesson; the memories before it keep theirs.
    """
    done = 0
    for raw in memory.list(raw=True, limit=limit):
        texts = (raw.intent, raw.trajectory, raw.trajectory)
        attempt = Attempt(*texts, raw.outcome, None, memory.fence_key)
        lesson = _redacted_lesson(memory, check_lesson(call(summarizer, attempt)), attempt)
        if lesson is not None:
            memory.already_redacted().update(raw.id, lesson=lesson)
            done += 1
    return done
