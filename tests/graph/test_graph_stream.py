"""What a run tells while it goes: an event per step, and the agent's own tokens."""

import asyncio

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph
from loops import TASK, ask, events, in_parent, kinds, run, stream, thread
from openevals.llm import create_llm_as_judge
from plain import foreign

from langchain_memrl import (
    LLMJudge,
    LLMSummarizer,
    MemRLRetriever,
    Verdict,
    create_memrl_builder,
    create_memrl_graph,
    from_openevals,
    verbatim,
)
from langchain_memrl.offline import ScriptedChatModel


def grade(name="Grade", **fields):
    return AIMessage("", tool_calls=[{"name": name, "args": fields, "id": "1"}])


@pytest.fixture
def loop(retriever):
    return create_memrl_graph(
        lambda messages: AIMessage("an answer"),
        retriever,
        evaluator=lambda state: Verdict(1.0, reason="tests pass"),
        summarizer=lambda attempt: "a lesson",
    )


# --- events -------------------------------------------------------------------------------------


def test_every_step_emits_its_event_with_its_numbers(form, loop, bank, seed):
    found = events(form, loop, ask())
    (written,) = bank.list(filter={"source": "agent"})
    episode = written.episode_id
    assert found == [
        {
            "type": "memrl.retrieved",
            "episode_id": episode,
            "ids": [seed.id],
            "similarity_max": 0.8,
            "explored": False,
            "cut": [],
        },
        {"type": "memrl.generated", "episode_id": episode, "messages": 1},
        {
            "type": "memrl.evaluated",
            "episode_id": episode,
            "reward": 1.0,
            "outcome": "success",
            "reason": "tests pass",
        },
        {
            "type": "memrl.q_updated",
            "episode_id": episode,
            "reward": 1.0,
            "applied": True,
            "credits": [{"id": seed.id, "before": 0.0, "after": pytest.approx(0.3)}],
            "skipped": [],
        },
        {"type": "memrl.summarized", "episode_id": episode, "raw": False, "error": None},
        {
            "type": "memrl.written",
            "episode_id": episode,
            "memory_id": written.id,
            "outcome": "success",
        },
    ]


def test_an_open_episode_emits_that_it_is_held(form, retriever):
    loop = create_memrl_graph(lambda m: "x", retriever, evaluator=lambda state: None)
    found = events(form, loop, ask())
    assert kinds(found) == ["retrieved", "generated", "evaluated", "held"]
    assert set(found[-1]) == {"type", "episode_id"}


def test_a_forgotten_memory_is_told_as_skipped(form, retriever, bank, seed):
    def agent(messages):
        bank.forget(ids=[seed.id])
        return "x"

    loop = create_memrl_graph(agent, retriever, evaluator=lambda state: 1.0)
    credited = next(e for e in events(form, loop, ask()) if e["type"] == "memrl.q_updated")
    assert (credited["credits"], credited["skipped"]) == ([], [seed.id])


def test_events_hold_plain_values_and_no_text_of_task_answer_or_memory(form, bank, embeddings):
    canaries = {name: f"canary-{name}" for name in ("task", "intent", "lesson", "path", "answer")}
    bank.remember(canaries["intent"], canaries["lesson"] * 300, trajectory=canaries["path"] * 300)
    retriever = MemRLRetriever(memory=bank, score_threshold=None)
    loop = create_memrl_graph(
        lambda messages: canaries["answer"],
        retriever,
        evaluator=lambda state: 1.0,
        max_memory_tokens=300,
    )
    found = events(form, loop, ask(canaries["task"]))
    assert found[0]["cut"]
    assert foreign(found) == []
    assert "canary" not in str(found)


def test_events_reach_a_parents_stream(form, loop):
    found = stream(form, in_parent(loop), ask(), stream_mode=["custom", "updates"], subgraphs=True)
    told = [part for _, mode, part in found if mode == "custom"]
    assert kinds(told) == [
        "retrieved",
        "generated",
        "evaluated",
        "q_updated",
        "summarized",
        "written",
    ]
    assert {space[0].split(":")[0] for space, mode, _ in found if mode == "custom"} == {"memrl"}


def test_events_come_as_parts_of_the_second_version(form, loop):
    found = stream(form, loop, ask(), stream_mode=["custom"], version="v2")
    assert kinds(part["data"] for part in found)[0] == "retrieved"
    assert len(found) == 6


def test_a_plain_run_needs_no_stream(form, loop):
    assert run(form, loop, ask())["reward"] == 1.0


# --- tokens -------------------------------------------------------------------------------------

ANSWER = "Hold the blue button for ten seconds."


def tokens(form, graph, config=None):
    """What a client shows of the message stream: text, joined."""
    found = stream(form, graph, ask(), config, stream_mode="messages", subgraphs=True)
    return "".join(chunk.text for _, (chunk, _) in found), len(found)


JUDGES = {
    "function": lambda: lambda state: 1.0,
    "model": lambda: LLMJudge(
        ScriptedChatModel(responses=[grade(score=1, reason="canary of the judge")])
    ),
}
SUMMARIZERS = {
    "the agent's own": lambda: None,
    "model": lambda: LLMSummarizer(ScriptedChatModel(responses=["canary of the summariser"])),
}


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("summarizer", SUMMARIZERS)
def test_only_the_agents_tokens_are_streamed(form, retriever, bank, judge, summarizer, nested):
    agent = ScriptedChatModel(responses=[ANSWER, "canary of the agent as summariser"])
    loop = create_memrl_graph(
        agent, retriever, evaluator=JUDGES[judge](), summarizer=SUMMARIZERS[summarizer]()
    )
    text, parts = tokens(form, in_parent(loop) if nested else loop)
    assert text == ANSWER
    assert parts > 3  # in pieces
    assert "canary" in bank.list(filter={"source": "agent"})[0].lesson


def test_a_judge_on_the_other_side_leaks_no_tokens_either(form, retriever):
    judge = ScriptedChatModel(responses=[grade(score=1, reason="canary")])

    async def evaluator(state):
        await asyncio.sleep(0)
        return await LLMJudge(judge).acall(state)

    def blocking_summarizer(attempt):
        return LLMSummarizer(ScriptedChatModel(responses=["canary"]))(attempt)

    loop = create_memrl_graph(
        ScriptedChatModel(responses=[ANSWER]),
        retriever,
        evaluator=evaluator,
        summarizer=blocking_summarizer,
    )
    assert tokens(form, loop)[0] == ANSWER


def test_an_agent_of_several_steps_streams_its_own_tokens_and_no_memories(form, retriever):
    call = {"name": "ping", "args": {}, "id": "1"}
    model = ScriptedChatModel(responses=[AIMessage("Let me see.", tool_calls=[call]), ANSWER])

    def think(state, config):
        return {"messages": [model.invoke(state["messages"], config)]}

    def conclude(state, config):
        return {"messages": [model.invoke(state["messages"], config)]}

    agent = StateGraph(MessagesState).add_sequence([think, conclude]).add_edge(START, "think")
    loop = create_memrl_graph(
        agent.compile(), retriever, evaluator=lambda s: 1.0, summarizer=verbatim
    )
    assert tokens(form, loop)[0] == f"Let me see.{ANSWER}"


@pytest.mark.parametrize("render", ["fenced", "turns"])
def test_the_memories_in_the_prompt_are_not_streamed(form, retriever, saver, render):
    loop = create_memrl_builder(
        lambda messages: [*messages, AIMessage(ANSWER)],
        retriever,
        evaluator=lambda s: 1.0,
        summarizer=verbatim,
        render=render,
    ).compile(checkpointer=saver)
    for _ in range(2):
        assert tokens(form, loop, thread())[0] == ANSWER


def test_the_tasks_text_is_what_the_caller_sent(form, loop):
    found = stream(form, loop, ask(), stream_mode="values")
    assert all(state["messages"][0].text == TASK for state in found if state.get("messages"))


async def ask_awaited(model):
    await model.ainvoke("canary?")
    return 1.0


def ask_blocking(model):
    model.invoke("canary?")
    return 1.0


CALLERS = {
    "a function": lambda model: lambda value: ask_blocking(model),
    "an async function": lambda model: lambda value: ask_awaited(model),
    "a chain": lambda model: (
        lambda value: (RunnableLambda(str) | model | (lambda _: 1.0)).invoke("canary?")
    ),
}


@pytest.mark.parametrize("caller", CALLERS)
def test_whatever_calls_a_model_to_judge_or_to_summarise_leaks_no_tokens(
    form, retriever, caller, nested
):
    judge, writer = (ScriptedChatModel(responses=["canary"]) for _ in range(2))
    loop = create_memrl_graph(
        ScriptedChatModel(responses=[ANSWER]),
        retriever,
        evaluator=CALLERS[caller](judge),
        summarizer=CALLERS[caller](writer),
    )
    assert tokens(form, in_parent(loop) if nested else loop)[0] == ANSWER
    assert len(judge.calls) == len(writer.calls) == 1


def test_a_judge_through_openevals_leaks_no_tokens(form, retriever):
    model = ScriptedChatModel(responses=[grade("score", reasoning="canary", score=True)])
    judge = from_openevals(create_llm_as_judge(prompt="{inputs} {outputs}", judge=model))
    loop = create_memrl_graph(
        ScriptedChatModel(responses=[ANSWER]), retriever, evaluator=judge, summarizer=verbatim
    )
    assert tokens(form, loop)[0] == ANSWER
    assert len(model.calls) == 1
