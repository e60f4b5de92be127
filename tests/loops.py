"""What the tests of the graph share: a task, two ways to run, and Q by its closed form."""

import asyncio
import itertools
import sqlite3

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph

TASK = "reset the router"
STEPS = ["retrieve", "generate", "evaluate", "update_q", "summarize", "write"]


def alternating(values):
    """Pairs of a form and a value, for tests whose many cases need no second run each."""
    return list(zip(itertools.cycle(["blocking", "awaited"]), values, strict=False))


def ask(text=TASK):
    """The input of one turn."""
    return {"messages": [("user", text)]}


def thread(name="1", **more):
    """The config of one thread; other keyword arguments go beside `configurable`."""
    return {"configurable": {"thread_id": name}, **more}


def answering(text="Hold the button."):
    """An agent that always says the same."""
    return lambda messages: AIMessage(text)


def in_parent(graph, **compiled):
    """The loop as the only node of a graph over messages."""
    builder = StateGraph(MessagesState).add_node("memrl", graph).add_edge(START, "memrl")
    return builder.compile(**compiled)


def run(form, graph, given, config=None, **options):
    """Invoke a graph, blocking or awaited."""
    if form == "blocking":
        return graph.invoke(given, config, **options)
    return asyncio.run(graph.ainvoke(given, config, **options))


def stream(form, graph, given, config=None, **options):
    """Everything a graph streams, blocking or awaited."""
    if form == "blocking":
        return list(graph.stream(given, config, **options))

    async def collect():
        return [part async for part in graph.astream(given, config, **options)]

    return asyncio.run(collect())


def events(form, graph, given, config=None, **options):
    """The custom events of one run."""
    return stream(form, graph, given, config, stream_mode="custom", **options)


def kinds(found):
    """The types of events, without the package's prefix."""
    return [event["type"].removeprefix("memrl.") for event in found]


def closed_form(reward, updates, step_size=0.3, start=0.0):
    """Q after so many equal rewards: `r + (1 - a)^n (Q0 - r)`."""
    return reward + (1 - step_size) ** updates * (start - reward)


def dump(folder):
    """Every row of the bank in a folder, read by a connection of its own."""
    with sqlite3.connect(folder / "memrl.sqlite3") as connection:
        return list(connection.iterdump())


def wrap_step(builder, name, before=None, after=None):
    """Run functions around one step of a builder, inside its node."""
    step = builder.nodes[name].runnable
    before, after = before or _nothing, after or _nothing

    def blocking(state, config: RunnableConfig):
        before()
        update = step.invoke(state, config)
        after()
        return update

    async def awaited(state, config: RunnableConfig):
        before()
        update = await step.ainvoke(state, config)
        after()
        return update

    builder.nodes[name].runnable = RunnableLambda(blocking, awaited, name=name)


def _nothing():
    pass
