"""What a caller asks for, checked before anything happens."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

from langchain_core.utils.uuid import uuid7

from langchain_memrl.config import LearningConfig
from langchain_memrl.errors import InputError
from langchain_memrl.inputs import check_metadata, check_name, check_text, told
from langchain_memrl.store.base import NewMemory, RewardEntry
from langchain_memrl.types import Outcome


class Task(NamedTuple):
    """One task to recall for, and the episode it belongs to."""

    intent: str
    episode_id: str | None


def new_id() -> str:
    """A time-ordered id that is never used again."""
    return str(uuid7())


def check_tasks(
    intents: Sequence[str], episode_ids: Sequence[str | None] | None = None
) -> list[Task]:
    """Pair tasks with their episodes.

    Raises:
        InputError: An unusable text or id, or another number of ids than of tasks.
    """
    if isinstance(intents, str):
        raise InputError("intents is one str; expected a list of task texts")
    ids = [None] * len(intents) if episode_ids is None else list(episode_ids)
    if len(ids) != len(intents):
        raise InputError(f"got {len(ids)} episode ids for {len(intents)} intents")
    return [
        Task(
            check_text("intent", intent, blank=True),
            None if id is None else check_name("episode_id", id),
        )
        for intent, id in zip(intents, ids, strict=True)
    ]


def check_texts(name: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Several texts.

    Raises:
        InputError: One str instead of a list, or an unusable text.
    """
    if isinstance(texts, str):
        raise InputError(f"{name} is one str; expected a list")
    return tuple(check_text(name, text, blank=True) for text in texts)


def check_reward(
    space: str,
    learning: LearningConfig,
    episode_id: str | None = None,
    *,
    reward: Any,
    ids: Sequence[str] | None = None,
    revise: bool = False,
    early: bool = False,
    cited: Sequence[str] | None = None,
) -> RewardEntry:
    """One reward; a reward of None ("no signal yet") keeps None.

    Raises:
        TypeError: No episode id.
        RewardError, RewardTypeError: See `LearningConfig.number`; the range is compared later,
            because a repeat is answered whatever the range is now.
        InputError: An unusable episode id, or a single str for `ids` or `cited`.
    """
    if episode_id is None:
        raise TypeError(
            "reinforce needs an episode_id: it is what makes the reward count exactly once"
        )
    return RewardEntry(
        namespace=space,
        episode_id=check_name("episode_id", episode_id),
        reward=None if reward is None else learning.number(reward),
        ids=_check_ids("ids", ids),
        raw_id=new_id(),
        revise=bool(revise),
        early=bool(early),
        cited=_check_ids("cited", cited),
    )


def _check_ids(name: str, ids: Sequence[str] | None) -> tuple[str, ...] | None:
    """Some ids, each once."""
    if isinstance(ids, str):
        raise InputError(f"{name} is one str; expected a list of ids")
    return None if ids is None else tuple(dict.fromkeys(check_text(name, id) for id in ids))


def check_memory(
    space: str,
    intent: str,
    lesson: str | None,
    *,
    trajectory: str = "",
    outcome: Outcome = "unknown",
    episode_id: str | None = None,
    parents: Sequence[str] = (),
    derived_from: Sequence[str] = (),
    source: str = "agent",
    writer: str = "",
    trusted: bool | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> NewMemory:
    """A memory to write.

    Raises:
        InputError: An unusable text, outcome, name or metadata.
    """
    if outcome not in get_args(Outcome):
        raise InputError(f"outcome is {told(outcome)}; expected one of {get_args(Outcome)}")
    if trusted is not None and not isinstance(trusted, bool):
        raise InputError(f"trusted is {told(trusted)}; expected True, False or None")
    raw = lesson is None
    return NewMemory(
        id=new_id(),
        namespace=space,
        intent=check_text("intent", intent),
        lesson="" if lesson is None else check_text("lesson", lesson),
        trajectory=check_text("trajectory", trajectory, blank=not raw),
        outcome=outcome,
        episode_id=new_id() if episode_id is None else check_name("episode_id", episode_id),
        parents=_check_names("parents", parents) or None,
        source=check_name("source", source),
        metadata=check_metadata(metadata),
        writer=check_writer(writer),
        trusted=trusted,
        derived_from=_check_names("derived_from", derived_from),
    )


def check_writer(writer: str) -> str:
    """On whose behalf something is written; empty: nobody says."""
    return writer if writer == "" else check_name("writer", writer)


def _check_names(name: str, ids: Sequence[str]) -> tuple[str, ...]:
    """Ids of memories, each once."""
    return tuple(dict.fromkeys(check_name(name, id) for id in check_texts(name, ids)))
