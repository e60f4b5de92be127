"""Crashes, resumes, people and time travel: each episode is learned once and written once."""

import asyncio
import threading

import pytest
from agents import ANSWER, SAME, agent_of, calling, scripted, written
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, RetryPolicy
from loops import TASK, ask, events, kinds, run, thread
from watched import CrashError, WatchedStore, crash_once

from langchain_memrl import EpisodicMemory
from langchain_memrl.store.embedded.local import LocalStore

EFFECTS = ["record", "reinforce", "remember"]


@pytest.fixture
def store():
    return WatchedStore(LocalStore(":memory:"))


@pytest.fixture
def bank(store, embeddings):
    with EpisodicMemory(store, embeddings) as memory:
        yield memory


class Parts:
    """A model, an evaluator and a summariser that never say the same twice."""

    def __init__(self):
        self.answers = self.verdicts = self.lessons = 0

    def answer(self, messages):
        self.answers += 1
        return calling() if self.answers == 1 else f"answer {self.answers}"

    def evaluator(self, state):
        self.verdicts += 1
        return 1.0

    def summarizer(self, attempt):
        self.lessons += 1
        return f"lesson {self.lessons} of {attempt.answer}"

    def agent(self, retriever, saver=None, **options):
        model = scripted()
        model.responses = self.answer
        options = {"evaluator": self.evaluator, "summarizer": self.summarizer} | options
        return agent_of(retriever, model, agent={"checkpointer": saver}, **options)


@pytest.fixture
def parts():
    return Parts()


def assert_learned_once(bank, seed):
    found = bank.get(seed.id)
    assert found.q_value == pytest.approx(0.3, abs=1e-12)
    assert (found.updates, found.selections) == (1, 1)
    (memory,) = written(bank)
    assert bank.episode(memory.episode_id).reward == 1.0
    assert bank.stats().episodes == 2  # the seed's and this one
    assert bank.verify().ok
    return memory


# --- the store dies before or after its commit --------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("effect", EFFECTS)
def test_an_effect_that_dies_around_its_commit_is_resumed_and_happens_once(
    form, bank, store, seed, retriever, saver, parts, effect, when
):
    agent = parts.agent(retriever, saver)
    getattr(store, when)[effect] = crash_once()
    with pytest.raises(CrashError):
        run(form, agent, ask(), thread())
    result = run(form, agent, None, thread())
    memory = assert_learned_once(bank, seed)
    assert (result["memrl_episode_id"], result["memrl_reward"]) == (memory.episode_id, 1.0)
    assert parts.answers == 2


def test_a_retried_node_of_a_parent_is_the_same_episode(form, bank, store, seed, retriever, parts):
    builder = StateGraph(MessagesState)
    again = RetryPolicy(initial_interval=0, jitter=False, retry_on=CrashError)
    builder.add_node("agent", parts.agent(retriever), retry_policy=again)
    graph = builder.add_edge(START, "agent").compile()
    store.after["reinforce"] = crash_once()
    run(form, graph, ask())
    assert_learned_once(bank, seed)


def test_crash_after_crash_is_still_learned_once(bank, store, seed, retriever, saver, parts):
    agent = parts.agent(retriever, saver)
    for effect in EFFECTS:
        store.before[effect], store.after[effect] = crash_once(), crash_once()
    crashes, given = 0, ask()
    while agent.get_state(thread()).next or not crashes:
        try:
            agent.invoke(given, thread())
        except CrashError:
            crashes += 1
        given = None
    assert crashes == 2 * len(EFFECTS)
    assert_learned_once(bank, seed)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_every_durability_resumes_and_learns_once(
    bank, store, seed, retriever, saver, parts, durability
):
    agent = parts.agent(retriever, saver)
    store.after["remember"] = crash_once()
    with pytest.raises(CrashError):
        agent.invoke(ask(), thread(), durability=durability)
    agent.invoke(None, thread(), durability=durability)
    assert_learned_once(bank, seed)


def test_a_finished_thread_that_is_resumed_again_learns_nothing_more(
    form, bank, seed, retriever, saver, parts
):
    agent = parts.agent(retriever, saver)
    first, again = run(form, agent, ask(), thread()), run(form, agent, None, thread())
    assert again["memrl_episode_id"] == first["memrl_episode_id"]
    assert_learned_once(bank, seed)


@pytest.mark.parametrize("effect", EFFECTS)
async def test_cancelling_a_write_already_handed_over_neither_loses_nor_doubles_it(
    bank, store, seed, retriever, saver, parts, effect
):
    agent = parts.agent(retriever, saver)
    loop, reached, release = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    store.before[effect] = lambda: (
        loop.call_soon_threadsafe(reached.set),
        release.wait(10) or pytest.fail("never released"),
    )
    task = asyncio.create_task(agent.ainvoke(ask(), thread()))
    await asyncio.wait_for(reached.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    store.before.clear()
    await agent.ainvoke(None, thread())
    assert_learned_once(bank, seed)


# --- time travel --------------------------------------------------------------------------------


def before(agent, node):
    """The checkpoint from which a node was run, the latest such."""
    for snapshot in agent.get_state_history(thread()):
        if snapshot.next == (node,):
            return snapshot.config
    raise LookupError(node)


@pytest.mark.parametrize("node", ["__start__", "memrl.before_agent"])
def test_going_back_before_the_recall_starts_a_new_episode(
    form, bank, seed, retriever, saver, parts, node
):
    agent = parts.agent(retriever, saver)
    first = run(form, agent, ask(), thread())
    again = run(form, agent, None, before(agent, node))
    assert again["memrl_episode_id"] != first["memrl_episode_id"]
    assert (bank.get(seed.id).updates, len(written(bank))) == (2, 2)


@pytest.mark.parametrize("node", ["model", "memrl.after_agent"])
def test_going_back_after_the_recall_changes_nothing_that_was_learned(
    form, bank, seed, retriever, saver, parts, node
):
    rewards = [1.0, -1.0]
    agent = parts.agent(retriever, saver, evaluator=lambda state: rewards.pop(0))
    first = run(form, agent, ask(), thread())
    found = events(form, agent, None, before(agent, node))
    assert "already_learned" in kinds(found)
    state = agent.get_state(thread()).values
    assert state["memrl_episode_id"] == first["memrl_episode_id"]
    assert state["memrl_reward"] == 1.0
    assert rewards == []
    assert_learned_once(bank, seed)


def test_a_callers_id_makes_even_a_new_start_the_same_episode(
    form, bank, seed, retriever, saver, parts
):
    agent = parts.agent(retriever, saver)
    run(form, agent, ask(), thread(**SAME))
    again = run(form, agent, None, {**before(agent, "memrl.before_agent"), **SAME})
    assert (again["memrl_episode_id"], again["memrl_reward"]) == ("job-42", 1.0)
    assert_learned_once(bank, seed)


# --- people -------------------------------------------------------------------------------------


def test_a_person_gives_the_reward(form, bank, seed, retriever, saver, parts):
    agent = parts.agent(retriever, saver, evaluator="human")
    waiting = run(form, agent, ask(), thread())
    (question,) = waiting["__interrupt__"]
    assert question.value == {
        "type": "memrl.reward_request",
        "episode_id": waiting["memrl_episode_id"],
        "intent": TASK,
        "answer": "answer 2",
    }
    assert (bank.get(seed.id).updates, written(bank)) == (0, [])
    wrong = run(form, agent, Command(resume={"reward": "good"}), thread())
    assert "error" in wrong["__interrupt__"][0].value
    result = run(form, agent, Command(resume={"reward": 1.0}), thread())
    assert result["memrl_reward"] == 1.0
    assert assert_learned_once(bank, seed).episode_id == waiting["memrl_episode_id"]
    assert parts.lessons == 1


def test_an_evaluator_may_ask_a_person_itself(form, bank, seed, retriever, saver, parts):
    def evaluator(state):
        from langgraph.types import interrupt

        return interrupt("good?") == "yes"

    agent = parts.agent(retriever, saver, evaluator=evaluator)
    assert run(form, agent, ask(), thread())["__interrupt__"][0].value == "good?"
    assert run(form, agent, Command(resume="yes"), thread())["memrl_reward"] == 1.0
    assert_learned_once(bank, seed)


def test_a_person_who_cannot_be_waited_for_is_said(form, retriever, caplog):
    run(form, agent_of(retriever, evaluator="human"), ask())
    assert "no checkpointer" in caplog.text


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_person_who_decides_about_a_tool_call_changes_no_episode(
    form, bank, seed, retriever, saver, decision
):
    people = HumanInTheLoopMiddleware(interrupt_on={"ping": True})
    model = scripted(calling(), ANSWER)
    agent = agent_of(retriever, model, after=[people], agent={"checkpointer": saver})
    waiting = run(form, agent, ask(), thread())
    assert waiting["__interrupt__"]
    assert bank.get(seed.id).updates == 0
    (pending,) = agent.get_state(thread()).interrupts
    reply = {"type": decision} if pending.response_schema else {"decisions": [{"type": decision}]}
    result = run(form, agent, Command(resume=reply), thread())
    assert result["memrl_episode_id"] == waiting["memrl_episode_id"]
    assert result["memrl_reward"] == 1.0
    assert ("rejected" in written(bank)[0].trajectory) == (decision == "reject")
    assert_learned_once(bank, seed)
