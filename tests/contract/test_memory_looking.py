"""get, list, search_text, history, episode, stats: what a bank tells without a vector."""

import pytest

from langchain_memrl.errors import InputError, MemoryNotFoundError


@pytest.fixture
def made(memory):
    return [memory.remember(f"task {n}", f"lesson {n}") for n in range(5)]


def test_list_gives_the_newest_first(memory, made):
    assert memory.list() == made[::-1]
    assert memory.list(limit=2) == made[:2:-1]
    assert memory.list(limit=0) == []


def test_list_gives_a_hundred_unless_told_otherwise(memory):
    memory.remember_many([{"intent": f"task {n}", "lesson": "lesson"} for n in range(450)])
    assert len(memory.list()) == 100
    assert len(memory.list(limit=None)) == 450
    assert len({found.id for found in memory.list(limit=449)}) == 449


def test_list_may_be_filtered(memory, made):
    failed = memory.remember("task", "lesson", outcome="failure")
    assert memory.list(filter={"outcome": "failure"}) == [failed]
    assert memory.list(filter={"outcome": "failure"}, raw=True) == []


@pytest.mark.parametrize("limit", [-1, 2.5, "5", True])
def test_a_limit_that_is_no_count_is_refused(bank, limit):
    for call in (bank.list, lambda limit: bank.search_text("router", limit=limit)):
        with pytest.raises(InputError, match="limit is"):
            call(limit=limit)


def test_an_unknown_id_is_a_sentence(memory, made):
    for call in (memory.get, memory.history):
        with pytest.raises(MemoryNotFoundError) as caught:
            call("no such id")
        assert str(caught.value) == "there is no memory 'no such id' in namespace 'default'"


def test_search_finds_intents_lessons_and_trajectories(memory):
    by_intent = memory.remember("reset the Router", "a")
    by_lesson = memory.remember("b", "hold the router's button")
    by_trajectory = memory.remember("c", "d", trajectory="ROUTER looked at")
    memory.remember("e", "f")
    assert memory.search_text("router") == [by_trajectory, by_lesson, by_intent]
    assert memory.search_text("router", limit=1) == [by_trajectory]


@pytest.mark.parametrize("text", ["%", "_", "100% sure", "a_b", "'", '"', "\\", "*", "[a]"])
def test_search_takes_every_character_as_it_is(memory, text):
    memory.remember("plain task", "plain lesson ab 100 sure")
    wanted = memory.remember("task", f"with {text} inside")
    assert memory.search_text(text) == [wanted]


def test_a_memory_that_never_moved_has_no_history(memory, made):
    assert memory.history(made[0].id) == []


def test_stats_of_an_empty_bank_are_zero(memory):
    stats = memory.stats()
    assert (stats.memories, stats.intents, stats.raw, stats.episodes) == (0, 0, 0, 0)
    assert (stats.q_above_zero, stats.q_at_zero, stats.q_below_zero) == (0, 0, 0)
    assert stats.q_quantiles == ()


def test_stats_by_hand(memory, made):
    # Q after: +.3, +.3 then -.09, 0, 0, -.3 for tasks 0 to 4
    first, second, _, _, last = (one.id for one in made)
    memory.reinforce("e1", reward=1, ids=[first, second])
    memory.reinforce("e2", reward=-1, ids=[second, last])
    memory.recall("task 2", episode_id="open", score_threshold=0.99)
    memory.hold("held", intent="task 9", trajectory="done")
    memory.recall("nothing at all", score_threshold=0.99)
    memory.remember("task 0", None, trajectory="raw")
    stats = memory.stats()
    assert (stats.memories, stats.intents, stats.raw) == (6, 5, 1)
    # six episodes wrote a memory; e1 and e2 were rewarded; two are open
    assert (stats.episodes, stats.open_episodes) == (10, 2)
    assert (stats.updates, stats.selections) == (4, 5)
    assert (stats.never_injected, stats.never_rewarded) == (2, 3)
    shares = (stats.q_above_zero, stats.q_at_zero, stats.q_below_zero)
    assert shares == pytest.approx((1 / 6, 3 / 6, 2 / 6))
    # sorted: -.3 -.09 0 0 0 .3; a quarter of 5 steps is 1.25: -.09 + .25 * .09
    assert stats.q_quantiles == pytest.approx((-0.3, -0.0675, 0, 0, 0.3))


def test_an_episode_tells_what_it_showed_its_reward_and_what_it_wrote(memory, made):
    recall = memory.recall("task 1", episode_id="e", k=1, score_threshold=None)
    memory.reinforce("e", reward=0.5)
    written = memory.remember("task 1", "lesson", episode_id="e")
    episode = memory.episode("e")
    assert (episode.episode_id, episode.namespace) == ("e", "default")
    assert (episode.intents, episode.memory_ids) == (("task 1",), recall.ids)
    assert (episode.reward, episode.memory_id) == (0.5, written.id)
    assert episode.created_at <= written.created_at


def test_namespaces_are_those_that_hold_something(memory, made):
    memory.recall("task", episode_id="e", namespace="b")
    memory.remember("task", "lesson", namespace="a")
    memory.recall("task", namespace="c")
    assert memory.namespaces() == ("a", "b", "default")
