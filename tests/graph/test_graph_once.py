import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt
from loops import STEPS, TASK, ask, closed_form, in_parent, run, thread, wrap_step
from watched import CrashError, WatchedStore, crash_once

from langchain_memrl import EpisodicMemory, create_memrl_builder, create_memrl_graph, verbatim
from langchain_memrl.errors import EpisodeError
from langchain_memrl.store.embedded.local import LocalStore

AGAIN = RetryPolicy(initial_interval=0, jitter=False, max_attempts=4, retry_on=CrashError)


@pytest.fixture
def store():
    return WatchedStore(LocalStore(":memory:"))


@pytest.fixture
def bank(store, embeddings):
    with EpisodicMemory(store, embeddings) as memory:
        yield memory


class Parts:
    """An agent, an evaluator and a summariser that never say the same twice, and count."""

    def __init__(self):
        self.answers = self.verdicts = self.lessons = 0

    def agent(self, messages):
        self.answers += 1
        return AIMessage(f"answer {self.answers}")

    def evaluator(self, state):
        self.verdicts += 1
        return 1.0

    def summarizer(self, attempt):
        self.lessons += 1
        return f"lesson {self.lessons} of {attempt.answer}"

    def builder(self, retriever):
        return create_memrl_builder(
            self.agent, retriever, evaluator=self.evaluator, summarizer=self.summarizer
        )


@pytest.fixture
def parts():
    return Parts()


def assert_learned_once(bank, seed, result=None):
    found = bank.get(seed.id)
    assert found.q_value == pytest.approx(0.3, abs=1e-12)
    assert (found.updates, found.selections) == (1, 1)
    (written,) = bank.list(filter={"source": "agent"})
    assert written.parents == (seed.id,)
    assert bank.episode(written.episode_id).reward == 1.0
    assert bank.stats().episodes == 2  # the seed's and this one
    assert bank.verify().ok
    if result is not None:
        assert [message.type for message in result["messages"]] == ["human", "ai"]
        assert written.trajectory == result["messages"][-1].text
    return written


def compiled(builder, nested, **options):
    return in_parent(builder.compile(), **options) if nested else builder.compile(**options)


# --- a crash between every two steps, then a resume ---------------------------------------------

every_step = pytest.mark.parametrize("step", STEPS)
around = pytest.mark.parametrize("when", ["before", "after"])
places = pytest.mark.parametrize(
    ("form", "nested"),
    [("blocking", False), ("awaited", True)],
    ids=["blocking standalone", "awaited in a parent"],
)
other_places = pytest.mark.parametrize(
    ("form", "nested"),
    [("blocking", True), ("awaited", False)],
    ids=["blocking in a parent", "awaited standalone"],
)


@every_step
@around
@places
def test_a_crash_around_any_step_is_resumed_and_learned_once(
    form, bank, retriever, seed, saver, parts, step, when, nested
):
    builder = parts.builder(retriever)
    wrap_step(builder, step, **{when: crash_once()})
    graph = compiled(builder, nested, checkpointer=saver)
    with pytest.raises(CrashError):
        run(form, graph, ask(), thread())
    result = run(form, graph, None, thread())
    assert_learned_once(bank, seed, result)
    assert parts.answers == (2 if (step, when) == ("generate", "after") else 1)
    assert parts.verdicts == (2 if (step, when) == ("evaluate", "after") else 1)
    assert parts.lessons == (2 if (step, when) == ("summarize", "after") else 1)


@every_step
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_every_durability_resumes_and_learns_once(
    bank, retriever, seed, saver, parts, step, durability
):
    builder = parts.builder(retriever)
    wrap_step(builder, step, after=crash_once())
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(CrashError):
        graph.invoke(ask(), thread(), durability=durability)
    result = graph.invoke(None, thread(), durability=durability)
    assert_learned_once(bank, seed, result)


def test_crash_after_crash_is_still_learned_once(form, bank, retriever, seed, saver, parts):
    builder = parts.builder(retriever)
    for step in STEPS:
        wrap_step(builder, step, crash_once(), crash_once())
    graph = in_parent(builder.compile(), checkpointer=saver)
    crashes, given = 0, ask()
    while graph.get_state(thread()).next or not crashes:
        try:
            result = run(form, graph, given, thread())
        except CrashError:
            crashes += 1
        given = None
    assert crashes == 2 * len(STEPS)
    assert_learned_once(bank, seed, result)


def test_a_finished_thread_that_is_resumed_again_learns_nothing_more(
    form, bank, retriever, seed, saver, parts
):
    graph = parts.builder(retriever).compile(checkpointer=saver)
    first = run(form, graph, ask(), thread())
    again = run(form, graph, None, thread())
    assert again["episode_id"] == first["episode_id"]
    assert_learned_once(bank, seed, again)


def test_two_resumes_at_once_learn_once(bank, retriever, seed, saver, parts):
    builder = parts.builder(retriever)
    wrap_step(builder, "update_q", before=crash_once())
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(CrashError):
        graph.invoke(ask(), thread())
    start = threading.Barrier(4)

    def resume(_):
        start.wait(10)
        return graph.invoke(None, thread())

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(resume, range(4)))
    assert {result["reward"] for result in results} == {1.0}
    assert_learned_once(bank, seed)


# --- the store dies before or after its commit --------------------------------------------------

EFFECTS = ["record", "reinforce", "remember"]


@around
@pytest.mark.parametrize("effect", EFFECTS)
@other_places
def test_an_effect_that_dies_around_its_commit_is_resumed_and_happens_once(
    form, bank, store, retriever, seed, saver, parts, effect, when, nested
):
    graph = compiled(parts.builder(retriever), nested, checkpointer=saver)
    getattr(store, when)[effect] = crash_once()
    with pytest.raises(CrashError):
        run(form, graph, ask(), thread())
    assert_learned_once(bank, seed, run(form, graph, None, thread()))


@pytest.mark.parametrize(("form", "when"), [("blocking", "before"), ("awaited", "after")])
@pytest.mark.parametrize("effect", EFFECTS)
def test_a_retry_policy_on_the_steps_repeats_no_effect(
    form, bank, store, retriever, seed, parts, effect, when
):
    builder = parts.builder(retriever).set_node_defaults(retry_policy=AGAIN)
    getattr(store, when)[effect] = crash_once(*[CrashError("again")] * 3)
    result = run(form, builder.compile(), ask())
    assert_learned_once(bank, seed, result)
    assert store.count(effect) == 4 + (effect == "remember")  # the seed was remembered too
    assert (parts.answers, parts.lessons) == (1, 1)


@pytest.mark.parametrize(
    ("form", "saved"),
    [("blocking", False), ("awaited", True)],
    ids=["blocking unsaved", "awaited saved"],
)
@around
@pytest.mark.parametrize("effect", EFFECTS)
def test_a_retry_policy_on_the_parents_node_repeats_no_effect(
    form, bank, store, retriever, seed, saver, parts, effect, when, saved
):
    builder = StateGraph(MessagesState)
    builder.add_node("memrl", parts.builder(retriever).compile(), retry_policy=AGAIN)
    graph = builder.add_edge(START, "memrl").compile(checkpointer=saver if saved else None)
    getattr(store, when)[effect] = crash_once(*[CrashError("again")] * 3)
    run(form, graph, ask(), thread())
    assert_learned_once(bank, seed)


def test_a_store_that_stays_down_surfaces_and_the_episode_can_be_resumed(
    form, bank, store, retriever, seed, saver, parts
):
    graph = parts.builder(retriever).set_node_defaults(retry_policy=AGAIN)
    graph = graph.compile(checkpointer=saver)
    store.before["reinforce"] = crash_once(*[CrashError("down")] * 5)
    for given in (ask(), None):
        try:
            result = run(form, graph, given, thread())
        except CrashError:
            assert bank.get(seed.id).updates == 0
    assert_learned_once(bank, seed, result)


# --- cancelling ---------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", EFFECTS)
async def test_cancelling_a_write_already_handed_over_neither_loses_nor_doubles_it(
    bank, store, retriever, seed, saver, parts, effect
):
    graph = parts.builder(retriever).compile(checkpointer=saver)
    loop, reached, release = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    store.before[effect] = lambda: (
        loop.call_soon_threadsafe(reached.set),
        release.wait(10) or pytest.fail("never released"),
    )
    task = asyncio.create_task(graph.ainvoke(ask(), thread()))
    await asyncio.wait_for(reached.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    store.before.clear()
    result = await graph.ainvoke(None, thread())
    assert_learned_once(bank, seed, result)


async def test_cancelling_while_the_agent_acts_learns_nothing_and_can_be_resumed(
    bank, retriever, seed, saver, parts
):
    acting, waits = asyncio.Event(), [True]

    async def agent(messages):
        if waits:
            waits.clear()
            acting.set()
            await asyncio.Event().wait()
        return parts.agent(messages)

    graph = create_memrl_builder(
        agent, retriever, evaluator=parts.evaluator, summarizer=parts.summarizer
    ).compile(checkpointer=saver)
    task = asyncio.create_task(graph.ainvoke(ask(), thread()))
    await asyncio.wait_for(acting.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bank.get(seed.id).updates == 0
    assert bank.stats().memories == 1
    assert_learned_once(bank, seed, await graph.ainvoke(None, thread()))


# --- replaying a whole run ----------------------------------------------------------------------

SAME = {"metadata": {"memrl_episode_id": "job-42"}}


@places
@pytest.mark.parametrize("saved", [False, True], ids=["unsaved", "saved"])
def test_the_same_episode_id_run_three_times_is_learned_once(
    form, bank, retriever, seed, saver, parts, saved, nested
):
    graph = compiled(parts.builder(retriever), nested, checkpointer=saver if saved else None)
    for number in range(3):
        run(form, graph, ask(), thread(f"thread {number}", **SAME))
    assert assert_learned_once(bank, seed).episode_id == "job-42"


def test_new_episodes_with_the_same_text_are_learned_each(form, bank, retriever, seed, parts):
    graph = parts.builder(retriever).compile()
    for number in range(3):
        run(form, graph, ask(), {"metadata": {"memrl_episode_id": f"job-{number}"}})
    assert bank.get(seed.id).q_value == pytest.approx(closed_form(1.0, 3))
    assert bank.stats().memories == 4


def test_the_first_answer_and_reward_stand_when_a_run_is_replayed(
    form, bank, retriever, seed, parts
):
    rewards = [1.0, -1.0]
    parts.evaluator = lambda state: rewards.pop(0)
    graph = parts.builder(retriever).compile()
    first, again = (run(form, graph, ask(), SAME) for _ in range(2))
    assert (first["reward"], again["reward"]) == (1.0, 1.0)
    written = assert_learned_once(bank, seed, first)
    assert (written.lesson, written.outcome) == ("lesson 1 of answer 1", "success")


# --- the reward comes from somewhere else first ---------------------------------------------------


def rewarded_meanwhile(bank, retriever, reward, verdict):
    """A loop whose episode is rewarded by somebody else while its agent acts."""

    def agent(messages):
        bank.reinforce("job-42", reward=reward)
        return "an answer"

    return create_memrl_builder(
        agent, retriever, evaluator=lambda state: verdict, summarizer=lambda attempt: "a lesson"
    ).compile()


def test_a_reward_that_came_first_stands_and_the_memory_carries_its_outcome(
    form, bank, retriever, seed
):
    graph = rewarded_meanwhile(bank, retriever, reward=-1.0, verdict=1.0)
    result = run(form, graph, ask(), SAME)
    assert result["reward"] == -1.0
    assert bank.get(seed.id).q_value == pytest.approx(-0.3)
    assert bank.get(seed.id).updates == 1
    (written,) = bank.list(filter={"source": "agent"})
    assert (written.lesson, written.outcome) == ("a lesson", "failure")


def test_a_reward_before_the_recall_is_an_error_that_may_be_repeated(
    form, bank, retriever, seed, parts
):
    parts.evaluator = lambda state: None
    with pytest.raises(EpisodeError, match="early=True"):
        bank.reinforce("job-42", reward=1.0)
    run(form, parts.builder(retriever).compile(), ask(), SAME)
    assert bank.reinforce("job-42", reward=1.0).applied
    assert not bank.reinforce("job-42", reward=1.0).applied
    assert_learned_once(bank, seed)


def test_a_reward_that_came_first_completes_an_episode_without_a_verdict(
    form, bank, retriever, seed
):
    graph = rewarded_meanwhile(bank, retriever, reward=1.0, verdict=None)
    result = run(form, graph, ask(), SAME)
    assert result["reward"] == 1.0
    (written,) = bank.list(filter={"source": "agent"})
    assert (written.trajectory or written.lesson, written.outcome) == ("an answer", "success")
    assert bank.get(seed.id).updates == 1


# --- plain nodes with an interrupt --------------------------------------------------------------


@pytest.mark.parametrize("interrupts", [1, 2])
def test_a_node_that_learns_before_it_waits_learns_once(form, bank, seed, saver, interrupts):
    def node(state):
        bank.recall(TASK, score_threshold=None, episode_id="job-1")
        bank.reinforce("job-1", reward=1.0)
        bank.remember(TASK, "a lesson", outcome="success", episode_id="job-1")
        answers = [interrupt(f"question {n}") for n in range(interrupts)]
        return {"messages": [AIMessage(" ".join(answers))]}

    builder = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node")
    graph = builder.compile(checkpointer=saver)
    run(form, graph, ask(), thread())
    for _ in range(interrupts):
        result = run(form, graph, Command(resume="yes"), thread())
    assert result["messages"][-1].text == " ".join(["yes"] * interrupts)
    assert_learned_once(bank, seed)


def test_a_memory_forgotten_before_its_checkpoint_does_not_block_the_thread(
    bank, retriever, monkeypatch
):
    real = bank.remember

    def forgotten_at_once(*arguments, **options):
        bank.forget(ids=[real(*arguments, **options).id])
        return real(*arguments, **options)

    graph = create_memrl_graph(
        lambda messages: "an answer", retriever, evaluator=lambda state: 1.0, summarizer=verbatim
    )
    monkeypatch.setattr(bank, "remember", forgotten_at_once)
    result = graph.invoke({"messages": [("user", "a task")]})
    assert result["messages"][-1].text == "an answer"
    assert bank.list(filter={"source": "agent"}) == []
