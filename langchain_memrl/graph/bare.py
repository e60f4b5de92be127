"""A graph that does nothing: what the bench measures the loop beside."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph


class _State(TypedDict):
    messages: list[Any]


def no_op_graph() -> Any:
    """A compiled graph of six steps that do nothing."""
    builder = StateGraph(_State)
    names = ("retrieve", "generate", "evaluate", "update_q", "summarize", "write")
    for name in names:
        builder.add_node(name, lambda state: {})
    for one, other in zip((START, *names), (*names, END), strict=True):
        builder.add_edge(one, other)
    return builder.compile()
