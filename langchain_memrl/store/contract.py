"""The contract that every store keeps."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from langchain_memrl.config import LearningConfig, TrustConfig
from langchain_memrl.reports import QChange, Stats, Verification
from langchain_memrl.store.base import (
    Export,
    Fingerprint,
    HeldAnswer,
    NewMemory,
    Pool,
    PoolQuery,
    Progress,
    RecallRecord,
    RewardEntry,
    Trial,
    Vector,
)
from langchain_memrl.types import Episode, Memory, Reinforcement


class MemoryStore(Protocol):
    """Where memories live. Every writing call is one transaction; a returned call is durable."""

    def learning(self) -> LearningConfig:
        """The saved learning settings."""

    def trust(self) -> TrustConfig:
        """The saved rules of trust."""

    def configure(self, changes: Mapping[str, Any]) -> LearningConfig:
        """Change saved settings of learning or trust; the learning settings that stand then."""

    def secret(self) -> bytes:
        """The bank's own random key; it makes prompt fences that nobody can guess."""

    def fingerprint(self) -> Fingerprint | None:
        """The saved embedding model, or None before the first memory."""

    def namespaces(self) -> tuple[str, ...]:
        """Every namespace that holds a memory or an episode, sorted."""

    def intent_vectors(self, namespace: str, texts: Sequence[str]) -> dict[str, Vector]:
        """The unit vectors of those texts that are already intents."""

    def is_empty(self, namespace: str) -> bool:
        """Whether the namespace holds no intent."""

    def pools(self, queries: Sequence[PoolQuery], model: Fingerprint | None = None) -> list[Pool]:
        """The candidates of each query, all read from the same state.

        `model` made the vectors: another one than the bank's is refused.
        """

    def recorded(
        self, namespace: str, episode_id: str, intent: str, keys: Mapping[str, str] | None = None
    ) -> RecallRecord | None:
        """What this episode recorded for this intent (among these documents), or None."""

    def record(self, records: Sequence[RecallRecord]) -> list[RecallRecord]:
        """Write what reached the prompts of episodes, each once, all or none.

        The records that stand are returned; those without an episode are passed through.
        """

    def reinforce(self, entries: Sequence[RewardEntry]) -> list[Reinforcement]:
        """Apply rewards in order, each once, all or none."""

    def remember(
        self,
        memories: Sequence[NewMemory],
        vectors: Sequence[Vector],
        model: Fingerprint | None = None,
    ) -> list[str]:
        """Write memories in order, each once, all or none; the ids that stand are returned.

        `vectors` holds the unit vector of each memory's intent. `model` made them; a bank without
        a model takes it over, another one is refused.
        """

    def hold(self, answer: HeldAnswer, vector: Vector, model: Fingerprint | None = None) -> None:
        """Keep an answer, and its intent's unit vector, until its reward comes.

        `model`: see `remember`.
        """

    def episode(self, namespace: str, episode_id: str) -> Episode | None:
        """One episode, or None."""

    def open_episodes(
        self, namespace: str, older_than: float | None, limit: int | None
    ) -> list[Episode]:
        """Episodes without a reward, oldest first; `older_than` in seconds."""

    def expire(
        self, namespace: str, older_than: float, entries: Callable[[str], RewardEntry]
    ) -> list[Episode]:
        """Reward those episodes, or wait for them no longer where the reward is None; all or none.

        `entries` makes the reward of an episode from its id.
        """

    def trials(self, namespace: str, *, chosen: bool) -> list[Trial]:
        """Episodes in which chance decided whether memories were shown, oldest first."""

    def memories(self, namespace: str, ids: Sequence[str]) -> dict[str, Memory]:
        """Those of the ids that exist in this namespace."""

    def scan(
        self,
        namespace: str,
        filter: Mapping[str, Any] | None,
        *,
        raw: bool = False,
        limit: int | None,
    ) -> Iterator[Memory]:
        """Memories, newest first; with `raw` only those that wait for a lesson."""

    def search_text(self, namespace: str, text: str, limit: int) -> list[Memory]:
        """Memories whose intent or experience contains the text, newest first."""

    def update(self, namespace: str, id: str, changes: Mapping[str, Any]) -> None:
        """Change lesson, trajectory or metadata of a memory; Q and history stay."""

    def family(self, namespace: str, ids: Sequence[str]) -> tuple[str, ...]:
        """The ids and, transitively, the memories whose text was made from them."""

    def forget(self, namespace: str, ids: Sequence[str]) -> None:
        """Delete memories, and the texts of the episodes that wrote them."""

    def mark(self, namespace: str, id: str, name: str, value: bool) -> None:
        """Set `"disabled"` or `"pinned"` of a memory."""

    def release(self, namespace: str, id: str) -> None:
        """Take a memory out of quarantine for good."""

    def useless(self, namespace: str, max_q: float, min_updates: int) -> tuple[str, ...]:
        """Unpinned memories with `Q <= max_q` after at least `min_updates` rewards."""

    def clear(self, namespace: str) -> None:
        """Delete everything of a namespace."""

    def history(self, namespace: str, id: str) -> list[QChange]:
        """Every step of a memory's Q, oldest first."""

    def stats(self, namespace: str) -> Stats:
        """What the namespace holds."""

    def verify(self) -> Verification:
        """Check the whole bank."""

    def backup(self, folder: Path, progress: Progress | None = None) -> None:
        """Copy the live bank into a new folder."""

    def export_jsonl(self, path: Path, progress: Progress | None = None) -> int:
        """Write the whole bank as JSON lines; how many."""

    def import_jsonl(self, path: Path, export: Export, progress: Progress | None = None) -> int:
        """Add what an export, which was checked, holds and this bank lacks; how many lines."""

    def reembed(
        self,
        model: Fingerprint,
        embed: Callable[[Sequence[str]], Sequence[Vector]],
        progress: Progress | None = None,
    ) -> int:
        """Replace every vector by one of `model`; how many were made. Resumable."""

    def compact(self) -> None:
        """Free the space of what was forgotten and leave no trace of it."""

    def rebuild_index(self) -> None:
        """Make the vector index anew from the stored vectors."""

    def check_open(self) -> None:
        """Raise `StoreError` where it is closed, or was opened before a fork."""

    def close(self) -> None:
        """Release everything. Idempotent."""
