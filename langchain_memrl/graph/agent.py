"""Running whatever acts: a chat model, any Runnable, or a compiled graph."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from langgraph.pregel.protocol import PregelProtocol

from langchain_memrl.errors import ConfigError

MEMORY_ID = "memrl-memory-"
"""How the ids of messages begin that entered a prompt only to show memories."""


class Agent:
    """Takes a prompt as messages and returns the messages that were added.

    A graph gets `{"messages": prompt}` and may act over many steps; everything else gets the
    messages themselves. Returned may be a message, a str, a list of messages, or a dict with
    `messages`.

    Args:
        runnable: The chat model, Runnable, compiled graph or plain callable.

    Raises:
        ConfigError: It cannot be called.
    """

    def __init__(self, runnable: Any) -> None:
        if not isinstance(runnable, Runnable):
            if not callable(runnable):
                raise ConfigError(
                    f"agent is a {type(runnable).__name__}; expected a chat model, a Runnable, "
                    "a compiled graph or a callable"
                )
            runnable = RunnableLambda(runnable)
        self._runnable: Runnable[Any, Any] = runnable
        self._is_graph = _is_graph(runnable)

    def invoke(self, prompt: Sequence[BaseMessage], config: RunnableConfig) -> list[BaseMessage]:
        """The messages the agent added to the prompt; every message of the prompt has an id."""
        return self._added(prompt, self._runnable.invoke(self._input(prompt), config))

    async def ainvoke(
        self, prompt: Sequence[BaseMessage], config: RunnableConfig
    ) -> list[BaseMessage]:
        """The same, awaited."""
        return self._added(prompt, await self._runnable.ainvoke(self._input(prompt), config))

    def _input(self, prompt: Sequence[BaseMessage]) -> Any:
        return {"messages": list(prompt)} if self._is_graph else list(prompt)

    @staticmethod
    def _added(prompt: Sequence[BaseMessage], output: Any) -> list[BaseMessage]:
        if isinstance(output, dict) and "messages" in output:
            output = output["messages"]
        if isinstance(output, str):
            return [AIMessage(output)]
        if isinstance(output, BaseMessage):
            return [output]
        if isinstance(output, list) and all(isinstance(item, BaseMessage) for item in output):
            given = {message.id for message in prompt}
            return [message for message in output if not _is_given(message, given)]
        raise TypeError(
            f"the agent returned a {type(output).__name__}; expected a message, a str, "
            'a list of messages, or a dict with "messages"'
        )


def _is_graph(runnable: Any) -> bool:
    """Whether a graph stands inside what configures, retries or replaces it."""
    while isinstance(runnable, RunnableBindingBase | RunnableWithFallbacks):
        inside = runnable.bound if isinstance(runnable, RunnableBindingBase) else runnable.runnable
        runnable = inside
    return isinstance(runnable, PregelProtocol)


def _is_given(message: BaseMessage, given: set[str | None]) -> bool:
    """Whether a message was in the prompt, of this turn or of an earlier one."""
    return message.id is not None and (message.id in given or message.id.startswith(MEMORY_ID))


def with_ids(
    prompt: Sequence[BaseMessage], conversation: Sequence[BaseMessage], episode_id: str
) -> list[BaseMessage]:
    """The prompt, with ids of its own on everything that is not of the conversation.

    An agent that is resumed, or keeps its own history, hands those messages back, and they must not
    be taken for something it added. So the ids are the same whenever the step runs again.
    """
    known = {message.id for message in conversation} - {None}
    return [
        message
        if message.id in known
        else message.model_copy(update={"id": f"{MEMORY_ID}{episode_id}-{place}"})
        for place, message in enumerate(prompt)
    ]
