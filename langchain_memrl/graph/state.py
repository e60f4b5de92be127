"""What the graph's steps hand on: ids, numbers, text and messages, nothing else."""

from typing import Annotated, Any, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict  # before Python 3.12, schemas need this one

from langchain_memrl.types import Outcome


class MemRLInput(TypedDict):
    """What the graph takes: a conversation whose last human message is the task."""

    messages: Annotated[list[AnyMessage], add_messages]


class MemRLOutput(TypedDict):
    """What the graph gives back: the answer, the episode, and its reward (None: still open)."""

    messages: Annotated[list[AnyMessage], add_messages]
    episode_id: NotRequired[str]
    reward: NotRequired[float | None]


class MemRLState(MemRLOutput):
    """What the steps share. Every turn starts all of it anew, but the conversation.

    Attributes:
        namespace: Where this turn learns.
        intent: The task text.
        memories: What entered the prompt, as plain values of `ShownMemory`.
        trajectory: What the agent did, as text.
        answer: The text of its last message.
        outcome: The verdict's outcome.
        lesson: What was learned; None keeps the trajectory raw.
        memory_id: The memory this episode wrote.
    """

    namespace: NotRequired[str]
    intent: NotRequired[str]
    memories: NotRequired[list[dict[str, Any]]]
    trajectory: NotRequired[str]
    answer: NotRequired[str]
    outcome: NotRequired[Outcome]
    lesson: NotRequired[str | None]
    memory_id: NotRequired[str | None]
