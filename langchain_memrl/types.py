"""The frozen records that cross layers. The words are the paper's (arXiv 2601.03192)."""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Outcome = Literal["success", "failure", "unknown"]
Normalization = Literal["zscore", "pool", "none"]
Withheld = Literal["", "held_out", "harmful"]
Trust = Literal["trusted", "released", "untrusted"]


@dataclass(frozen=True, slots=True, repr=False)
class Memory:
    """One remembered experience: the triplet (intent, experience, Q) and where it came from.

    Attributes:
        id: Time-ordered UUID, never reused; of a document: UUIDv5 of its namespace and key.
        namespace: The tenant or agent it belongs to.
        intent: What was asked. Only this text is embedded.
        lesson: What was learned, short. Empty while the memory is raw, that is, not summarised.
        trajectory: What was done, verbatim.
        outcome: `"success"`, `"failure"` or `"unknown"`.
        q_value: Expected reward of showing this memory for tasks like its intent.
        updates: How many rewards have moved `q_value`.
        selections: How many times it reached a prompt.
        parents: Ids of the memories that were in the prompt when this one was made.
        derived_from: Ids of the memories whose text this one was made from.
        episode_id: The episode that wrote it.
        source: Who wrote it, for example `"agent"` or `"runbook"`.
        trust: `"trusted"`, `"untrusted"` (in quarantine) or `"released"` (left it by successes).
        created_at: When it was written (UTC).
        updated_at: When its text or metadata last changed (UTC).
        disabled: Kept, but never recalled.
        pinned: Never pruned.
        metadata: The user's own JSON values.
        writer: On whose behalf it was written, for example a user's id; empty where nobody said.
    """

    id: str
    namespace: str
    intent: str
    lesson: str
    trajectory: str
    outcome: Outcome
    q_value: float
    updates: int
    selections: int
    parents: tuple[str, ...]
    derived_from: tuple[str, ...]
    episode_id: str
    source: str
    trust: Trust
    created_at: datetime
    updated_at: datetime
    disabled: bool = False
    pinned: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    writer: str = ""

    @property
    def experience(self) -> str:
        """The lesson, then the trajectory."""
        return "\n\n".join(part for part in (self.lesson, self.trajectory) if part)

    @property
    def raw(self) -> bool:
        """Whether it still waits for a lesson: only the verbatim trajectory is stored."""
        return not self.lesson

    def __repr__(self) -> str:
        return (
            f"Memory(id={self.id!r}, outcome={self.outcome!r}, q_value={self.q_value:.3f}, "
            f"updates={self.updates}, intent=<{len(self.intent)} chars>, "
            f"lesson=<{len(self.lesson)} chars>, trajectory=<{len(self.trajectory)} chars>)"
        )

    def _repr_html_(self) -> str:
        q = f"{self.q_value:+.3f} after {self.updates} rewards"
        rows: dict[str, Any] = {"id": self.id, "intent": self.intent}
        rows |= {"lesson": self.lesson or "(raw: not summarised yet)", "outcome": self.outcome}
        return html_table(rows | {"Q": q, "selections": self.selections})


@dataclass(frozen=True, slots=True)
class Candidate:
    """One memory of the pool that a recall chose from, as numbers only.

    Attributes:
        id: The memory.
        similarity: Cosine between the task and the memory's intent, in [-1, 1].
        q_value: Q at the time of the recall.
        updates: Rewards behind that Q.
        similarity_part: The standardised similarity.
        q_part: The standardised Q.
        score: The blended number that ranked it.
        probability: The chance with which the ranking chose it.
    """

    id: str
    similarity: float
    q_value: float
    updates: int
    similarity_part: float
    q_part: float
    score: float
    probability: float


@dataclass(frozen=True, slots=True)
class ScoredMemory:
    """A recalled memory with the numbers that chose it.

    Attributes:
        memory: The memory itself.
        similarity: Cosine between the task and the memory's intent, in [-1, 1].
        score: `(1 - q_weight) * similarity_part + q_weight * q_part`.
        similarity_part: The standardised similarity.
        q_part: The standardised Q.
        document: Where the recall chose among documents: the document, as it came.
    """

    memory: Memory
    similarity: float
    score: float
    similarity_part: float
    q_part: float
    document: Any = None

    @property
    def id(self) -> str:
        """The memory's id."""
        return self.memory.id


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer to `recall`.

    Attributes:
        episode_id: The episode it was made for, or None.
        recall_id: Its own id.
        namespace: Where it looked.
        intent: The task text.
        memories: The chosen memories, best first. Empty when nothing was similar enough.
        candidates: The best 50 of the pool it chose from, the chosen ones among them.
        similarity_max: The highest similarity found before the threshold, or None in an empty bank.
        explored: Whether an epsilon step replaced the choice by a random one.
        withheld: Why `memories` is empty, or documents came as they were: `"held_out"` (by chance,
            to measure what memories are worth), `"harmful"` (they were found to harm); else empty.
        settings: The ranking's settings, as plain values.
        holdout: The chance with which it would have been held out.
        document_keys: Keys of the documents it chose among, by memory id; None: among memories.
    """

    episode_id: str | None
    recall_id: str
    namespace: str
    intent: str = field(repr=False)
    memories: tuple[ScoredMemory, ...]
    candidates: tuple[Candidate, ...] = field(repr=False)
    similarity_max: float | None
    explored: bool
    settings: Mapping[str, Any] = field(repr=False)
    withheld: Withheld = ""
    holdout: float = 0.0
    document_keys: Mapping[str, str] | None = field(default=None, repr=False)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the chosen memories, best first."""
        return tuple(scored.id for scored in self.memories)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{scored.similarity:.3f}</td><td>{scored.memory.q_value:+.3f}</td>"
            f"<td>{scored.score:+.3f}</td><td>{scored.memory.outcome}</td>"
            f"<td>{html.escape(scored.memory.lesson or scored.memory.trajectory)}</td></tr>"
            for scored in self.memories
        )
        head = "<th>similarity</th><th>Q</th><th>score</th><th>outcome</th><th>lesson</th>"
        return f"<table><tr>{head}</tr>{rows}</table>"


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """A recalled memory as it enters a prompt, after the token budget.

    Attributes:
        id: The memory's id.
        intent: What was asked then.
        lesson: What was learned; empty while the memory is raw.
        trajectory: What was done; empty or shortened where the budget left no room.
        outcome: `"success"`, `"failure"` or `"unknown"`.
        similarity: Cosine between the task and the memory's intent, in [-1, 1].
        q_value: Q when it was recalled.
        left_out: How many characters of the trajectory the budget left out.
    """

    id: str
    intent: str = field(repr=False)
    lesson: str = field(repr=False)
    trajectory: str = field(repr=False)
    outcome: Outcome
    similarity: float
    q_value: float
    left_out: int = 0

    @property
    def experience(self) -> str:
        """The lesson, then the trajectory."""
        return "\n\n".join(part for part in (self.lesson, self.trajectory) if part)


@dataclass(frozen=True, slots=True)
class Credit:
    """One memory's Q before and after a reward."""

    id: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Reinforcement:
    """The answer to `reinforce`.

    Attributes:
        episode_id: The episode.
        reward: The reward that stands for it; None when there is no signal yet.
        applied: True when this call moved something; False when it repeated an earlier one.
        credits: What moved, in the order of the recorded ids.
        skipped: Recorded ids that were forgotten before the reward came.
        memory_id: The memory that the episode wrote, or None so far.
        revised_from: The reward that this call replaced, or None.
        early: Whether the reward waits for an episode that is not known yet.
    """

    episode_id: str
    reward: float | None
    applied: bool
    credits: tuple[Credit, ...] = ()
    skipped: tuple[str, ...] = ()
    memory_id: str | None = None
    revised_from: float | None = None
    early: bool = False


@dataclass(frozen=True, slots=True)
class Episode:
    """One task from recall to reward.

    Attributes:
        episode_id: Its id, unique in its namespace.
        namespace: The tenant or agent it belongs to.
        intents: The tasks it recalled for, in order.
        memory_ids: The memories that reached its prompt; only these are rewarded.
        reward: The reward it got, or None while it is open.
        memory_id: The memory it wrote, or None.
        created_at: When it was first seen (UTC).
    """

    episode_id: str
    namespace: str
    intents: tuple[str, ...] = field(repr=False)
    memory_ids: tuple[str, ...]
    reward: float | None
    memory_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """An evaluator's judgement of one answer.

    Attributes:
        reward: A number in the reward range, or in [0, 1] with `scale="unit"`; a bool; or None.
        outcome: Overrules the outcome that follows from the reward.
        reason: Why, in words.
        scale: `"reward"` takes the number as it is, `"unit"` maps [0, 1] onto the reward range.
    """

    reward: float | bool | None
    outcome: Outcome | None = None
    reason: str = ""
    scale: Literal["reward", "unit"] = "reward"


def html_table(rows: Mapping[str, Any]) -> str:
    """A two-column HTML table for notebooks; every value is escaped."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(str(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table>{cells}</table>"
