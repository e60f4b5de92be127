"""Many memories at once, in batches, with a clear account of what is stored if it stops."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_memrl.errors import MemoryNotFoundError, MemRLError, PartialLoadError
from langchain_memrl.inputs import check_count
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.requests import check_memory
from langchain_memrl.store.base import NewMemory, Progress
from langchain_memrl.store.encoding import digest
from langchain_memrl.types import Memory


def load_memories(
    memory: EpisodicMemory,
    memories: Iterable[Mapping[str, Any]],
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
        The memories that stand, in order; without those that were forgotten since an earlier load.

    Raises:
        InputError: One of the memories is unusable; nothing was stored.
        PartialLoadError: A batch failed. It tells what is stored and what is not.
    """
    size = check_count("batch_size", batch_size, least=1)
    space = memory.namespace if namespace is None else namespace
    redacted = map(memory.redactor.draft, memories)
    drafts = [_with_episode(one, check_memory(space, **one)) for one in redacted]
    memory = memory.already_redacted()
    stored: list[Memory] = []
    for start in range(0, len(drafts), size):
        try:
            stored += _remember(memory, drafts[start : start + size], namespace)
        except Exception as error:
            why = f": {error}" if isinstance(error, MemRLError) else ""
            raise PartialLoadError(
                f"{start} of {len(drafts)} memories are stored, then a batch failed "
                f"({type(error).__name__}{why}); once that is mended, call again with the same "
                "list to complete it",
                stored=tuple(one.id for one in stored),
                missing=tuple(range(start, len(drafts))),
            ) from error
        if progress is not None:
            progress(min(start + size, len(drafts)), len(drafts))
    return stored


def _remember(
    memory: EpisodicMemory, drafts: Sequence[dict[str, Any]], namespace: str | None
) -> list[Memory]:
    """One batch. What was loaded before and forgotten since stays forgotten."""
    try:
        return memory.remember_many(drafts, namespace=namespace)
    except MemoryNotFoundError:
        if len(drafts) == 1:
            return []
        half = len(drafts) // 2
        parts = (drafts[:half], drafts[half:])
        return [one for part in parts for one in _remember(memory, part, namespace)]


def _with_episode(draft: Mapping[str, Any], checked: NewMemory) -> dict[str, Any]:
    """The draft with an episode id that the same content always gets."""
    if draft.get("episode_id") is not None:
        return dict(draft)
    texts = (checked.intent, checked.lesson, checked.trajectory, checked.outcome, checked.source)
    key = digest(*texts, checked.parents, dict(checked.metadata)).hex()
    return dict(draft) | {"episode_id": f"load-{key}"}
