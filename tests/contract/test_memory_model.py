"""Random programs against plain dicts: whatever is called in whatever order, both agree."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

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
from model import Model

from langchain_memrl import EpisodicMemory
from langchain_memrl.errors import MemoryNotFoundError

EMBEDDINGS = FakeEmbeddings(dimension=4)
RECALL = {"k": 3, "fetch_k": 50, "q_weight": 0, "score_threshold": None, "distinct": False}

spaces = st.sampled_from(["default", "acme"])
tasks = st.sampled_from([f"task {n}" for n in range(5)])
texts = st.sampled_from(["first", "second"])
episodes = st.sampled_from([f"e{n}" for n in range(6)])
rewards = st.sampled_from([1.0, -1.0, 0.5])


def unit(text):
    vector = np.array(EMBEDDINGS.vector(text))
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def several(*parts):
    """Two or three calls at once, each of another episode."""
    call = st.tuples(episodes, *parts)
    return st.lists(call, min_size=2, max_size=3, unique_by=lambda one: one[0])


@contextmanager
def expecting(error):
    """The block raises exactly this error, or nothing where it is None; tells which of both."""
    if error is None:
        yield False
        return
    with pytest.raises(error) as caught:
        yield True
    assert caught.type is error


class Program(RuleBasedStateMachine):
    ids = Bundle("ids")

    @initialize()
    def make_bank(self):
        self.folder = tempfile.TemporaryDirectory()
        self.folders = (Path(self.folder.name) / f"bank {number}" for number in range(1000))
        self.place = self.new_place()
        self.memory = EpisodicMemory.open(self.place, embeddings=EMBEDDINGS)
        self.model = Model(unit)

    def new_place(self):
        """Where no bank is yet."""
        return next(self.folders)

    def teardown(self):
        if hasattr(self, "memory"):
            assert self.memory.verify().problems == ()
            self.memory.close()
            self.folder.cleanup()

    # --- the verbs ------------------------------------------------------------------------------

    @rule(target=ids, space=spaces, task=tasks, text=texts, episode=st.none() | episodes)
    def remember(self, space, task, text, episode):
        arguments = {"episode_id": episode, "namespace": space}
        with expecting(self.model.write_error(space, episode, task, text)) as fails:
            made = self.memory.remember(task, text, **arguments)
        if fails or not self.model.write(space, made.episode_id, made.id, task, text):
            return multiple()
        return (space, made.id)

    @rule(target=ids, space=spaces, calls=several(tasks, texts))
    def remember_many(self, space, calls):
        drafts = [{"episode_id": e, "intent": task, "lesson": text} for e, task, text in calls]
        errors = filter(None, (self.model.write_error(space, *call) for call in calls))
        with expecting(next(errors, None)) as fails:
            made = self.memory.remember_many(drafts, namespace=space)
        if fails:
            return multiple()
        return multiple(
            *(
                (space, one.id)
                for one, (episode, task, text) in zip(made, calls, strict=True)
                if self.model.write(space, episode, one.id, task, text)
            )
        )

    @rule(space=spaces, task=tasks)
    def recall(self, space, task):
        found = self.memory.recall(task, namespace=space, **RECALL)
        assert list(found.ids) == self.model.nearest(space, task)

    @rule(space=spaces, task=tasks, episode=episodes)
    def recall_in_an_episode(self, space, task, episode):
        with expecting(self.model.recall_error(space, episode, task)) as fails:
            found = self.memory.recall(task, episode_id=episode, namespace=space, **RECALL)
        if not fails:
            assert list(found.ids) == self.model.expected_recall(space, episode, task)
            self.model.record(space, episode, task, list(found.ids))

    @rule(space=spaces, calls=several(tasks))
    def recall_many(self, space, calls):
        calls = [call for call in calls if not self.model.recall_error(space, *call)]
        expected = [self.model.expected_recall(space, *call) for call in calls]
        found = self.memory.recall_many(
            [task for _, task in calls],
            episode_ids=[episode for episode, _ in calls],
            namespace=space,
            **RECALL,
        )
        assert [list(one.ids) for one in found] == expected
        for call, ids in zip(calls, expected, strict=True):
            self.model.record(space, *call, ids)

    @rule(target=ids, space=spaces, episode=episodes, reward=rewards)
    def reinforce(self, space, episode, reward):
        with expecting(self.model.reward_error(space, episode, reward)) as fails:
            result = self.memory.reinforce(episode, reward=reward, namespace=space)
        if fails or not self.model.reward(space, episode, reward, result):
            return multiple()
        return (space, result.memory_id)

    @rule(
        target=ids, episode=episodes, reward=rewards, chosen=st.lists(ids, min_size=1, max_size=3)
    )
    def reinforce_ids(self, episode, reward, chosen):
        space, ids = chosen[0][0], list(dict.fromkeys(id for _, id in chosen))
        with expecting(self.model.reward_error(space, episode, reward, ids)) as fails:
            result = self.memory.reinforce(episode, reward=reward, ids=ids, namespace=space)
        if fails or not self.model.reward(space, episode, reward, result, ids):
            return multiple()
        return (space, result.memory_id)

    @rule(target=ids, space=spaces, calls=several(rewards))
    def reinforce_many(self, space, calls):
        errors = filter(None, (self.model.reward_error(space, *call) for call in calls))
        with expecting(next(errors, None)) as fails:
            results = self.memory.reinforce_many(
                [{"episode_id": episode, "reward": reward} for episode, reward in calls],
                namespace=space,
            )
        if fails:
            return multiple()
        return multiple(
            *(
                (space, result.memory_id)
                for call, result in zip(calls, results, strict=True)
                if self.model.reward(space, *call, result)
            )
        )

    @rule(target=ids, space=spaces, episode=episodes, task=tasks, text=texts)
    def hold(self, space, episode, task, text):
        arguments = {"intent": task, "trajectory": text, "namespace": space}
        with expecting(self.model.hold_error(space, episode, task, text)) as fails:
            self.memory.hold(episode, **arguments)
        if fails:
            return multiple()
        written_id = self.memory.episode(episode, namespace=space).memory_id
        if self.model.hold(space, episode, task, text, written_id):
            return (space, written_id)
        return multiple()

    # --- changing and forgetting ----------------------------------------------------------------

    def missing(self, space, id):
        return None if id in self.model.stored[space] else MemoryNotFoundError

    @rule(one=ids, text=texts)
    def update(self, one, text):
        space, id = one
        with expecting(self.missing(space, id)) as fails:
            self.memory.update(id, lesson=text, namespace=space)
        if not fails:
            self.model.stored[space][id].lesson = text

    @rule(one=ids, mark=st.sampled_from(["disabled", "pinned"]), value=st.booleans())
    def mark(self, one, mark, value):
        space, id = one
        verb = {"disabled": ("enable", "disable"), "pinned": ("unpin", "pin")}[mark][value]
        with expecting(self.missing(space, id)) as fails:
            getattr(self.memory, verb)(id, namespace=space)
        if not fails:
            setattr(self.model.stored[space][id], mark, value)

    @rule(one=consumes(ids))
    def forget(self, one):
        space, id = one
        with expecting(self.missing(space, id)) as fails:
            assert self.memory.forget(ids=[id], namespace=space) == (id,)
        if not fails:
            self.model.forget(space, [id])

    @rule(space=spaces)
    def forget_all(self, space):
        gone = self.memory.forget(all=True, namespace=space)
        assert sorted(gone) == sorted(self.model.stored[space])
        self.model.clear(space)

    @rule(space=spaces, max_q=st.sampled_from([-0.2, 0.2, 0.9]), count=st.integers(1, 3))
    def prune(self, space, max_q, count):
        gone = self.memory.prune(max_q=max_q, min_updates=count, namespace=space)
        assert gone == self.model.useless(space, max_q, count)
        self.model.forget(space, gone)

    # --- the whole bank -------------------------------------------------------------------------

    @rule()
    def reopen(self):
        self.memory.close()
        self.memory = EpisodicMemory.open(self.place, embeddings=EMBEDDINGS)

    @rule()
    def compact(self):
        self.memory.compact()

    @rule()
    def rebuild_index(self):
        self.memory.rebuild_index()

    @rule()
    def go_on_with_a_backup(self):
        self.place = next(self.folders)
        self.memory.backup(self.place)
        self.reopen()

    @rule()
    def go_on_with_an_import(self):
        self.place, file = self.new_place(), Path(self.folder.name) / "export.jsonl"
        self.memory.export_jsonl(file)
        self.memory.close()
        self.memory = EpisodicMemory.import_jsonl(file, self.place, embeddings=EMBEDDINGS)

    @invariant()
    def both_agree(self):
        if not hasattr(self, "memory"):
            return
        assert self.memory.namespaces() == self.model.namespaces()
        for space, stored in self.model.stored.items():
            found = self.memory.list(limit=None, namespace=space)
            assert [one.id for one in reversed(found)] == list(stored)
            for one in found:
                model = stored[one.id]
                for name in ("intent", "lesson", "updates", "selections", "disabled", "pinned"):
                    assert getattr(one, name) == getattr(model, name)
                assert one.q_value == pytest.approx(model.q, abs=1e-12)


class ServerProgram(Program):
    """On PostgreSQL; a backup goes on in a folder, an import on the server again."""

    server = None

    def new_place(self):
        return self.server.new_location()


@pytest.fixture(autouse=True)
def on_server(server):
    ServerProgram.server = server


TestProgram, TestServerProgram = Program.TestCase, ServerProgram.TestCase
if settings.get_current_profile_name() != "long":
    TestProgram.settings = settings(max_examples=25, stateful_step_count=30)
    TestServerProgram.settings = settings(max_examples=6, stateful_step_count=30)
