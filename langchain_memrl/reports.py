"""What a bank tells about itself: frozen records, for people and for programs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

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


@dataclass(frozen=True, slots=True)
class Lift:
    """How much success memories add, from episodes in which chance decided whether to show them.

    Of the documents of another retriever, "with" is the order that Q gives, "without" their own.

    Attributes:
        namespace: The namespace.
        memory_id: The memory that it is about; None for all of them.
        episodes_with: Episodes with a reward in which memories were shown.
        episodes_without: Those in which they were held out.
        success_with: Share of successes with memories; NaN where there is no episode.
        success_without: The same without.
        difference: `success_with - success_without`, each chance of being held out for itself.
        low: Lower end of the interval; NaN where one side has fewer than 10 episodes.
        high: Upper end.
        waiting_with: Episodes with memories that have no reward yet. Where many of one side never
            get one, the difference may come from that.
        waiting_without: The same without.
        memories: The same for each memory, most episodes first, where it was asked for.
    """

    namespace: str
    memory_id: str | None
    episodes_with: int
    episodes_without: int
    success_with: float
    success_without: float
    difference: float
    low: float
    high: float
    waiting_with: int
    waiting_without: int
    memories: tuple["Lift", ...] = ()

    @property
    def episodes(self) -> int:
        """Episodes with a reward, on both sides."""
        return self.episodes_with + self.episodes_without

    @property
    def verdict(self) -> Literal["helps", "harms", "unknown"]:
        """Whether the interval lies above zero, below, or on both sides of it."""
        if self.low > 0:
            return "helps"
        return "harms" if self.high < 0 else "unknown"

    def _repr_html_(self) -> str:
        shown = {name: getattr(self, name) for name in self.__slots__ if name != "memories"}
        return html_table(shown | {"verdict": self.verdict})
