"""Simple rivals of Q: the pool of a recall, put into another order by counts of what followed."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from langchain_memrl.types import ScoredMemory

PRIOR_RATE = 0.5
PRIOR_COUNT = 2
ADVANTAGE_WEIGHT = 1.5
ADVANTAGE_COUNT = 3


class Tally:
    """What followed when a memory was shown: +1 for a reward above zero, -1 below."""

    def __init__(self) -> None:
        self._signs: dict[str, list[int]] = defaultdict(list)

    def add(self, names: Iterable[str], reward: float | None) -> None:
        """Count one episode for the memories that it showed."""
        if reward:
            for name in names:
                self._signs[name].append(1 if reward > 0 else -1)

    def signs(self, scored: ScoredMemory) -> Sequence[int]:
        """The outcomes of the episodes that showed a memory, oldest first."""
        return self._signs.get(scored.memory.episode_id, ())


Ranking = Callable[[Sequence[ScoredMemory], Tally, str], list[ScoredMemory]]


def latest(pool: Sequence[ScoredMemory], tally: Tally, intent: str) -> list[ScoredMemory]:
    """Only the newest memory of this very task (Reflexion on a single task)."""
    own = [scored for scored in pool if scored.memory.intent == intent]
    return sorted(own, key=lambda scored: scored.id, reverse=True)[:1]


def success_rate(pool: Sequence[ScoredMemory], tally: Tally, intent: str) -> list[ScoredMemory]:
    """By `(successes + 1) / (n + 2)`; ties keep the order of similarity."""

    def rate(scored: ScoredMemory) -> float:
        signs = tally.signs(scored)
        won = sum(sign > 0 for sign in signs)
        return (won + PRIOR_RATE * PRIOR_COUNT) / (len(signs) + PRIOR_COUNT)

    return sorted(pool, key=rate, reverse=True)


def last_success(pool: Sequence[ScoredMemory], tally: Tally, intent: str) -> list[ScoredMemory]:
    """First what helped when it was last shown, or, not shown yet, was itself a success."""

    def sign(scored: ScoredMemory) -> int:
        own = {"success": 1, "failure": -1}.get(scored.memory.outcome, 0)
        return [own, *tally.signs(scored)][-1]

    return sorted(pool, key=sign, reverse=True)


def shrunk(pool: Sequence[ScoredMemory], tally: Tally, intent: str) -> list[ScoredMemory]:
    """By `sim_z + 1.5 * (sum of advantages) / (n + 3)`, advantages being the signs."""

    def score(scored: ScoredMemory) -> float:
        signs = tally.signs(scored)
        advantage = ADVANTAGE_WEIGHT * sum(signs) / (len(signs) + ADVANTAGE_COUNT)
        return scored.similarity_part + advantage

    return sorted(pool, key=score, reverse=True)


RANKINGS: dict[str, Ranking] = {
    "latest": latest,
    "success-rate": success_rate,
    "last-success": last_success,
    "shrunk": shrunk,
}
