"""Which memories a recall chooses, and what it tells about the choice."""

import pytest

from langchain_memrl.errors import InputError


def test_a_recall_may_return_more_memories_than_it_keeps_candidates(memory):
    ids = [memory.remember("reset a router", f"lesson {n}").id for n in range(70)]
    recall = memory.recall("reset a router", k=60, episode_id="e")
    assert recall.ids == tuple(reversed(ids))[:60]
    assert [candidate.id for candidate in recall.candidates] == list(recall.ids)
    assert memory.recall("reset a router", k=60, episode_id="e").ids == recall.ids


@pytest.mark.parametrize("excluded", ["reset a router", ["\ud800"], [3], [None]])
def test_excluded_intents_have_to_be_a_list_of_texts(memory, excluded):
    memory.remember("reset a router", "lesson")
    with pytest.raises(InputError, match="exclude_intents"):
        memory.recall("reset a router", exclude_intents=excluded)
