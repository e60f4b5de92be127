"""A chat model that says what a test tells it to say."""

import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import InstanceOf, PrivateAttr

Response = str | InstanceOf[AIMessage] | InstanceOf[Exception]


class ScriptedChatModel(BaseChatModel):
    """Answers from a script and keeps what it was asked; for tests, without a network.

    An entry of the script is a text, an `AIMessage` (with tool calls, usage, whatever a test
    needs) or an exception, which is raised. `with_structured_output` works the way it does for a
    model that calls tools: script an `AIMessage` whose tool call has the schema's name and fields.
    Calls from several threads each get an entry of their own.

    Attributes:
        responses: the entries in order, or a function from the messages to an entry.
        cycle: start again after the last entry instead of complaining.

    Example:
        >>> model = ScriptedChatModel(responses=["Hold the button.", TimeoutError("busy")])
        >>> model.invoke("How do I reset it?").text
        'Hold the button.'
        >>> model.calls[0][0].content
        'How do I reset it?'
    """

    responses: Sequence[Response] | Callable[[list[BaseMessage]], Response]
    cycle: bool = False

    _calls: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def calls(self) -> list[list[BaseMessage]]:
        """The message lists received so far, oldest first, failed calls included."""
        with self._lock:
            return list(self._calls)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Accept tools; whether one is called is up to the script."""
        return self.bind(tools=list(tools), tool_choice=tool_choice, **kwargs)

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        with self._lock:
            position = len(self._calls)
            self._calls.append(list(messages))
        script = self.responses
        entry = script(messages) if callable(script) else self._entry(script, position)
        if isinstance(entry, Exception):
            raise entry
        if isinstance(entry, AIMessage):
            return entry.model_copy(deep=True)
        return AIMessage(content=entry)

    def _entry(self, entries: Sequence[Response], position: int) -> Response:
        if self.cycle and entries:
            return entries[position % len(entries)]
        if position >= len(entries):
            raise IndexError(
                f"The script has {len(entries)} responses, and this is call {position + 1}. "
                "Add responses, or pass cycle=True."
            )
        return entries[position]

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(self._next(messages)):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(self._next(messages)):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    """Cut a message into words; its tool calls, usage and metadata travel in the last chunk."""
    content = message.content
    words = re.findall(r"\s*\S+\s*$|\s*\S+", content) if isinstance(content, str) else []
    for word in words[:-1]:
        yield ChatGenerationChunk(message=AIMessageChunk(content=word, id=message.id))
    last = AIMessageChunk(
        content=words[-1] if words else content,
        id=message.id,
        tool_call_chunks=_tool_call_chunks(message),
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        additional_kwargs=message.additional_kwargs,
        chunk_position="last",
    )
    yield ChatGenerationChunk(message=last)


def _tool_call_chunks(message: AIMessage) -> list[ToolCallChunk]:
    return [
        tool_call_chunk(
            name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=position
        )
        for position, call in enumerate(message.tool_calls)
    ]
