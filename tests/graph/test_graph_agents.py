import asyncio

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt
from loops import TASK, ask, in_parent, run, thread

from langchain_memrl import create_memrl_builder, create_memrl_graph, verbatim
from langchain_memrl.errors import ConfigError
from langchain_memrl.offline import ScriptedChatModel


def loop_of(agent, retriever, **options):
    settings = {"evaluator": lambda state: 1.0, "summarizer": verbatim} | options
    return create_memrl_builder(agent, retriever, **settings)


def written(bank):
    (memory,) = bank.list(filter={"source": "agent"})
    return memory


class Recorder:
    """An agent that keeps what it was given."""

    def __init__(self, answer="an answer"):
        self.prompts = []
        self.answer = answer

    def __call__(self, messages):
        self.prompts.append(list(messages))
        return self.answer


# --- everything that answers --------------------------------------------------------------------

SYSTEM = ChatPromptTemplate.from_messages([("system", "Be brief."), MessagesPlaceholder("history")])


def model():
    return ScriptedChatModel(responses=["an answer"], cycle=True)


async def awaited(messages):
    await asyncio.sleep(0)
    return "an answer"


def in_pieces(messages):
    yield AIMessageChunk("an ")
    yield AIMessageChunk("answer")


AGENTS = {
    "chat model": model,
    "bound model": lambda: model().bind_tools([]),
    "configured model": lambda: model().with_config({"tags": ["mine"]}),
    "retried model": lambda: model().with_retry(),
    "prompt and model": lambda: {"history": RunnableLambda(list)} | SYSTEM | model(),
    "model and parser": lambda: model() | StrOutputParser(),
    "lambda on messages": lambda: RunnableLambda(lambda messages: AIMessage("an answer")),
    "function to str": lambda: lambda messages: "an answer",
    "function to message": lambda: lambda messages: AIMessage("an answer"),
    "function to list": lambda: lambda messages: [AIMessage("an answer")],
    "function that returns all": lambda: lambda messages: [*messages, AIMessage("an answer")],
    "function to dict": lambda: lambda messages: {"messages": [AIMessage("an answer")]},
    "pieces": lambda: RunnableLambda(in_pieces),
    "both forms": lambda: RunnableLambda(lambda messages: "an answer", awaited),
}


@pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)
def test_whatever_answers_can_be_the_agent(form, retriever, bank, seed, make):
    result = run(form, loop_of(make(), retriever).compile(), ask())
    assert [message.type for message in result["messages"]] == ["human", "ai"]
    assert type(result["messages"][-1]) is AIMessage
    assert result["messages"][-1].text == "an answer"
    assert written(bank).lesson == "an answer"
    assert bank.get(seed.id).updates == 1


def test_an_async_function_can_be_the_agent_of_an_awaited_run(retriever, bank):
    result = run("awaited", loop_of(awaited, retriever).compile(), ask())
    assert result["messages"][-1].text == "an answer"
    assert written(bank).lesson == "an answer"


def test_a_chat_model_writes_its_own_lesson_with_one_more_call(form, retriever, bank):
    agent = ScriptedChatModel(responses=["an answer", "a lesson"])
    run(form, create_memrl_graph(agent, retriever, evaluator=lambda state: 1.0), ask())
    assert len(agent.calls) == 2
    assert (written(bank).lesson, written(bank).trajectory) == ("a lesson", "an answer")


def test_several_messages_are_one_trajectory_and_the_last_text_is_the_answer(form, retriever, bank):
    def agent(messages):
        call = {"name": "ping", "args": {"host": "x"}, "id": "1"}
        return [
            AIMessage("Let me see.", tool_calls=[call]),
            ToolMessage("pong", tool_call_id="1", name="ping"),
            AIMessage("It answers."),
        ]

    result = run(form, loop_of(agent, retriever).compile(), ask())
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
    assert written(bank).lesson == "It answers."
    assert written(bank).trajectory.split("\n") == [
        "ai: Let me see.",
        'ai calls ping({"host": "x"})',
        "tool ping: pong",
        "ai: It answers.",
    ]


NO_ANSWERS = [
    (None, "NoneType"),
    (7, "int"),
    ({"answer": "x"}, "dict"),
    (("a", "b"), "tuple"),
    ([("ai", "x")], "list"),
    (["x"], "list"),
    ({"messages": None}, "NoneType"),
    (b"x", "bytes"),
]


def test_an_output_that_is_no_answer_is_a_type_error_and_nothing_is_learned(
    form, retriever, bank, seed
):
    outputs = iter(NO_ANSWERS)
    loop = loop_of(lambda messages: next(outputs)[0], retriever).compile()
    for _, name in NO_ANSWERS:
        with pytest.raises(TypeError, match=f"returned a {name}; expected a message, a str"):
            run(form, loop, ask())
    assert bank.get(seed.id).updates == 0
    assert bank.stats().memories == 1


@pytest.mark.parametrize("agent", [None, "model", 7, {}])
def test_an_agent_that_cannot_be_called_is_refused_when_the_graph_is_made(retriever, agent):
    with pytest.raises(ConfigError, match="agent is a"):
        loop_of(agent, retriever)


@pytest.mark.parametrize("output", [[], "", AIMessage("")], ids=repr)
def test_an_agent_that_says_nothing_is_judged_and_kept_raw(form, retriever, bank, output):
    run(form, loop_of(lambda messages: output, retriever).compile(), ask())
    assert written(bank).raw
    assert written(bank).trajectory == "(no answer)"


# --- a graph that acts over several steps ---------------------------------------------------------


def think(state):
    call = {"name": "ping", "args": {"host": "x"}, "id": "1"}
    return {"messages": [AIMessage("Let me see.", tool_calls=[call])]}


def use_tool(state):
    return {"messages": [ToolMessage("pong", tool_call_id="1", name="ping")]}


def unreachable(state):
    raise ConnectionError("down")


def conclude(state):
    return {"messages": [AIMessage(f"It answers after {len(state['messages'])} messages.")]}


def acting_graph(*nodes, **compiled):
    builder = StateGraph(MessagesState)
    builder.add_sequence([(node.__name__, node) for node in nodes or (think, use_tool, conclude)])
    return builder.add_edge(START, builder_entry(nodes)).compile(**compiled)


def builder_entry(nodes):
    return (nodes or (think,))[0].__name__


GRAPHS = {
    "compiled": lambda: acting_graph(),
    "configured": lambda: acting_graph().with_config({"tags": ["mine"], "recursion_limit": 9}),
    "retried": lambda: acting_graph().with_retry(),
    "in a parent": lambda: in_parent(acting_graph()),
    "with a fallback": lambda: acting_graph(unreachable).with_fallbacks([acting_graph()]),
}


@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
def test_a_graph_may_act_and_what_it_added_is_the_trajectory(form, retriever, bank, make):
    result = run(form, loop_of(make(), retriever).compile(), ask())
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
    # It saw the memories, the task, and its own two messages.
    assert result["messages"][-1].text == "It answers after 4 messages."
    assert written(bank).trajectory.split("\n") == [
        "ai: Let me see.",
        'ai calls ping({"host": "x"})',
        "tool ping: pong",
        "ai: It answers after 4 messages.",
    ]


@tool
def ping(host: str) -> str:
    """Asks a machine whether it is there."""
    return f"{host} answers"


def test_an_agent_with_real_tools_acts_until_it_is_done(form, retriever, bank):
    model = ScriptedChatModel(
        responses=[
            AIMessage("", tool_calls=[{"name": "ping", "args": {"host": "a"}, "id": "1"}]),
            AIMessage("", tool_calls=[{"name": "ping", "args": {"host": "b"}, "id": "2"}]),
            "Both answer.",
        ]
    ).bind_tools([ping])
    builder = StateGraph(MessagesState).add_node("tools", ToolNode([ping]))
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_edge(START, "model").add_edge("tools", "model")
    builder.add_conditional_edges("model", tools_condition)
    result = run(form, loop_of(builder.compile(), retriever).compile(), ask())
    said = [message.type for message in result["messages"]]
    assert said == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert written(bank).lesson == "Both answer."
    assert written(bank).trajectory.split("\n") == [
        'ai calls ping({"host": "a"})',
        "tool ping: a answers",
        'ai calls ping({"host": "b"})',
        "tool ping: b answers",
        "ai: Both answer.",
    ]


def test_earlier_turns_are_not_part_of_the_trajectory(form, retriever, bank, saver):
    loop = loop_of(acting_graph(), retriever).compile(checkpointer=saver)
    run(form, loop, ask("reset the router 1"), thread())
    run(form, loop, ask("reset the router 2"), thread())
    for memory in bank.list(filter={"source": "agent"}):
        assert memory.trajectory.count("Let me see.") == 1
        assert memory.trajectory.count("pong") == 1


def ask_first(state):
    approved = interrupt({"question": "may I?"})
    return {"messages": [AIMessage(f"Done: {approved}.")]}


def confirm(state):
    sure = interrupt({"question": "sure?"})
    return {"messages": [AIMessage(f"Confirmed: {sure}.")]}


@pytest.mark.parametrize("own", [None, True], ids=["inherited", "kept over turns"])
def test_an_agent_that_waits_for_a_person_resumes_where_it_was(
    form, retriever, bank, seed, saver, nested, own
):
    ran = []

    def act(state):
        ran.append(len(state["messages"]))
        return {"messages": [AIMessage("I am about to press it.")]}

    builder = loop_of(acting_graph(act, ask_first, confirm, checkpointer=own), retriever)
    if nested:
        loop = in_parent(builder.compile(), checkpointer=saver)
    else:
        loop = builder.compile(checkpointer=saver)
    first = run(form, loop, ask(), thread())
    assert first["__interrupt__"][0].value == {"question": "may I?"}
    assert bank.stats().memories == 1
    second = run(form, loop, Command(resume="yes"), thread())
    assert second["__interrupt__"][0].value == {"question": "sure?"}
    result = run(form, loop, Command(resume="very"), thread())
    said = [message.text for message in result["messages"]]
    assert said == [TASK, "I am about to press it.", "Done: yes.", "Confirmed: very."]
    assert ran == [2]
    assert written(bank).trajectory == (
        "ai: I am about to press it.\nai: Done: yes.\nai: Confirmed: very."
    )
    assert bank.get(seed.id).updates == 1


def test_an_agent_that_fails_halfway_resumes_with_the_same_prompt(form, retriever, bank, saver):
    prompts, failures = [], [TimeoutError("busy")]

    def act(state):
        prompts.append([message.id for message in state["messages"]])
        return {"messages": [AIMessage("one")]}

    def stumble(state):
        if failures:
            raise failures.pop()
        prompts.append([message.id for message in state["messages"]])
        return {"messages": [AIMessage("two")]}

    loop = loop_of(acting_graph(act, stumble), retriever).compile(checkpointer=saver)
    with pytest.raises(TimeoutError):
        run(form, loop, ask(), thread())
    result = run(form, loop, None, thread())
    assert [message.text for message in result["messages"]] == [TASK, "one", "two"]
    assert len(prompts) == 2
    assert prompts[1][:2] == prompts[0]
    assert written(bank).trajectory == "ai: one\nai: two"


def test_an_agent_with_a_memory_of_its_own_sees_each_turns_block_once(form, retriever, bank, saver):
    prompts = []

    def act(state):
        prompts.append([message.text for message in state["messages"]])
        return {"messages": [AIMessage(f"answer {len(prompts)}")]}

    loop = loop_of(acting_graph(act, checkpointer=True), retriever)
    loop = loop.compile(checkpointer=saver)
    for number in (1, 2, 3):
        result = run(form, loop, ask(f"{TASK} {number}"), thread())
    assert [message.type for message in result["messages"]] == ["human", "ai"] * 3
    assert all(text.count("=== memories") in (0, 3) for text in prompts[-1])
    assert prompts[-1][-1] == f"{TASK} 3"


def test_a_nested_loop_can_be_the_agent(form, retriever, bank, seed):
    inner = create_memrl_graph(lambda messages: "inner", retriever, evaluator=lambda state: 1.0)
    result = run(form, loop_of(inner, retriever).compile(), ask())
    assert [message.text for message in result["messages"]] == [TASK, "inner"]
    assert bank.get(seed.id).updates == 2
    assert bank.stats().memories == 3


def test_an_agent_that_empties_its_prompt_changes_no_conversation(form, retriever):
    def vandal(messages):
        messages.clear()
        return "an answer"

    message = HumanMessage(TASK, id="mine")
    result = run(form, loop_of(vandal, retriever).compile(), {"messages": [message]})
    assert [found.text for found in result["messages"]] == [TASK, "an answer"]
    assert message == HumanMessage(TASK, id="mine")
