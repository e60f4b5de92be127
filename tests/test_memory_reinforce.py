"""What a reward moves, once, and what is refused before anything moves."""

import pytest

from langchain_memrl.errors import EpisodeError


@pytest.fixture
def a(memory):
    return memory.remember("reset a router", "hold the button").id


@pytest.fixture
def b(memory):
    return memory.remember("bake a cake", "weigh the flour").id


def q_values(memory):
    return [found.q_value for found in memory.list()]


def test_explicit_ids_open_an_episode_whose_blank_task_recalled_nothing(memory, a):
    assert memory.recall(" ", episode_id="e").ids == ()
    assert memory.recall("", episode_id="e").ids == ()
    assert memory.reinforce("e", reward=1, ids=[a]).applied
    assert memory.get(a).updates == 1


def test_a_blank_task_does_not_find_what_explicit_ids_recorded(memory, a):
    memory.reinforce("e", reward=1, ids=[a])
    with pytest.raises(EpisodeError, match="already rewarded"):
        memory.recall("", episode_id="e")


def test_a_repeat_with_other_ids_is_refused_instead_of_ignored(memory, a, b):
    memory.reinforce("e", reward=1, ids=[a])
    for other in ([b], [a, b], []):
        with pytest.raises(EpisodeError, match="other memories"):
            memory.reinforce("e", reward=1, ids=other)
    assert not memory.reinforce("e", reward=1, ids=[a]).applied
    assert (memory.get(a).updates, memory.get(b).updates) == (1, 0)
