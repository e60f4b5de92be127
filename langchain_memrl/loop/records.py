"""What a step makes of the state: the episode's id, its records, its events."""

import hashlib
import logging
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.config import get_config, get_stream_writer
from langgraph.runtime import get_runtime

from langchain_memrl.errors import MemRLError
from langchain_memrl.learner import State
from langchain_memrl.redaction import Redactor
from langchain_memrl.summarizers import Attempt
from langchain_memrl.types import Recall, ShownMemory

logger = logging.getLogger("langchain_memrl")


def turn_of(recall: Recall, shown: Sequence[ShownMemory]) -> dict[str, Any]:
    """A state that starts an episode, without anything of an earlier turn."""
    return {
        "episode_id": recall.episode_id,
        "namespace": recall.namespace,
        "intent": recall.intent,
        "memories": [asdict(memory) for memory in shown],
        "reward": None,
        "outcome": "unknown",
        "trajectory": "",
        "answer": "",
        "lesson": None,
        "memory_id": None,
    }


def attempt_of(state: State) -> Attempt:
    """What the summariser reads."""
    return Attempt(
        intent=state["intent"],
        trajectory=state["trajectory"],
        answer=state["answer"],
        outcome=state["outcome"],
        reward=state["reward"],
    )


def question_of(state: State) -> dict[str, Any]:
    """What a person is asked."""
    asked = {name: state[name] for name in ("episode_id", "intent", "answer")}
    return {"type": "memrl.reward_request", **asked}


def episode_of(state: State) -> dict[str, str]:
    """The arguments of `episode`."""
    return {"episode_id": state["episode_id"], "namespace": state["namespace"]}


def writer_of(name: str) -> str:
    """On whose behalf the caller asks, by the metadata of this run; empty where it does not say."""
    return str(get_config().get("metadata", {}).get(f"{name}_writer") or "")


def held_of(state: State, name: str) -> dict[str, str]:
    """The arguments of `hold`, in a loop of this name."""
    texts = {"intent": state["intent"], "trajectory": state["trajectory"]}
    return texts | {"writer": writer_of(name)}


def memory_of(state: State, name: str) -> dict[str, Any]:
    """The arguments of `remember`. A lesson that is the whole trajectory is kept once."""
    lesson, trajectory = state["lesson"], state["trajectory"]
    return {
        "intent": state["intent"],
        "lesson": lesson,
        "trajectory": "" if lesson == trajectory else trajectory,
        "outcome": state["outcome"],
        "writer": writer_of(name),
        "episode_id": state["episode_id"],
        "namespace": state["namespace"],
    }


def derive_episode_id(messages: Sequence[BaseMessage], task: str, name: str) -> str:
    """The same id when this step runs again, another one on the next turn.

    As a node of a parent, the parent's task is what survives a retry; standalone, the step's own.
    A bare number in the namespace only counts how often the parent's task has run the loop, its
    retries too; the ids of the messages tell a new conversation from the same one again. Loops
    with different names that start at the same place have ids of their own.
    """
    info = get_runtime().execution_info
    parents = (info.checkpoint_ns if info else "").split("|")[:-1]
    step = [name for name in parents if not name.isdigit()] or [info.task_id if info else ""]
    ids = [message.id for message in messages]
    parts = (info.thread_id if info else None, step, task, ids, name)
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def warn_without_checkpointer() -> None:
    """Say that a run cannot be paused: LangGraph knows no thread then."""
    info = get_runtime().execution_info
    if info is None or info.thread_id is None:
        logger.warning(
            'evaluator="human" waits for a person, but this run has no checkpointer to wait with; '
            "compile the outermost graph with one"
        )


def why_raw(error: Exception, episode_id: str, redactor: Redactor) -> str:
    """Log that a summariser failed, and the reason that may be shown.

    What others raise may quote what they read; our own errors never do.
    """
    logger.warning(
        "the summariser failed (%s); episode %s is stored raw, summarize_pending() can try again",
        type(error).__name__,
        episode_id,
    )
    if logger.isEnabledFor(logging.DEBUG):
        told = "".join(traceback.format_exception(error))
        logger.debug("why the summariser failed:\n%s", redactor.text("an error", told))
    return str(error) if isinstance(error, MemRLError) else type(error).__name__


def emit(event: str, episode_id: str | None, **values: Any) -> None:
    """Tell the stream what happened; only ids, numbers and reasons, never memory text."""
    get_stream_writer()({"type": f"memrl.{event}", "episode_id": episode_id, **values})
