"""What a bank tells about itself: frozen records, for people and for programs."""

from dataclasses import dataclass
from datetime import datetime

from langchain_memrl.types import html_table


@dataclass(frozen=True, slots=True)
class QChange:
    """One step of a memory's Q.

    Attributes:
        episode_id: The episode whose reward moved it.
        reward: That reward.
        before: Q before.
        after: Q after: `before + step_size * (reward - before)`.
        step_size: The step size used.
        at: When (UTC).
    """

    episode_id: str
    reward: float
    before: float
    after: float
    step_size: float
    at: datetime


@dataclass(frozen=True, slots=True)
class Stats:
    """What a namespace holds.

    Attributes:
        namespace: The namespace counted.
        memories: Memories stored.
        intents: Different intents that own them.
        raw: Memories that wait for a lesson.
        episodes: Episodes seen.
        open_episodes: Episodes that recalled something or hold an answer and have no reward yet.
        updates: Rewards applied to memories, in all.
        selections: Times a memory reached a prompt, in all.
        never_injected: Memories that never reached a prompt.
        never_rewarded: Memories whose Q never moved.
        q_above_zero: Share of memories with Q > 0.
        q_at_zero: Share of memories with Q = 0.
        q_below_zero: Share of memories with Q < 0.
        q_quantiles: Q at 0, 25, 50, 75 and 100 percent; empty in an empty namespace.
    """

    namespace: str
    memories: int
    intents: int
    raw: int
    episodes: int
    open_episodes: int
    updates: int
    selections: int
    never_injected: int
    never_rewarded: int
    q_above_zero: float
    q_at_zero: float
    q_below_zero: float
    q_quantiles: tuple[float, ...]

    def _repr_html_(self) -> str:
        return html_table({name: getattr(self, name) for name in self.__slots__})


@dataclass(frozen=True, slots=True)
class Verification:
    """The answer to `verify`: an empty list of problems means the bank is sound.

    Attributes:
        problems: What is wrong, one sentence each, with what to do about it.
        memories: Memories checked.
        intents: Intents checked.
    """

    problems: tuple[str, ...]
    memories: int
    intents: int

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.problems
