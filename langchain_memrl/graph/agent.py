"""Running whatever acts: a chat model, any Runnable, or a compiled graph."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.base import RunnableBindingBase
from langgraph.pregel.protocol import PregelProtocol

from langchain_memrl.errors import ConfigError


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
        """The messages the agent added to the prompt."""
        named = _with_ids(prompt)
        return self._added(named, self._runnable.invoke(self._input(named), config))

    async def ainvoke(
        self, prompt: Sequence[BaseMessage], config: RunnableConfig
    ) -> list[BaseMessage]:
        """The same, awaited."""
        named = _with_ids(prompt)
        return self._added(named, await self._runnable.ainvoke(self._input(named), config))

    def _input(self, prompt: list[BaseMessage]) -> Any:
        return {"messages": prompt} if self._is_graph else prompt

    @staticmethod
    def _added(prompt: list[BaseMessage], output: Any) -> list[BaseMessage]:
        if isinstance(output, dict) and "messages" in output:
            output = output["messages"]
        if isinstance(output, str):
            return [AIMessage(output)]
        if isinstance(output, BaseMessage):
            return [output]
        if isinstance(output, list) and all(isinstance(item, BaseMessage) for item in output):
            given = {message.id for message in prompt}
            return [message for message in output if message.id is None or message.id not in given]
        raise TypeError(
            f"the agent returned a {type(output).__name__}; expected a message, a str, "
            'a list of messages, or a dict with "messages"'
        )


def _is_graph(runnable: Any) -> bool:
    while isinstance(runnable, RunnableBindingBase):
        runnable = runnable.bound
    return isinstance(runnable, PregelProtocol)


def _with_ids(prompt: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Copies with ids, so that what comes back can be told from what went in."""
    return [
        message if message.id else message.model_copy(update={"id": str(uuid4())})
        for message in prompt
    ]
