"""One-time warnings: about use that looks like a mistake, and about memories that harm."""

import logging
import threading
from collections.abc import Iterable

from langchain_memrl.config import LearningConfig
from langchain_memrl.reports import Lift

logger = logging.getLogger("langchain_memrl")

RECALLS_WITHOUT_EPISODE = 50
REWARDS_IN_A_ROW = 20
LOOK_AGAIN = 50
"""Recalls of a namespace after which the brake looks again."""
OFFERS_IN_A_ROW = 20


class Notices:
    """Counts what one open bank is asked, and says once what cannot be meant."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recalls = 0
        self._streak = self._zeros = self._offers = 0
        self._warned = False

    def recalled(self, episode_ids: Iterable[str | None]) -> None:
        """Warn at 50 recalls without an episode id: nothing can be learned from them."""
        with self._lock:
            before = self._recalls
            self._recalls += sum(episode_id is None for episode_id in episode_ids)
            due = before < RECALLS_WITHOUT_EPISODE <= self._recalls
        if due:
            logger.warning(
                "%d recalls carried no episode id, so nothing can be learned from them; pass "
                "episode_id=..., or metadata={'memrl_episode_id': ...} to a retriever",
                RECALLS_WITHOUT_EPISODE,
            )

    def offered(self, documents: int, k: int) -> None:
        """Warn at 20 recalls in a row that had no more documents than they return."""
        with self._lock:
            before = self._offers
            if before < OFFERS_IN_A_ROW:
                self._offers = before + 1 if documents <= k else 0
            due = before < self._offers == OFFERS_IN_A_ROW
        if due:
            logger.warning(
                "the last %d times there were no more documents than k=%d, so every one was "
                "returned and Q changed only their order; let the retriever find more than k",
                OFFERS_IN_A_ROW,
                k,
            )

    def rewarded(self, rewards: Iterable[float | None], learning: LearningConfig) -> None:
        """Warn at 20 rewards in a row that were all 0 or 1 where 0 is not the worst reward.

        A streak of ones alone is success, not another scale.
        """
        if learning.reward_range[0] >= 0:
            return
        with self._lock:
            due = False
            for reward in rewards:
                if reward is None or self._warned:
                    continue
                self._streak = self._streak + 1 if reward in (0, 1) else 0
                self._zeros = self._zeros + (reward == 0) if self._streak else 0
                due = self._streak >= REWARDS_IN_A_ROW and self._zeros > 0
                self._warned = due
        if due:
            logger.warning(
                "the last %d rewards were all 0 or 1, but the reward range is %s, where 0 is not "
                'a failure; use Verdict(score, scale="unit") for scores from 0 to 1',
                REWARDS_IN_A_ROW,
                learning.reward_range,
            )


class Brake:
    """Remembers, per namespace, whether memories were found to harm."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recalls: dict[str, int] = {}
        self._harmful: dict[str, bool] = {}

    def is_due(self, namespace: str) -> bool:
        """Count a recall; whether it is time to look again."""
        with self._lock:
            count = self._recalls.get(namespace, 0)
            self._recalls[namespace] = count + 1
        return count % LOOK_AGAIN == 0

    def is_on(self, namespace: str) -> bool:
        """Whether memories of a namespace are not to be shown."""
        return self._harmful.get(namespace, False)

    def set(self, lift: Lift) -> None:
        """Take over what was found, and say it when it stops the memories."""
        with self._lock:
            before = self._harmful.get(lift.namespace, False)
            self._harmful[lift.namespace] = lift.verdict == "harms"
        if lift.verdict == "harms" and not before:
            logger.warning(
                "memories of namespace %r are not shown, and documents not ranked by Q, any more: "
                "they were found to harm (success %+.3f, interval %+.3f to %+.3f, %d episodes with "
                "and %d without); lift() tells more, stop_when_harmful=False takes this back",
                lift.namespace,
                lift.difference,
                lift.low,
                lift.high,
                lift.episodes_with,
                lift.episodes_without,
            )
