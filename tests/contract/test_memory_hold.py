"""No reward yet: an answer is held until its reward comes, then written raw, once."""

import pytest

from langchain_memrl.errors import InputError, WriteConflictError

TASK, DONE = "reset a router", "looked, then pressed the button"


@pytest.fixture
def shown(memory):
    """An episode "e" that was shown one memory and holds its answer; that memory's id."""
    id = memory.remember("reset a modem", "pull the plug").id
    memory.recall(TASK, episode_id="e", score_threshold=None)
    memory.hold("e", intent=TASK, trajectory=DONE)
    return id


def test_a_held_answer_is_no_memory_yet(memory, shown):
    assert memory.stats().memories == 1
    assert memory.stats().open_episodes == 1
    assert memory.episode("e").memory_id is None
    assert memory.search_text("pressed the button") == []


def test_the_reward_moves_q_and_writes_the_answer_raw(memory, shown):
    result = memory.reinforce("e", reward=1)
    assert [credit.id for credit in result.credits] == [shown]
    made = memory.get(memory.episode("e").memory_id)
    assert result.memory_id == made.id
    assert (made.intent, made.trajectory, made.lesson) == (TASK, DONE, "")
    assert made.raw
    assert (made.outcome, made.parents, made.episode_id) == ("success", (shown,), "e")
    assert (made.q_value, made.updates) == (0, 0)
    assert memory.get(shown).updates == 1
    assert memory.recall(TASK).ids[0] == made.id
    assert memory.verify().ok


@pytest.mark.parametrize(
    ("reward", "outcome"), [(1, "success"), (0.1, "success"), (0, "unknown"), (-0.1, "failure")]
)
def test_the_outcome_follows_from_the_reward(memory, shown, reward, outcome):
    assert memory.get(memory.reinforce("e", reward=reward).memory_id).outcome == outcome


def test_none_writes_nothing_and_the_reward_may_come_later(memory, shown):
    assert memory.reinforce("e", reward=None).memory_id is None
    assert memory.stats().memories == 1
    assert memory.reinforce("e", reward=1).memory_id is not None


def test_it_is_written_once_however_often_it_is_rewarded_or_held(memory, shown):
    first = memory.reinforce("e", reward=1)
    for _ in range(3):
        assert memory.reinforce("e", reward=1).memory_id == first.memory_id
        memory.hold("e", intent=TASK, trajectory=DONE)
    assert memory.stats().memories == 2
    assert memory.get(shown).updates == 1


def test_the_reward_may_come_before_the_answer(memory):
    shown = memory.remember("reset a modem", "pull the plug").id
    memory.recall(TASK, episode_id="e", score_threshold=None)
    assert memory.reinforce("e", reward=-1).memory_id is None
    memory.hold("e", intent=TASK, trajectory=DONE)
    made = memory.get(memory.episode("e").memory_id)
    assert (made.raw, made.trajectory, made.outcome) == (True, DONE, "failure")
    assert made.parents == (shown,)
    memory.hold("e", intent=TASK, trajectory=DONE)
    assert memory.stats().memories == 2


def test_a_reward_from_another_process_finds_the_held_answer(form, open_bank):
    memory = form(open_bank())
    memory.hold("e", intent=TASK, trajectory=DONE)
    memory.close()
    later = form(open_bank(embeddings=None))  # it needs no embedder any more
    made = later.get(later.reinforce("e", reward=1).memory_id)
    assert made.trajectory == DONE
    later.close()
    assert form(open_bank()).recall(TASK).ids == (made.id,)


def test_a_lesson_written_before_the_reward_stands_and_no_raw_one_is_added(memory, shown):
    made = memory.remember(TASK, "press the button first", episode_id="e")
    assert memory.reinforce("e", reward=1).memory_id == made.id
    assert memory.stats().memories == 2
    assert memory.stats().raw == 0


def test_another_answer_for_the_same_episode_is_a_conflict(memory, shown):
    for values in ({"intent": TASK, "trajectory": "other"}, {"intent": "x", "trajectory": DONE}):
        with pytest.raises(WriteConflictError, match="holds another answer"):
            memory.hold("e", **values)
    assert memory.get(memory.reinforce("e", reward=1).memory_id).trajectory == DONE


def test_the_same_answer_held_twice_is_held_once(memory, shown):
    memory.hold("e", intent=TASK, trajectory=DONE)
    memory.reinforce("e", reward=1)
    assert memory.stats().memories == 2


def test_an_episode_may_hold_an_answer_without_having_recalled(memory):
    memory.hold("e", intent=TASK, trajectory=DONE)
    assert memory.stats().open_episodes == 1
    result = memory.reinforce("e", reward=1)
    assert result.credits == ()
    assert memory.get(result.memory_id).parents == ()


def test_a_raw_memory_is_summarised_with_update(memory, shown):
    made = memory.get(memory.reinforce("e", reward=1).memory_id)
    assert [found.id for found in memory.list(raw=True)] == [made.id]
    memory.update(made.id, lesson="press the button first")
    assert memory.list(raw=True) == []
    assert memory.get(made.id).trajectory == DONE


@pytest.mark.parametrize(
    ("change", "name"),
    [
        *(({"intent": value}, "intent") for value in ("", "\u200b", None, "a\x00")),
        *(({"trajectory": value}, "trajectory") for value in ("", None, "\ud800", "x" * 2**21)),
        ({"namespace": ""}, "namespace"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_what_cannot_be_stored_is_refused(memory, embeddings, change, name):
    with pytest.raises(InputError, match=name):
        memory.hold("e", **{"intent": TASK, "trajectory": DONE} | change)
    assert embeddings.calls == []
    assert memory.stats().episodes == 0


def test_forgetting_blanks_the_held_text(behind, form, open_bank):
    memory = form(open_bank())
    memory.hold("e", intent=TASK, trajectory="a secret step")
    memory.reinforce("e", reward=1)
    memory.forget(episode_id="e")
    assert "a secret step" not in "\n".join(behind.dump())


def test_a_replayed_hold_does_not_bring_back_a_forgotten_text(behind, form, open_bank):
    memory = form(open_bank())
    memory.hold("e", intent=TASK, trajectory="a secret step")
    memory.reinforce("e", reward=1)
    memory.forget(episode_id="e")
    memory.hold("e", intent=TASK, trajectory="a secret step")
    assert memory.list() == []
    assert "a secret step" not in "\n".join(behind.dump())
