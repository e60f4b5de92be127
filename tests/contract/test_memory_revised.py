"""Rewards that are revised, come early, or never come."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_memrl import EpisodicMemory, LearningConfig
from langchain_memrl.core.learning import q_step
from langchain_memrl.errors import (
    EpisodeError,
    InputError,
    RewardConflictError,
    RewardError,
)
from langchain_memrl.offline import HashingEmbeddings

ROUTER = "reset a router"


@pytest.fixture
def a(memory):
    return memory.remember(ROUTER, "hold the button").id


def standing(memory):
    """All that a reward may move."""
    return (
        [(one.id, one.q_value, one.updates, one.outcome) for one in memory.list(limit=None)],
        [memory.history(one.id) for one in memory.list(limit=None)],
    )


# --- revised ------------------------------------------------------------------------------------


def test_a_revised_reward_moves_q_as_if_it_had_been_given_then(memory, a):
    for n, reward in enumerate([1.0, -1.0, 0.5, 1.0]):
        memory.reinforce(f"e{n}", reward=reward, ids=[a])
    before = memory.get(a).q_value
    result = memory.reinforce("e1", reward=1.0, revise=True)
    # two later updates: .3 * .7^2 * (1 - -1)
    assert memory.get(a).q_value - before == pytest.approx(0.3 * 0.7**2 * 2)
    assert (result.applied, result.reward, result.revised_from) == (True, 1.0, -1.0)
    assert memory.get(a).updates == 4
    assert [step.reward for step in memory.history(a)] == [1.0, 1.0, 0.5, 1.0]
    assert memory.verify().ok
    assert memory.episode("e1").reward == 1.0


@settings(max_examples=30, deadline=None)
@given(
    rewards=st.lists(st.floats(-1, 1), min_size=1, max_size=6),
    sizes=st.lists(st.floats(0, 1), min_size=6, max_size=6),
    place=st.integers(0, 5),
    new=st.floats(-1, 1),
)
def test_whatever_came_later_with_whatever_step_size(rewards, sizes, place, new):
    place %= len(rewards)
    expected = 0.0
    with EpisodicMemory.open(":memory:", embeddings=HashingEmbeddings(16)) as memory:
        id = memory.remember(ROUTER, "hold").id
        for n, reward in enumerate(rewards):
            memory.configure(step_size=sizes[n])
            memory.reinforce(f"e{n}", reward=reward, ids=[id])
        memory.reinforce(f"e{place}", reward=new, revise=True)
        for n, reward in enumerate(rewards):
            expected = float(q_step(expected, new if n == place else reward, sizes[n]))
        assert memory.get(id).q_value == expected
        assert memory.verify().ok


def test_a_revision_reaches_exactly_the_memories_of_its_episode(memory, a):
    b = memory.remember("bake a cake", "weigh").id
    memory.reinforce("both", reward=1.0, ids=[a, b])
    memory.reinforce("one", reward=1.0, ids=[b])
    memory.reinforce("one", reward=-1.0, revise=True)
    assert memory.get(a).q_value == pytest.approx(0.3)
    assert memory.get(b).q_value == pytest.approx(0.3 * 0.7 - 0.3)


def test_without_revise_another_reward_is_still_a_conflict(memory, a):
    memory.reinforce("e", reward=1.0, ids=[a])
    before = standing(memory)
    with pytest.raises(RewardConflictError, match="revise=True"):
        memory.reinforce("e", reward=0.5)
    assert standing(memory) == before


def test_repeats_of_both_rewards_change_nothing(memory, a):
    memory.reinforce("e", reward=1.0, ids=[a])
    memory.reinforce("e", reward=-1.0, revise=True)
    before = standing(memory)
    again = memory.reinforce("e", reward=-1.0, revise=True)
    late = memory.reinforce("e", reward=1.0)  # a queue delivers the first reward once more
    assert (again.applied, again.reward) == (False, -1.0)
    assert (late.applied, late.reward) == (False, -1.0)
    assert standing(memory) == before


def test_a_reward_may_be_revised_again_and_back(memory, a):
    memory.reinforce("e", reward=1.0, ids=[a])
    before = standing(memory)
    memory.reinforce("e", reward=-1.0, revise=True)
    memory.reinforce("e", reward=0.0, revise=True)
    back = memory.reinforce("e", reward=1.0, revise=True)
    assert back.revised_from == 0.0
    assert standing(memory) == before


def test_a_revision_of_an_episode_without_a_reward_is_its_reward(memory, a):
    memory.recall(ROUTER, episode_id="e", score_threshold=None)
    result = memory.reinforce("e", reward=1.0, revise=True)
    assert (result.applied, result.revised_from) == (True, None)


def test_an_unusable_revision_changes_nothing(memory, a):
    memory.reinforce("e", reward=1.0, ids=[a])
    before = standing(memory)
    with pytest.raises(RewardError):
        memory.reinforce("e", reward=7.0, revise=True)
    with pytest.raises(EpisodeError, match="other memories"):
        memory.reinforce("e", reward=0.0, revise=True, ids=[memory.remember("x", "y").id])
    assert standing(memory)[0][1:] == before[0]


def test_a_step_by_another_rule_since_refuses_the_revision(memory, a):
    memory.reinforce("e", reward=1.0, ids=[a])
    memory.reinforce("later", reward=1.0, ids=[a])
    with memory._store._rows.write() as db:
        db.execute("UPDATE q_history SET after = 0.9 WHERE seq = 2")
        db.execute("UPDATE memories SET q = 0.9")
    with pytest.raises(RewardConflictError, match="another rule"):
        memory.reinforce("e", reward=-1.0, revise=True)
    assert memory.get(a).q_value == 0.9
    assert memory.episode("e").reward == 1.0
    memory.reinforce("later", reward=1.0)


def test_the_outcome_of_what_the_episode_wrote_follows(memory, a):
    memory.reinforce("e", reward=1.0, ids=[a])
    written = memory.remember(ROUTER, "it worked", outcome="success", episode_id="e")
    judged = memory.remember("cake", "half done", outcome="unknown", episode_id="f")
    memory.reinforce("f", reward=1.0)
    memory.reinforce("e", reward=-1.0, revise=True)
    memory.reinforce("f", reward=-1.0, revise=True)
    assert memory.get(written.id).outcome == "failure"
    assert memory.get(judged.id).outcome == "unknown"  # somebody had said otherwise
    assert memory.verify().ok
    assert memory.remember(ROUTER, "it worked", outcome="success", episode_id="e").id == written.id


def test_a_revision_survives_forgetting_export_and_import(memory, a, tmp_path):
    b = memory.remember("bake", "weigh").id
    memory.reinforce("e", reward=1.0, ids=[a, b])
    memory.forget(ids=[b])
    result = memory.reinforce("e", reward=-1.0, revise=True)
    assert [credit.id for credit in result.credits] == [a]
    memory.export_jsonl(tmp_path / "dump.jsonl")
    with EpisodicMemory.import_jsonl(tmp_path / "dump.jsonl", ":memory:") as copy:
        assert standing(copy) == standing(memory)
        assert copy.reinforce("e", reward=1.0).applied is False
        assert copy.verify().ok


# --- early --------------------------------------------------------------------------------------


def test_a_reward_that_comes_before_its_recall_waits_for_it(memory, a):
    first = memory.reinforce("e", reward=1.0, early=True)
    assert (first.applied, first.early) == (False, True)
    assert memory.get(a).q_value == 0
    memory.recall(ROUTER, episode_id="e", score_threshold=None)
    assert memory.get(a).q_value == pytest.approx(0.3)
    assert memory.episode("e").reward == 1.0
    assert memory.reinforce("e", reward=1.0).applied is False
    assert memory.stats().open_episodes == 0
    assert memory.verify().ok


def test_without_early_an_unknown_episode_is_an_error(memory, a):
    with pytest.raises(EpisodeError, match="early=True"):
        memory.reinforce("e", reward=1.0)
    memory.recall(ROUTER, episode_id="e", score_threshold=None)
    assert memory.get(a).q_value == 0


def test_an_early_reward_writes_the_answer_that_is_held_later(memory):
    memory.reinforce("e", reward=-1.0, early=True)
    memory.hold("e", intent=ROUTER, trajectory="pulled the plug")
    (written,) = memory.list()
    assert (written.trajectory, written.outcome) == ("pulled the plug", "failure")


def test_another_early_reward_is_a_conflict_unless_it_revises(memory, a):
    memory.reinforce("e", reward=1.0, early=True)
    memory.reinforce("e", reward=1.0, early=True)
    with pytest.raises(RewardConflictError, match="already waits"):
        memory.reinforce("e", reward=-1.0, early=True)
    memory.reinforce("e", reward=-1.0, early=True, revise=True)
    memory.recall(ROUTER, episode_id="e", score_threshold=None)
    assert memory.get(a).q_value == pytest.approx(-0.3)


def test_early_for_a_known_episode_is_an_ordinary_reward(memory, a):
    memory.recall(ROUTER, episode_id="e", score_threshold=None)
    result = memory.reinforce("e", reward=1.0, early=True)
    assert (result.applied, result.early) == (True, False)


def test_an_early_reward_outlives_the_process_and_an_export(tmp_path):
    with EpisodicMemory.open(tmp_path / "bank", embeddings=HashingEmbeddings(16)) as memory:
        memory.remember(ROUTER, "hold")
        memory.reinforce("e", reward=1.0, early=True)
        memory.export_jsonl(tmp_path / "dump.jsonl")
    dump = tmp_path / "dump.jsonl"
    with EpisodicMemory.import_jsonl(
        dump, tmp_path / "copy", embeddings=HashingEmbeddings(16)
    ) as copy:
        copy.recall(ROUTER, episode_id="e", score_threshold=None)
        assert copy.list()[0].q_value == pytest.approx(0.3)


# --- never --------------------------------------------------------------------------------------


@pytest.fixture
def clock():
    """A clock that can be moved."""

    class Clock:
        now = datetime(2026, 1, 1, tzinfo=UTC)

        def __call__(self):
            return self.now

    return Clock()


@pytest.fixture
def dated(clock):
    from langchain_memrl.store.embedded.local import LocalStore

    store = LocalStore(":memory:", learning=LearningConfig(), now=clock)
    with EpisodicMemory(store, HashingEmbeddings(16)) as memory:
        yield memory


def ask(memory, episode_id):
    memory.recall(ROUTER, episode_id=episode_id, score_threshold=None)


def test_open_episodes_are_those_that_wait_oldest_first(dated, clock):
    dated.remember(ROUTER, "hold")
    for number in range(4):
        ask(dated, f"e{number}")
        clock.now += timedelta(hours=1)
    dated.hold("held", intent="bake", trajectory="weighed")
    dated.reinforce("e1", reward=1.0)
    assert [one.episode_id for one in dated.open_episodes()] == ["e0", "e2", "e3", "held"]
    assert [one.episode_id for one in dated.open_episodes(limit=2)] == ["e0", "e2"]
    old = dated.open_episodes(older_than=timedelta(hours=1, minutes=30))
    assert [one.episode_id for one in old] == ["e0", "e2"]
    assert dated.open_episodes(namespace="other") == []
    assert dated.stats().open_episodes == 4


def test_expired_episodes_are_closed_and_teach_nothing(dated, clock):
    id = dated.remember(ROUTER, "hold").id
    ask(dated, "old")
    dated.hold("old", intent=ROUTER, trajectory="something private")
    clock.now += timedelta(days=30)
    ask(dated, "new")
    expired = dated.expire_episodes(older_than=timedelta(days=7))
    assert [one.episode_id for one in expired] == ["old"]
    assert [one.episode_id for one in dated.open_episodes()] == ["new"]
    assert dated.stats().open_episodes == 1
    assert dated.get(id).q_value == 0
    assert dated.expire_episodes(older_than=timedelta(days=7)) == []
    assert dated.verify().ok
    dated.rebuild_index()
    assert dated.stats().open_episodes == 1
    late = dated.reinforce("old", reward=1.0)  # better late than never
    assert late.applied
    assert late.memory_id is None  # the answer it held is gone
    assert dated.get(id).q_value == pytest.approx(0.3)


def test_no_signal_may_mean_a_reward(dated, clock):
    id = dated.remember(ROUTER, "hold").id
    ask(dated, "old")
    dated.hold("old", intent=ROUTER, trajectory="did it")
    clock.now += timedelta(days=8)
    dated.expire_episodes(older_than=timedelta(days=7), reward=0.5)
    assert dated.get(id).q_value == pytest.approx(0.15)
    assert dated.episode("old").reward == 0.5
    assert dated.list()[0].trajectory == "did it"
    assert dated.open_episodes() == []


def test_unusable_ages_and_rewards_are_refused(dated):
    with pytest.raises(InputError, match="timedelta"):
        dated.expire_episodes(older_than=7)
    with pytest.raises(InputError, match="at least 0"):
        dated.open_episodes(older_than=timedelta(days=-1))
    with pytest.raises(RewardError):
        dated.expire_episodes(older_than=timedelta(0), reward=3.0)


async def test_awaited_forms_do_the_same(memory, a):
    await memory.areinforce("e", reward=1.0, early=True)
    await memory.arecall(ROUTER, episode_id="e", score_threshold=None)
    result = await memory.areinforce("e", reward=-1.0, revise=True)
    assert result.revised_from == 1.0
    assert await memory.aopen_episodes() == []
    assert await memory.aexpire_episodes(older_than=timedelta(0)) == []


# --- an early reward and what follows it --------------------------------------------------------


def test_an_episode_goes_on_recalling_after_its_early_reward(memory, a):
    b = memory.remember("bake a cake", "weigh").id
    memory.reinforce("e", reward=1.0, early=True)
    for _ in range(2):
        memory.recall(ROUTER, k=1, episode_id="e", score_threshold=None)
        memory.recall("bake a cake", k=1, episode_id="e", score_threshold=None)
    assert [memory.get(id).q_value for id in (a, b)] == [pytest.approx(0.3)] * 2
    assert [memory.get(id).updates for id in (a, b)] == [1, 1]
    assert memory.verify().ok
    memory.reinforce("e", reward=-1.0, revise=True)
    assert [memory.get(id).q_value for id in (a, b)] == [pytest.approx(-0.3)] * 2


def test_a_reward_that_came_first_by_another_way_blocks_nothing(memory, a):
    memory.reinforce("e", reward=1.0, early=True)
    memory.reinforce("e", reward=-1.0, ids=[a])
    memory.hold("e", intent=ROUTER, trajectory="did it")
    assert memory.episode("e").reward == -1.0
    assert memory.get(a).q_value == pytest.approx(-0.3)
    memory.recall(ROUTER, episode_id="e", score_threshold=None)
    assert memory.get(a).updates == 1


def test_an_early_reward_outside_a_changed_range_waits_and_stops_nothing(memory, a):
    memory.reinforce("e", reward=1.0, early=True)
    memory.configure(reward_range=(-0.5, 0.5))
    memory.recall(ROUTER, episode_id="e", score_threshold=None)
    assert memory.episode("e").reward is None
    memory.reinforce("e", reward=0.5)
    assert memory.get(a).q_value == pytest.approx(0.15)
