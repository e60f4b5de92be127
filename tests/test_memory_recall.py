"""Which memories a recall chooses, and what it tells about the choice."""


def test_a_recall_may_return_more_memories_than_it_keeps_candidates(memory):
    ids = [memory.remember("reset a router", f"lesson {n}").id for n in range(70)]
    recall = memory.recall("reset a router", k=60, episode_id="e")
    assert recall.ids == tuple(reversed(ids))[:60]
    assert [candidate.id for candidate in recall.candidates] == list(recall.ids)
    assert memory.recall("reset a router", k=60, episode_id="e").ids == recall.ids
