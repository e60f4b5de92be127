"""What is shown for a task: chosen once per episode, or held back to learn what it is worth."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_memrl.config import RecallConfig
from langchain_memrl.lifts import Lifts
from langchain_memrl.ranking import choose_memories, present
from langchain_memrl.requests import Task
from langchain_memrl.shortlist import Shortlist
from langchain_memrl.steps import Steps
from langchain_memrl.store.base import RecallRecord
from langchain_memrl.types import Memory, Recall, Withheld

WIDER = 4
WIDENINGS = 2
"""A pool without enough distinct lessons grows from 10 intents to 40 and at most 160."""


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
            self._notices.recalled(task.episode_id for task in fresh)
            shortlists = yield from self._select(space, fresh, settings, filter, exclude_intents)
            withheld = [self._withheld(space, task, settings) for task in fresh]
            chosen = [
                choose_memories(space, task, shortlist, settings, self._rng, why)
                for task, shortlist, why in zip(fresh, shortlists, withheld, strict=True)
            ]
            new = iter(chosen)
            answers = [answer or next(new) for answer in earlier]
            if record:
                answers = self._store.record(answers)
            known = dict(zip((one.recall_id for one in chosen), shortlists, strict=True))
            found = [
                self._shown(answer, known.get(answer.recall_id), record=record)
                for answer in answers
            ]
            if last or [*map(len, found)] == [len(answer.memory_ids) for answer in answers]:
                break
            # One of them was forgotten meanwhile: choose again.
        return [*map(present, answers, found)]

    def _select(
        self,
        space: str,
        tasks: Sequence[Task],
        settings: RecallConfig,
        filter: Mapping[str, Any] | None,
        exclude_intents: Sequence[str],
    ) -> Steps[list[Shortlist | None]]:
        """Rank a pool for each task, and a larger one where it offers the same all over again."""
        pools = yield from self._pools(space, tasks, settings, filter, exclude_intents)
        found = [None if pool is None else Shortlist(pool, settings) for pool in pools]
        for step in range(WIDENINGS + 1):
            for shortlist in found:
                while shortlist is not None and (ids := shortlist.unread()):
                    shortlist.read(self._store.memories(space, ids))
            small = [i for i, one in enumerate(found) if one is not None and one.is_too_small]
            if not small or step == WIDENINGS:
                break
            wider = replace(settings, fetch_k=settings.fetch_k * WIDER ** (step + 1))
            asked = [tasks[i] for i in small]
            pools = yield from self._pools(space, asked, wider, filter, exclude_intents)
            for i, pool in zip(small, pools, strict=True):
                if pool is not None:
                    found[i] = Shortlist(pool, wider, found[i])
        return found

    def _shown(
        self, answer: RecallRecord, shortlist: Shortlist | None, *, record: bool
    ) -> Mapping[str, Memory]:
        """The memories of an answer. Recording counts them, so they are read again then."""
        known = {} if shortlist is None else shortlist.memories
        if not (record and answer.episode_id) and known.keys() >= set(answer.memory_ids):
            return {id: known[id] for id in answer.memory_ids}
        return self._store.memories(answer.namespace, answer.memory_ids)

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
