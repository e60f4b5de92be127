"""One warning each for use that looks like a mistake, and silence otherwise."""

import pytest

from langchain_memrl import LearningConfig


@pytest.fixture
def made(memory):
    return memory.remember("reset a router", "lesson").id


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_fifty_recalls_without_an_episode_id_give_one_warning(memory, made, caplog):
    for _ in range(49):
        memory.recall("reset a router")
    assert warnings(caplog) == []
    memory.recall("reset a router")
    assert len(warnings(caplog)) == 1
    assert "50 recalls carried no episode id" in warnings(caplog)[0]
    for _ in range(120):
        memory.recall("reset a router")
    assert len(warnings(caplog)) == 1


def test_recalls_of_a_batch_are_counted_one_by_one(memory, made, caplog):
    memory.recall_many(["reset a router"] * 49)
    assert warnings(caplog) == []
    memory.recall_many(["reset a router"] * 49)
    assert len(warnings(caplog)) == 1


def test_recalls_with_an_episode_id_give_none(memory, made, caplog):
    for n in range(60):
        memory.recall("reset a router", episode_id=f"e{n}")
    assert warnings(caplog) == []


def reward(memory, made, values, name="e"):
    memory.reinforce_many(
        [
            {"episode_id": f"{name}{n}", "reward": value, "ids": [made]}
            for n, value in enumerate(values)
        ]
    )


def test_twenty_rewards_of_zero_and_one_in_a_row_give_one_warning(memory, made, caplog):
    reward(memory, made, [0, 1] * 9 + [1])
    assert warnings(caplog) == []
    memory.reinforce("last", reward=0.0, ids=[made])
    assert len(warnings(caplog)) == 1
    assert 'scale="unit"' in warnings(caplog)[0]
    reward(memory, made, [0, 1] * 30, name="more")
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("other", [-1, 0.5])
def test_another_reward_among_them_gives_none(memory, made, caplog, other):
    reward(memory, made, [0, 1] * 9 + [other] + [0, 1] * 9)
    assert warnings(caplog) == []


def test_repeats_and_missing_rewards_do_not_count(memory, made, caplog):
    reward(memory, made, [1] * 19)
    reward(memory, made, [1] * 19)
    for n in range(5):
        memory.reinforce(f"none {n}", reward=None)
    assert warnings(caplog) == []


def test_a_bank_whose_rewards_go_from_zero_to_one_gives_none(form, open_bank, caplog):
    memory = form(open_bank(":memory:", learning=LearningConfig(reward_range=(0, 1))))
    made = memory.remember("reset a router", "lesson").id
    reward(memory, made, [0, 1] * 30)
    assert warnings(caplog) == []


def test_ordinary_use_says_nothing(form, open_bank, caplog):
    memory = form(open_bank())
    memory.remember("reset a router", "lesson", episode_id="w")
    memory.recall("reset a router", episode_id="e")
    memory.reinforce("e", reward=1)
    memory.close()
    memory = form(open_bank())
    memory.recall("reset a router", episode_id="e2")
    memory.close()
    assert caplog.records == []


def test_a_streak_of_success_gives_none(memory, made, caplog):
    reward(memory, made, [1] * 40)
    assert warnings(caplog) == []
