"""The contract every store keeps, and the records that cross it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from langchain_memrl.config import LearningConfig
from langchain_memrl.core.calibration import Calibration
from langchain_memrl.reports import QChange, Stats, Verification
from langchain_memrl.types import Candidate, Episode, Memory, Outcome, Reinforcement

Vector = NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with how many lines, texts or pages are done and how many there are."""


class PoolQuery(NamedTuple):
    """What a recall looks for.

    Attributes:
        namespace: Where to look.
        vector: Unit vector of the task, shape (d,).
        fetch_k: How many intents form the pool.
        score_threshold: Smallest cosine, `"auto"`, or None for no gate.
        filter: Which memories may be chosen; applied before the top-k.
        exclude_intents: Intent texts that may not be recalled.
    """

    namespace: str
    vector: Vector
    fetch_k: int
    score_threshold: float | str | None
    filter: Mapping[str, Any] | None = None
    exclude_intents: Sequence[str] = ()


class Pool(NamedTuple):
    """The memories a recall may choose from; all arrays have shape (n,).

    Attributes:
        ids: Memory ids.
        age: A number that grows with every memory written.
        similarity: Cosine between the task and the memory's intent.
        q_values: Q now.
        updates: Rewards behind that Q.
        selections: Times it reached a prompt.
        similarity_max: Highest cosine found before the threshold; None where there is no intent.
        threshold: The threshold that was applied; None for no gate.
        calibration: The namespace's similarity statistics; None where there is no intent.
    """

    ids: tuple[str, ...]
    age: NDArray[np.int64]
    similarity: NDArray[np.float64]
    q_values: NDArray[np.float64]
    updates: NDArray[np.int64]
    selections: NDArray[np.int64]
    similarity_max: float | None
    threshold: float | None
    calibration: Calibration | None


@dataclass(frozen=True, slots=True)
class RecallRecord:
    """What a recall chose, or showed; `candidates` holds every memory of `memory_ids`.

    `episode_id` is empty where the recall belongs to no episode.
    """

    namespace: str
    episode_id: str
    recall_id: str
    intent: str = field(repr=False)
    memory_ids: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    settings: Mapping[str, Any]
    similarity_max: float | None
    explored: bool


@dataclass(frozen=True, slots=True)
class RewardEntry:
    """One reward for one episode; None is "no signal yet".

    `ids` None means "what the episode recorded".

    `raw_id` is the id of the memory that is written when the episode holds an answer.
    """

    namespace: str
    episode_id: str
    reward: float | None
    ids: tuple[str, ...] | None
    raw_id: str


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to write. `parents` None means "what the episode recorded"."""

    id: str
    namespace: str
    intent: str = field(repr=False)
    lesson: str = field(repr=False)
    trajectory: str = field(repr=False)
    outcome: Outcome
    episode_id: str
    parents: tuple[str, ...] | None
    source: str
    metadata: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class HeldAnswer:
    """What an episode did, kept until its reward is known. `raw_id`: see `RewardEntry`."""

    namespace: str
    episode_id: str
    intent: str = field(repr=False)
    trajectory: str = field(repr=False)
    raw_id: str


SAME_MODEL_COSINE = 0.999
"""Smallest cosine that the same model gives for the same text, on any processor."""


class Fingerprint(NamedTuple):
    """The embedding model a bank was built with.

    Attributes:
        model: Its name, for messages.
        probes: The vectors of the probe texts, shape (p, d).
        generation: Which of the bank's models it is, counted from 1; 0 before the first memory.
    """

    model: str
    probes: Vector
    generation: int = 0


class Export(NamedTuple):
    """What an export says of its bank.

    Attributes:
        learning: Its settings.
        model: Its embedding model.
        lines: How many lines it has.
        lowest: The lowest reward or first Q of any memory.
        highest: The highest one. Q never leaves this range, with whatever it is merged.
    """

    learning: LearningConfig
    model: Fingerprint | None
    lines: int
    lowest: float
    highest: float


class MemoryStore(Protocol):
    """Where memories live. Every writing call is one transaction; a returned call is durable."""

    def learning(self) -> LearningConfig:
        """The saved learning settings."""

    def configure(self, changes: Mapping[str, Any]) -> LearningConfig:
        """Change saved learning settings; what stands then."""

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

    def recorded(self, namespace: str, episode_id: str, intent: str) -> RecallRecord | None:
        """What this episode recorded for this intent, or None."""

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
