"""Memories that wait for a lesson: nothing is dropped when the model or the process dies."""

import pytest
from children import PROCESSES
from langchain_core.messages import AIMessage
from workers import everything_sent, open_bank, summarise

from langchain_memrl import LLMSummarizer, summarize_pending
from langchain_memrl.offline import ScriptedChatModel


@pytest.fixture
def waiting(folder):
    """A bank with five answers that were held, rewarded, and have no lesson yet."""
    with open_bank(folder) as memory:
        for number in range(5):
            memory.hold(f"e {number}", intent=f"task {number}", trajectory=f"did {number}")
            memory.reinforce(f"e {number}", reward=1)
    return [f"task {number}" for number in range(5)]


def tasks(memories):
    return sorted(one.intent for one in memories)


def test_a_model_that_fails_in_the_middle_loses_no_episode_and_the_rest_can_be_seen(
    folder, waiting
):
    replies = [AIMessage("one"), AIMessage("two"), TimeoutError("too slow")]
    replies += [AIMessage("three"), AIMessage("four"), AIMessage("five")]
    summarizer = LLMSummarizer(ScriptedChatModel(responses=replies))
    with open_bank(folder) as memory:
        with pytest.raises(TimeoutError, match="too slow"):
            summarize_pending(memory, summarizer)
        assert memory.stats().raw == 3
    with open_bank(folder) as memory:
        assert len(memory.list(raw=True)) == 3
        assert summarize_pending(memory, summarizer) == 3
        assert memory.stats().raw == 0
        assert sorted(one.lesson for one in memory.list()) == sorted(
            ["one", "two", "three", "four", "five"]
        )
        assert tasks(memory.list()) == waiting
        assert all(one.trajectory == one.intent.replace("task", "did") for one in memory.list())


@pytest.mark.parametrize("started", [1, 2, 3, 4, 5])
def test_lessons_stored_before_kill_9_stay_and_the_others_still_wait(folder, waiting, started):
    reader, writer = PROCESSES.Pipe(duplex=False)
    child = PROCESSES.Process(target=summarise, args=(folder, writer))
    child.start()
    writer.close()
    asked = [reader.recv() for _ in range(started)]
    child.kill()
    child.join()
    asked += everything_sent(reader)
    with open_bank(folder) as memory:
        raw = tasks(memory.list(raw=True))
        stored = [one for one in memory.list() if one.lesson]
        assert sorted(raw + tasks(stored)) == waiting
        assert {one.intent for one in stored} in (set(asked), set(asked[:-1]))
        assert all(one.lesson == f"lesson of {one.trajectory}" for one in stored)
        assert summarize_pending(memory, lambda attempt: "later") == len(raw)
        assert memory.verify().ok
