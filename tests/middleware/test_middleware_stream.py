"""What an agent streams: its own tokens and our events; no memory, no judge, no summariser."""

import pytest
from agents import ANSWER, agent_of, calling, scripted
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from loops import ask, events, stream, thread

from langchain_memrl import LLMJudge, LLMSummarizer
from langchain_memrl.offline import ScriptedChatModel

GRADE = AIMessage(
    "canary", tool_calls=[{"name": "Grade", "args": {"score": 1, "reason": "canary"}, "id": "1"}]
)


async def ask_awaited(model):
    await model.ainvoke("canary?")
    return 1.0


JUDGES = {
    "a judge": lambda: LLMJudge(scripted(GRADE)),
    "a function": lambda: lambda state: float(bool(scripted("canary").invoke("canary?"))),
    "an async function": lambda: lambda state: ask_awaited(scripted("canary")),
    "a chain": lambda: (
        lambda state: (RunnableLambda(str) | scripted("canary") | (lambda _: 1.0)).invoke("canary?")
    ),
}


@pytest.mark.parametrize("judge", JUDGES)
def test_only_the_agents_own_tokens_are_streamed(form, bank, retriever, judge):
    agent = agent_of(
        retriever,
        scripted(calling(), ANSWER),
        evaluator=JUDGES[judge](),
        summarizer=LLMSummarizer(scripted("canary")),
    )
    found = stream(form, agent, ask(), stream_mode="messages", subgraphs=True)
    chunks = [chunk for _, (chunk, _) in found]
    assert [c.text for c in chunks if c.type == "tool"] == ["router is there"]
    text = "".join(chunk.text for chunk in chunks if chunk.type != "tool")
    assert text == f"Let me see.{ANSWER}"
    assert bank.list(filter={"source": "agent"})[0].lesson == "canary"


def test_the_typed_stream_has_only_the_agents_own_messages(retriever):
    agent = agent_of(
        retriever, evaluator=LLMJudge(scripted(GRADE)), summarizer=LLMSummarizer(scripted("canary"))
    )
    streamed = agent.stream_events(ask(), version="v3")
    assert [str(message.text) for message in streamed.messages] == [ANSWER]
    assert streamed.output["memrl_reward"] == 1.0


def test_the_conversation_in_the_stream_has_no_memories(form, retriever, saver):
    agent = agent_of(retriever, scripted(calling(), ANSWER), agent={"checkpointer": saver})
    for state in stream(form, agent, ask(), thread(), stream_mode="values"):
        assert "Press it" not in str(state["messages"])


def test_events_hold_no_text_of_task_answer_or_memory(form, bank, retriever):
    bank.remember("canary intent", "canary lesson " * 500, source="seed")
    agent = agent_of(
        retriever, ScriptedChatModel(responses=["canary answer"]), max_memory_tokens=200
    )
    found = events(form, agent, ask("canary task"))
    assert found[0]["cut"]
    assert "canary" not in str(found)
