"""The records that cross the contract of a store."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langchain_memrl.config import LearningConfig, TrustConfig
from langchain_memrl.core.calibration import Calibration
from langchain_memrl.types import Candidate, Outcome, Withheld

Vector = NDArray[np.float32]
Ids = NDArray[np.int64]

FLOAT32_SLACK = 1e-5
"""More than a float32 product of two unit vectors can be off; hits this close are recomputed."""
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
        untrusted: Whether memories in quarantine may be chosen too.
    """

    namespace: str
    vector: Vector
    fetch_k: int
    score_threshold: float | str | None
    filter: Mapping[str, Any] | None = None
    exclude_intents: Sequence[str] = ()
    untrusted: bool = False


class Hits(NamedTuple):
    """Nearest intents, closest first: ids of shape (n,) and their cosines of shape (n,)."""

    ids: Ids
    similarity: NDArray[np.float64]


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

    `episode_id` is empty where the recall belongs to no episode. `document_keys`: see `Recall`.
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
    holdout: float = 0.0
    withheld: Withheld = ""
    document_keys: Mapping[str, str] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class RewardEntry:
    """One reward for one episode; None is "no signal yet".

    `ids` None means "what the episode recorded", of which `cited` None leaves nothing out.

    `raw_id` is the id of the memory that is written when the episode holds an answer. `revise`
    replaces an earlier reward, `early` lets the reward wait for an episode that is not known yet.
    """

    namespace: str
    episode_id: str
    reward: float | None
    ids: tuple[str, ...] | None
    raw_id: str
    revise: bool = False
    early: bool = False
    cited: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to write. `parents` None means "what the episode recorded".

    `trusted` None leaves it to the bank's settings; none is more trusted than what it was made of.
    """

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
    writer: str = ""
    trusted: bool | None = None
    derived_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldAnswer:
    """What an episode did, kept until its reward is known. `raw_id`: see `RewardEntry`."""

    namespace: str
    episode_id: str
    intent: str = field(repr=False)
    trajectory: str = field(repr=False)
    raw_id: str
    writer: str = ""


SAME_MODEL_COSINE = 0.999
"""Smallest cosine that the same model gives for the same text, on any processor."""


class Trial(NamedTuple):
    """An episode in which chance decided whether memories were shown.

    Attributes:
        episode_id: The episode.
        holdout: The chance with which they were not.
        held_out: Whether they were not.
        reward: Its reward, or None so far.
        chosen: The memories that were shown, or would have been.
    """

    episode_id: str
    holdout: float
    held_out: bool
    reward: float | None
    chosen: tuple[str, ...]


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
        trust: Its rules of trust.
    """

    learning: LearningConfig
    model: Fingerprint | None
    lines: int
    lowest: float
    highest: float
    trust: TrustConfig = TrustConfig()
