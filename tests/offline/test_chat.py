from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel

from langchain_memrl.offline import ScriptedChatModel


class Grade(BaseModel):
    """A grade for an answer."""

    reward: float


CALL = {"name": "Grade", "args": {"reward": 0.5}, "id": "call-1", "type": "tool_call"}


def test_entries_come_in_order_and_every_request_is_kept():
    model = ScriptedChatModel(responses=["one", AIMessage("two")])
    assert [model.invoke("a").text, model.invoke([HumanMessage("b")]).text] == ["one", "two"]
    assert [messages[0].content for messages in model.calls] == ["a", "b"]


async def test_async_calls_use_the_same_script():
    model = ScriptedChatModel(responses=["one", "two"])
    assert (await model.ainvoke("a")).text == "one"
    assert model.invoke("b").text == "two"


@pytest.mark.parametrize("text", ["Hold the  button,\nthen wait. ", "", " "])
async def test_streamed_chunks_add_up_to_the_entry(text):
    model = ScriptedChatModel(responses=[text], cycle=True)
    chunks = list(model.stream("a"))
    assert "".join(chunk.text for chunk in chunks) == text
    assert "".join([chunk.text async for chunk in model.astream("a")]) == text
    assert len(model.calls) == 2


def test_words_are_streamed_one_by_one():
    chunks = list(ScriptedChatModel(responses=["Hold the button"]).stream("a"))
    assert [chunk.text for chunk in chunks if chunk.text] == ["Hold", " the", " button"]


def test_an_exception_in_the_script_is_raised_and_the_script_goes_on():
    model = ScriptedChatModel(responses=[TimeoutError("busy"), "fine"])
    with pytest.raises(TimeoutError, match="busy"):
        model.invoke("a")
    assert model.invoke("b").text == "fine"
    assert len(model.calls) == 2


def test_a_script_that_runs_out_says_so():
    model = ScriptedChatModel(responses=["one"])
    model.invoke("a")
    with pytest.raises(IndexError, match="has 1 responses, and this is call 2"):
        model.invoke("b")


def test_a_cycled_script_starts_again_with_fresh_messages():
    model = ScriptedChatModel(responses=[AIMessage("one"), "two"], cycle=True)
    answers = [model.invoke("a") for _ in range(3)]
    assert [answer.text for answer in answers] == ["one", "two", "one"]
    assert answers[0] is not answers[2]


def test_an_empty_script_says_so_even_when_cycled():
    with pytest.raises(IndexError, match="has 0 responses"):
        ScriptedChatModel(responses=[], cycle=True).invoke("a")


def test_a_function_answers_from_the_messages():
    model = ScriptedChatModel(responses=lambda messages: messages[-1].text.upper())
    assert model.invoke("loud").text == "LOUD"


def test_structured_output_is_read_from_a_scripted_tool_call():
    model = ScriptedChatModel(responses=[AIMessage("", tool_calls=[CALL])])
    assert model.with_structured_output(Grade).invoke("grade it") == Grade(reward=0.5)


def test_a_text_where_structured_output_was_asked_for_is_no_structured_output():
    model = ScriptedChatModel(responses=["half a point"])
    assert model.with_structured_output(Grade).invoke("grade it") is None


def test_tool_calls_and_usage_survive_streaming():
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    entry = AIMessage("I will grade", tool_calls=[CALL], usage_metadata=usage)
    model = ScriptedChatModel(responses=[entry])
    chunks = list(model.bind_tools([Grade]).stream("grade it"))
    total = sum(chunks[1:], chunks[0])
    assert (total.text, total.tool_calls, total.usage_metadata) == ("I will grade", [CALL], usage)


def test_threads_share_one_script_without_losing_or_repeating_an_entry():
    model = ScriptedChatModel(responses=[str(number) for number in range(200)])
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: model.invoke(str(n)).text, range(200)))
    assert sorted(answers, key=int) == [str(number) for number in range(200)]
    assert len(model.calls) == 200
