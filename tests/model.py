"""What a bank should be, as plain dicts: no SQLite, no FAISS, no transactions."""

from dataclasses import dataclass, field

import numpy as np

from langchain_memrl.core.scoring import cosines
from langchain_memrl.errors import (
    EpisodeError,
    MemoryNotFoundError,
    RewardConflictError,
    WriteConflictError,
)

STEP = 0.3


@dataclass
class Stored:
    """What is known of a memory."""

    number: int
    intent: str
    lesson: str
    q: float = 0.0
    updates: int = 0
    selections: int = 0
    disabled: bool = False
    pinned: bool = False


@dataclass
class Known:
    """What is known of an episode."""

    recalls: dict = field(default_factory=dict)
    reward: float | None = None
    wrote: tuple | None = None
    written_id: str | None = None
    held: tuple | None = None

    @property
    def shown(self):
        return list(dict.fromkeys(id for ids in self.recalls.values() for id in ids))


class Model:
    """Two namespaces. The `..._error` methods tell which error a call has to raise, or None."""

    def __init__(self, unit):
        self.unit = unit
        self.count = 0
        self.stored = {"default": {}, "acme": {}}
        self.known = {}

    def episode(self, space, episode):
        """What is known of an episode, which a call is about to open."""
        return self.known.setdefault((space, episode), Known())

    def look_up(self, space, episode):
        return self.known.get((space, episode), Known())

    def namespaces(self):
        """Those that hold a memory or know an episode."""
        used = {space for space, stored in self.stored.items() if stored}
        return tuple(sorted(used | {space for space, _ in self.known}))

    def nearest(self, space, task):
        """The three nearest by brute force: similarity, then fewer selections, then newer."""
        rows = [(id, one) for id, one in self.stored[space].items() if not one.disabled]
        if not rows:
            return []
        intents = np.stack([self.unit(one.intent) for _, one in rows])
        near = cosines(intents, self.unit(task))
        keys = [(-s, one.selections, -one.number) for s, (_, one) in zip(near, rows, strict=True)]
        return [rows[place][0] for place in sorted(range(len(rows)), key=keys.__getitem__)][:3]

    def alive(self, space, ids):
        return [id for id in ids if id in self.stored[space]]

    # --- recall ---------------------------------------------------------------------------------

    def recall_error(self, space, episode, task):
        known = self.look_up(space, episode)
        closed = known.reward is not None and task not in known.recalls
        return EpisodeError if closed else None

    def expected_recall(self, space, episode, task):
        known = self.look_up(space, episode)
        if task in known.recalls:
            return self.alive(space, known.recalls[task])
        return self.nearest(space, task)

    def record(self, space, episode, task, ids):
        known = self.episode(space, episode)
        if task not in known.recalls:
            self.show(space, [id for id in ids if id not in known.shown])
            known.recalls[task] = ids

    def show(self, space, ids):
        for id in ids:
            self.stored[space][id].selections += 1

    # --- remember and hold ----------------------------------------------------------------------

    def write_error(self, space, episode, task, text):
        known = self.look_up(space, episode)
        if known.written_id is None:
            return None
        if known.wrote != (task, text):
            return WriteConflictError
        return None if known.written_id in self.stored[space] else MemoryNotFoundError

    def write(self, space, episode, id, task, text):
        """Whether this was the first call, which writes."""
        known = self.episode(space, episode)
        if known.written_id is not None:
            assert id == known.written_id
            return False
        known.wrote, known.written_id = (task, text), id
        self.add(space, id, task, text)
        return True

    def add(self, space, id, intent, lesson):
        self.count += 1
        self.stored[space][id] = Stored(self.count, intent, lesson)

    def hold_error(self, space, episode, task, text):
        held = self.look_up(space, episode).held
        return None if held in (None, (task, text)) else WriteConflictError

    def hold(self, space, episode, task, text, written_id):
        """Whether the held answer became a memory."""
        known = self.episode(space, episode)
        if known.written_id is not None:
            assert written_id == known.written_id
            return False
        known.held = (task, text)
        return self.write_held(space, known, written_id)

    def write_held(self, space, known, written_id):
        if known.held is None or known.reward is None or known.written_id is not None:
            assert written_id == known.written_id
            return False
        known.written_id = written_id
        self.add(space, written_id, known.held[0], "")
        return True

    # --- reinforce ------------------------------------------------------------------------------

    def reward_error(self, space, episode, reward, ids=None):
        known = self.look_up(space, episode)
        if known.reward not in (None, reward):
            return RewardConflictError
        others = ids is not None and set(ids) != set(known.shown)
        if known.reward is not None:
            return EpisodeError if others else None
        if ids is None:
            return None if (space, episode) in self.known else EpisodeError
        if known.shown:
            return EpisodeError if others else None
        return None if self.alive(space, ids) == ids else MemoryNotFoundError

    def reward(self, space, episode, reward, result, ids=None):
        """Whether the held answer became a memory."""
        known = self.episode(space, episode)
        assert result.applied == (known.reward is None)
        if known.reward is not None:
            return False
        if ids is not None and not known.shown:
            known.recalls[None] = ids
            self.show(space, ids)
        known.reward = reward
        shown = known.shown if ids is None else ids
        alive = self.alive(space, shown)
        assert [credit.id for credit in result.credits] == alive
        assert list(result.skipped) == [id for id in shown if id not in alive]
        for id in alive:
            one = self.stored[space][id]
            one.q, one.updates = one.q + STEP * (reward - one.q), one.updates + 1
        return self.write_held(space, known, result.memory_id)

    # --- forget ---------------------------------------------------------------------------------

    def useless(self, space, max_q, min_updates):
        return tuple(
            id
            for id, one in self.stored[space].items()
            if one.q <= max_q and one.updates >= min_updates and not one.pinned
        )

    def forget(self, space, ids):
        for id in ids:
            del self.stored[space][id]
        for (where, _), known in self.known.items():
            if where == space and known.written_id in ids:
                known.held = None

    def clear(self, space):
        self.stored[space] = {}
        self.known = {key: known for key, known in self.known.items() if key[0] != space}
