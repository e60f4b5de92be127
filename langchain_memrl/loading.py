"""Many memories at once, in batches, with a clear account of what is stored if it stops."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_memrl.errors import PartialLoadError
from langchain_memrl.inputs import check_count
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.requests import check_memory
from langchain_memrl.store.base import Progress
from langchain_memrl.store.encoding import digest
from langchain_memrl.types import Memory


def load_memories(
    memory: EpisodicMemory,
    memories: Sequence[Mapping[str, Any]],
    *,
    batch_size: int = 100,
    progress: Progress | None = None,
    namespace: str | None = None,
) -> list[Memory]:
    """Remember many memories, `batch_size` at a time; repeating an interrupted load completes it.

    Every batch is one call of the embedder and one transaction. A memory without an episode id
    gets one that follows from its content, so the same memory is never stored twice. How often a
    call is tried again is the embedder's own setting (for example `max_retries` of
    `OpenAIEmbeddings`).

    Args:
        memory: The bank, or its view of one namespace.
        memories: One mapping per memory with the arguments of `remember`.
        batch_size: Memories per batch.
        progress: Called after every batch with memories stored and memories in all.
        namespace: The bank's own by default.

    Returns:
        The memories that stand, in order.

    Raises:
        InputError: One of the memories is unusable; nothing was stored.
        PartialLoadError: A batch failed. It tells what is stored and what is not.
    """
    size = check_count("batch_size", batch_size, least=1)
    for one in memories:
        check_memory(namespace or memory.namespace, **one)
    drafts = [_with_episode(one) for one in memories]
    stored: list[Memory] = []
    for start in range(0, len(drafts), size):
        try:
            stored += memory.remember_many(drafts[start : start + size], namespace=namespace)
        except Exception as error:
            raise PartialLoadError(
                f"{len(stored)} of {len(drafts)} memories are stored, then a batch failed "
                f"({type(error).__name__}); call again with the same list to complete it",
                stored=tuple(one.id for one in stored),
                missing=tuple(range(len(stored), len(drafts))),
            ) from error
        if progress is not None:
            progress(len(stored), len(drafts))
    return stored


def _with_episode(draft: Mapping[str, Any]) -> dict[str, Any]:
    """The draft with an episode id that the same content always gets."""
    if draft.get("episode_id") is not None:
        return dict(draft)
    content = {name: value for name, value in draft.items() if name != "episode_id"}
    return content | {"episode_id": f"load-{digest(sorted(content.items())).hex()}"}
