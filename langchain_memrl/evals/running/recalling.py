"""What an arm sees: a recall of the product, in the arm's order, recorded exactly as shown."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from langchain_memrl.config import RecallConfig
from langchain_memrl.evals.arms import Arm
from langchain_memrl.evals.environment import Environment, Situation
from langchain_memrl.evals.rankings import RANKINGS, Tally
from langchain_memrl.evals.running.protocols import Batch
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.types import Recall, ScoredMemory

WHOLE_POOL = 1000
AS_PUBLISHED = {"distinct": False}
"""Every arm takes the k best as they are, like the paper, unless a suite asks otherwise."""


class Shown(NamedTuple):
    """What one episode saw, best first.

    Attributes:
        memories: The memories.
        names: Ids of the episodes that wrote them: the same in every run, unlike memory ids.
        q_values: Their Q when they were chosen.
    """

    memories: tuple[ScoredMemory, ...]
    names: tuple[str, ...]
    q_values: tuple[float, ...]


NOTHING_SHOWN = Shown((), (), ())


class Recaller:
    """Recalls for the tasks of a batch, all with the same Q.

    Args:
        memory: The bank.
        arm: How to recall and rank.
        environment: Its recall settings, and its truth for the oracle.
        guard: Whether a task may not recall memories of its own intent.
    """

    def __init__(
        self, memory: EpisodicMemory, arm: Arm, environment: Environment, *, guard: bool
    ) -> None:
        self._memory = memory
        self._arm = arm
        self._environment = environment
        self._guard = guard
        self._settings: dict[str, Any] = {**AS_PUBLISHED, **environment.recall, **arm.recall}
        self._k = RecallConfig(**self._settings).k
        if arm.ranking != "score":
            self._settings["k"] = WHOLE_POOL
        if arm.truth:
            self._settings["fetch_k"] = WHOLE_POOL

    def recall(self, batch: Batch, situations: Sequence[Situation], tally: Tally) -> list[Shown]:
        """Choose for every task first, then record; a frozen bank records nothing."""
        ids = batch.episode_ids
        if self._guard or self._arm.truth:  # what may be recalled differs from task to task
            pairs = zip(situations, ids, strict=True)
            found = [self._recall_one(situation, id) for situation, id in pairs]
        else:
            texts = [situation.task.text for situation in situations]
            found = self._memory.recall_many(texts, episode_ids=ids, record=False, **self._settings)
        chosen = [self._choose(recall, tally) for recall in found]
        if not batch.frozen:
            chosen = self._memory.record_many(found, chosen)
        return [_shown(recall, ids) for recall, ids in zip(found, chosen, strict=True)]

    def _recall_one(self, situation: Situation, episode_id: str) -> Recall:
        """A recall with the task's own exclusion or truth."""
        text = situation.task.text
        truth = self._environment.oracle(situation) if self._arm.truth else None
        return self._memory.recall(
            text,
            episode_id=episode_id,
            record=False,
            exclude_intents=[text] if self._guard else [],
            filter=truth,
            **self._settings,
        )

    def _choose(self, recall: Recall, tally: Tally) -> tuple[str, ...]:
        """Which of them are shown. What an episode recorded before stands as it is."""
        if self._arm.ranking == "score":
            return recall.ids
        ranked = RANKINGS[self._arm.ranking](recall.memories, tally, recall.intent)
        return tuple(scored.id for scored in ranked[: self._k])


def _shown(recall: Recall, ids: Sequence[str]) -> Shown:
    memories = {scored.id: scored for scored in recall.memories}
    q_values = {candidate.id: candidate.q_value for candidate in recall.candidates}
    return Shown(
        tuple(memories[id] for id in ids),
        tuple(memories[id].memory.episode_id for id in ids),
        tuple(round(q_values[id], 6) for id in ids),
    )
