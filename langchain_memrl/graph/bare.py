"""Graphs that the bench measures the loop beside: one that does nothing, one plain agent."""

from typing import Annotated, Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages


class _State(TypedDict):
    messages: list[Any]


class _Conversation(TypedDict):
    messages: Annotated[list[Any], add_messages]


def no_op_graph() -> Any:
    """A compiled graph of six steps that do nothing."""
    builder = StateGraph(_State)
    names = ("retrieve", "generate", "evaluate", "update_q", "summarize", "write")
    for name in names:
        builder.add_node(name, lambda state: {})
    for one, other in zip((START, *names), (*names, END), strict=True):
        builder.add_edge(one, other)
    return builder.compile()


def tool_agent(model: BaseChatModel, system: str, result: str) -> Any:
    """A compiled agent that calls tools until the model answers; every tool returns `result`."""

    def ask(state: _Conversation) -> dict[str, Any]:
        return {"messages": [model.invoke([SystemMessage(system), *state["messages"]])]}

    def act(state: _Conversation) -> dict[str, Any]:
        calls = state["messages"][-1].tool_calls
        return {"messages": [ToolMessage(result, tool_call_id=call["id"]) for call in calls]}

    def after(state: _Conversation) -> str:
        return "act" if state["messages"][-1].tool_calls else END

    builder = StateGraph(_Conversation)
    builder.add_node("ask", ask)
    builder.add_node("act", act)
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", after, ["act", END])
    builder.add_edge("act", "ask")
    return builder.compile()
