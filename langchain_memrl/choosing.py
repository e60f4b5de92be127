"""What is shown for a task: chosen once per episode, or held back to learn what it is worth."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_memrl.config import RecallConfig
from langchain_memrl.lifts import Lifts
from langchain_memrl.ranking import choose_memories, present
from langchain_memrl.requests import Task
from langchain_memrl.steps import Steps
from langchain_memrl.types import Recall, Withheld


class Choosing(Lifts):
    """From tasks to recalls."""

    def _choose(
        self,
        space: str,
        tasks: Sequence[Task],
        settings: RecallConfig,
        filter: Mapping[str, Any] | None,
        exclude_intents: Sequence[str],
        *,
        record: bool,
    ) -> Steps[list[Recall]]:
        """Gate and rank for each task that its episode has not recorded yet."""
        for last in (False, False, True):
            earlier = [self._recorded(space, task) for task in tasks]
            fresh = [task for task, answer in zip(tasks, earlier, strict=True) if answer is None]
            pools = yield from self._pools(space, fresh, settings, filter, exclude_intents)
            withheld = [self._withheld(space, task, settings) for task in fresh]
            chosen = (
                choose_memories(space, task, pool, settings, self._rng, why)
                for task, pool, why in zip(fresh, pools, withheld, strict=True)
            )
            answers = [answer or next(chosen) for answer in earlier]
            if record:
                answers = self._store.record(answers)
            found = [self._store.memories(space, answer.memory_ids) for answer in answers]
            if last or [*map(len, found)] == [len(answer.memory_ids) for answer in answers]:
                break
            # One of them was forgotten meanwhile: choose again.
        return [*map(present, answers, found)]

    def _withheld(self, space: str, task: Task, settings: RecallConfig) -> Withheld:
        """Why nothing may be shown for a task; empty: it may."""
        if settings.stop_when_harmful and self._is_harmful(space):
            return "harmful"
        if not settings.holdout or task.episode_id is None:
            return ""
        return "held_out" if self._draw(space, task.episode_id) < settings.holdout else ""

    def _draw(self, space: str, episode_id: str) -> float:
        """A number in [0, 1) that an episode always draws, and that nobody can foresee."""
        name = b"\0".join((b"holdout", space.encode(), episode_id.encode()))
        drawn = hmac.new(self.fence_key, name, hashlib.sha256).digest()[:8]
        return int.from_bytes(drawn, "big") / 2**64
