"""Asking a chat model with memories in its prompt, for suites of real models."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda

from langchain_memrl.rendering import Render, as_shown, to_prompt
from langchain_memrl.types import ScoredMemory

SAMPLED = 1.0
"""Temperature of an independent draw."""


class Reply(NamedTuple):
    """What a model answered, and what it cost."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


def ask(
    model: Any,
    messages: Sequence[BaseMessage],
    memories: Sequence[ScoredMemory],
    *,
    sample: bool = False,
    render: Render = "turns",
) -> Reply:
    """Ask once.

    Args:
        model: A chat model, any Runnable, or a function of the prompt.
        messages: The conversation, the task last.
        memories: What was recalled, best first.
        sample: Whether to draw an answer instead of the likeliest.
        render: How memories enter the prompt; see `create_memrl_graph`.
    """
    return say(model, with_memories(messages, memories, render), sample=sample)


def with_memories(
    messages: Sequence[BaseMessage], memories: Sequence[ScoredMemory], render: Render = "turns"
) -> list[BaseMessage]:
    """A conversation, the task last, with memories in it."""
    return to_prompt(messages, [as_shown(scored) for scored in memories], render, b"")


def say(model: Any, prompt: Sequence[BaseMessage], *, sample: bool = False) -> Reply:
    """Send a prompt as it stands."""
    runnable = model if hasattr(model, "invoke") else RunnableLambda(model)
    if sample and hasattr(model, "bind_tools"):
        runnable = model.bind(temperature=SAMPLED)
    reply = runnable.invoke(list(prompt))
    if not isinstance(reply, AIMessage):
        return Reply(str(reply))
    usage: Any = reply.usage_metadata or {}
    return Reply(str(reply.text), usage.get("input_tokens", 0), usage.get("output_tokens", 0))


@cache
def word_embeddings() -> Embeddings:
    """The static word vectors that come with the demo; loaded once."""
    from langchain_memrl.offline import WordLlamaEmbeddings

    return WordLlamaEmbeddings()
