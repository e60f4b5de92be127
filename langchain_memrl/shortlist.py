"""Which of a ranked pool may be taken, and in which order: distinct lessons first, sources capped.

Texts are read no further than the choice needs: the k best, which a recall shows anyway, and more
only where some of them are near-identical, or too many come from one source.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from langchain_memrl.config import RecallConfig
from langchain_memrl.core.likeness import leaders
from langchain_memrl.core.scoring import blend
from langchain_memrl.core.selection import Integers, prefer, rank
from langchain_memrl.store.base import Pool
from langchain_memrl.types import Memory


class Shortlist:
    """One pool, ranked, and what is known of the texts in it.

    Args:
        pool: The candidates.
        settings: How to rank and what to prefer.
        narrower: The shortlist from a smaller `fetch_k` that this one continues: what was in its
            pool is taken before what is not.

    Attributes:
        pool: The candidates.
        scores: Their scores.
        order: Their positions, best first.
        memories: Those that were read, by id.
    """

    def __init__(
        self, pool: Pool, settings: RecallConfig, narrower: "Shortlist | None" = None
    ) -> None:
        self.pool = pool
        self._settings = settings
        self._mean, self._std = (0.0, 0.1) if pool.calibration is None else pool.calibration[1:3]
        self.scores = blend(
            pool.similarity,
            pool.q_values,
            q_weight=settings.q_weight,
            normalization=settings.normalization,
            bank_mean=self._mean,
            bank_std=self._std,
        )
        self.order = rank(self.scores.score, pool.similarity, pool.selections, pool.age)
        self.memories: dict[str, Memory] = {}
        self._places, self._read = self.order, 0
        self._taking: Integers | None = None
        self._firsts = 0
        self._narrower = narrower
        if narrower is not None:
            known = set(narrower.pool.ids)
            late = np.array([pool.ids[place] not in known for place in self.order], dtype=bool)
            self._places = self.order[np.argsort(late, kind="stable")]
            self.memories = narrower.memories

    def unread(self) -> Sequence[str]:
        """The ids that have to be read before anything can be chosen; empty: none any more."""
        whole, k = len(self._places), self._settings.k
        uncut = whole < self._settings.fetch_k
        small = whole <= k and uncut and self._settings.max_per_source is None
        if small or not (self._settings.distinct or self._settings.max_per_source):
            return ()
        every = self._settings.max_per_source is not None and self._settings.epsilon > 0
        while self._read < whole and (not self._read or self._firsts < k or every):
            self._read = whole if every else min(whole, max(k, 2 * self._read))
            ids = [self.pool.ids[place] for place in self._places[: self._read]]
            missing = [id for id in ids if id not in self.memories]
            if missing:
                return missing
            self._prefer()
        return ()

    def read(self, memories: Mapping[str, Memory]) -> None:
        """Take in what was unread; what is missing was forgotten meanwhile."""
        self.memories = {**self.memories, **memories}
        self._prefer()

    def _prefer(self) -> None:
        """Order what is known: the first of each kind, then the others, at most so many of each."""
        ids = self.pool.ids
        known = [place for place in self._places[: self._read] if ids[place] in self.memories]
        found = [self.memories[ids[place]] for place in known]
        texts = [memory.lesson or memory.trajectory for memory in found]
        first = leaders(texts) if self._settings.distinct else [True] * len(texts)
        most = self._settings.max_per_source
        if most is None and all(first) and self._narrower is None:
            self._firsts = len(known)
            return  # nothing to prefer: the k best are the choice
        sources = [memory.source for memory in found]
        places = np.array(known, dtype=np.int64)
        taking, self._firsts = prefer(places, first, sources, most)
        rest = self._places[self._read :] if most is None else ()
        self._taking = np.array([*taking, *rest], dtype=np.int64)

    def taking(self) -> Integers | None:
        """Positions in the order in which they are taken; see `core.selection.choose`."""
        return self._taking

    @property
    def is_too_small(self) -> bool:
        """Whether more intents could give what is missing: other lessons, or other sources."""
        size = len(self.pool.ids)
        grown = self._narrower is None or size > len(self._narrower.pool.ids)
        lacking = self._read == size and self._firsts < min(self._settings.k, size)
        return lacking and grown and size >= self._settings.fetch_k

    def notes(self) -> dict[str, Any]:
        """What is needed to repeat the ranking."""
        widened = {} if self._narrower is None else {"widened_to": self._settings.fetch_k}
        return {
            "threshold": self.pool.threshold,
            "similarity_mean": self._mean,
            "similarity_std": self._std,
            **widened,
        }
