"""Random programs against a plain dict: whatever is called in whatever order, both agree."""

import tempfile
from dataclasses import dataclass, field

import numpy as np
import pytest
from fakes import FakeEmbeddings
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from langchain_memrl import EpisodicMemory
from langchain_memrl.core.scoring import cosines
from langchain_memrl.errors import (
    EpisodeError,
    MemoryNotFoundError,
    RewardConflictError,
    WriteConflictError,
)

EMBEDDINGS = FakeEmbeddings(dimension=4)
RECALL = {"k": 3, "fetch_k": 50, "q_weight": 0, "score_threshold": None}

spaces = st.sampled_from(["default", "acme"])
tasks = st.sampled_from([f"task {n}" for n in range(5)])
texts = st.sampled_from(["first", "second"])
episodes = st.sampled_from([f"e{n}" for n in range(6)])
rewards = st.sampled_from([1.0, -1.0, 0.5])


def unit(text):
    vector = np.array(EMBEDDINGS.vector(text))
    return (vector / np.linalg.norm(vector)).astype(np.float32)


@dataclass
class Stored:
    """What the model knows of a memory."""

    number: int
    intent: str
    lesson: str
    q: float = 0.0
    updates: int = 0
    selections: int = 0


@dataclass
class Known:
    """What the model knows of an episode."""

    recalls: dict = field(default_factory=dict)
    reward: float | None = None
    wrote: tuple | None = None
    written_id: str | None = None
    held: tuple | None = None

    @property
    def shown(self):
        return list(dict.fromkeys(id for ids in self.recalls.values() for id in ids))


class Model(RuleBasedStateMachine):
    ids = Bundle("ids")

    @initialize()
    def make_bank(self):
        self.folder = tempfile.TemporaryDirectory()
        self.memory = EpisodicMemory.open(self.folder.name, embeddings=EMBEDDINGS)
        self.count = 0
        self.stored = {"default": {}, "acme": {}}
        self.known = {}

    def teardown(self):
        if hasattr(self, "memory"):
            assert self.memory.verify().problems == ()
            self.memory.close()
            self.folder.cleanup()

    def add(self, space, id, intent, lesson):
        self.count += 1
        self.stored[space][id] = Stored(self.count, intent, lesson)

    def nearest(self, space, task):
        """The three nearest by brute force: similarity, then fewer selections, then newer."""
        rows = list(self.stored[space].items())
        if not rows:
            return []
        near = cosines(np.stack([unit(one.intent) for _, one in rows]), unit(task))
        keys = [(-s, one.selections, -one.number) for s, (_, one) in zip(near, rows, strict=True)]
        return [rows[place][0] for place in sorted(range(len(rows)), key=keys.__getitem__)][:3]

    @rule(target=ids, space=spaces, task=tasks, text=texts, episode=st.none() | episodes)
    def remember(self, space, task, text, episode):
        known = self.known.get((space, episode), Known())
        arguments = {"episode_id": episode, "namespace": space}
        if known.written_id is not None and known.wrote != (task, text):
            with pytest.raises(WriteConflictError):
                self.memory.remember(task, text, **arguments)
            return multiple()
        if known.written_id is not None and known.written_id not in self.stored[space]:
            with pytest.raises(MemoryNotFoundError):
                self.memory.remember(task, text, **arguments)
            return multiple()
        made = self.memory.remember(task, text, **arguments)
        if known.written_id is not None:
            assert made.id == known.written_id
            return multiple()
        known.wrote, known.written_id = (task, text), made.id
        self.known[space, made.episode_id] = known
        self.add(space, made.id, task, text)
        return (space, made.id)

    @rule(space=spaces, task=tasks)
    def recall(self, space, task):
        assert list(self.memory.recall(task, namespace=space, **RECALL).ids) == self.nearest(
            space, task
        )

    @rule(space=spaces, task=tasks, episode=episodes)
    def recall_in_an_episode(self, space, task, episode):
        known = self.known.get((space, episode), Known())
        arguments = {"episode_id": episode, "namespace": space} | RECALL
        if task in known.recalls:
            alive = [id for id in known.recalls[task] if id in self.stored[space]]
            assert list(self.memory.recall(task, **arguments).ids) == alive
        elif known.reward is not None:
            with pytest.raises(EpisodeError):
                self.memory.recall(task, **arguments)
        else:
            expected = self.nearest(space, task)
            assert list(self.memory.recall(task, **arguments).ids) == expected
            for id in expected:
                self.stored[space][id].selections += id not in known.shown
            known.recalls[task] = expected
            self.known[space, episode] = known

    @rule(target=ids, space=spaces, episode=episodes, reward=rewards)
    def reinforce(self, space, episode, reward):
        known = self.known.get((space, episode))
        arguments = {"reward": reward, "namespace": space}
        if known is None or known.reward not in (None, reward):
            with pytest.raises(EpisodeError if known is None else RewardConflictError):
                self.memory.reinforce(episode, **arguments)
            return multiple()
        result = self.memory.reinforce(episode, **arguments)
        assert result.applied == (known.reward is None)
        if known.reward is not None:
            return multiple()
        known.reward = reward
        alive = [id for id in known.shown if id in self.stored[space]]
        assert [credit.id for credit in result.credits] == alive
        assert list(result.skipped) == [id for id in known.shown if id not in alive]
        for id in alive:
            one = self.stored[space][id]
            one.q, one.updates = one.q + 0.3 * (reward - one.q), one.updates + 1
        return self.written_raw(space, known, result.memory_id)

    def written_raw(self, space, known, id):
        if known.held is None or known.reward is None or known.written_id is not None:
            assert id == known.written_id
            return multiple()
        known.written_id = id
        self.add(space, id, known.held[0], "")
        return (space, id)

    @rule(target=ids, space=spaces, episode=episodes, task=tasks, text=texts)
    def hold(self, space, episode, task, text):
        known = self.known.get((space, episode), Known())
        arguments = {"intent": task, "trajectory": text, "namespace": space}
        if known.held not in (None, (task, text)):
            with pytest.raises(WriteConflictError):
                self.memory.hold(episode, **arguments)
            return multiple()
        self.memory.hold(episode, **arguments)
        self.known[space, episode] = known
        if known.written_id is not None:
            return multiple()
        known.held = (task, text)
        return self.written_raw(
            space, known, self.memory.episode(episode, namespace=space).memory_id
        )

    @rule(one=ids, text=texts)
    def update(self, one, text):
        space, id = one
        if id in self.stored[space]:
            self.memory.update(id, lesson=text, namespace=space)
            self.stored[space][id].lesson = text

    @rule(one=consumes(ids))
    def forget(self, one):
        space, id = one
        if id not in self.stored[space]:
            return
        self.memory.forget(ids=[id], namespace=space)
        del self.stored[space][id]
        for (where, _), known in self.known.items():
            if where == space and known.written_id == id:
                known.held = None

    @rule()
    def reopen(self):
        self.memory.close()
        self.memory = EpisodicMemory.open(self.folder.name, embeddings=EMBEDDINGS)

    @invariant()
    def both_agree(self):
        for space, stored in getattr(self, "stored", {}).items():
            found = self.memory.list(limit=None, namespace=space)
            assert [one.id for one in reversed(found)] == list(stored)
            for one in found:
                model = stored[one.id]
                assert (one.intent, one.lesson, one.updates, one.selections) == (
                    model.intent,
                    model.lesson,
                    model.updates,
                    model.selections,
                )
                assert one.q_value == pytest.approx(model.q, abs=1e-12)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
