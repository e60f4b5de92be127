"""Where the loop is wired: retrieve -> generate -> evaluate -> update_q -> summarize -> write."""

from collections.abc import Callable
from typing import Any, Literal

from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from langchain_memrl.evaluators import Evaluator
from langchain_memrl.graph.agent import Agent
from langchain_memrl.graph.nodes import Nodes
from langchain_memrl.graph.state import MemRLInput, MemRLOutput, MemRLState
from langchain_memrl.learner import Learner
from langchain_memrl.rendering import Render
from langchain_memrl.retriever import MemRLRetriever
from langchain_memrl.summarizers import Summarizer


def create_memrl_graph(
    agent: Any,
    retriever: MemRLRetriever,
    *,
    evaluator: Evaluator | Literal["human"],
    summarizer: Summarizer | None = None,
    learn: bool = True,
    write: bool = True,
    intent: Callable[[Any], str] | None = None,
    render: Render = "fenced",
    max_memory_tokens: int = 1500,
    name: str = "memrl",
) -> CompiledStateGraph[MemRLState, None, MemRLInput, MemRLOutput]:
    """The learning loop as a compiled graph, alone or as a node of any graph with `messages`.

    Every episode is learned once and written once, also after a crash, a retry, a resume or time
    travel. The checkpointer is inherited from the parent; compile `create_memrl_builder(...)`
    yourself to give a standalone graph one.

    Usage:
        ```python
        memrl = create_memrl_graph(model, retriever, evaluator=tests_pass)
        result = memrl.invoke({"messages": [("user", "Fix the flaky test")]})
        result["messages"][-1], result["episode_id"], result["reward"]
        ```

    Args:
        agent: What acts: a chat model, any Runnable, or a compiled graph that may act over several
            steps. What it adds to `messages` is the trajectory.
        retriever: Recalls the memories; its bank is where the loop learns.
        evaluator: Judges the answer; see `evaluators.py`. `"human"` waits for a person with
            `interrupt` and needs a checkpointer. None from it leaves the episode open.
        summarizer: Writes the lesson. By default the agent itself where it is a chat model, else
            the answer is kept verbatim.
        learn: False freezes the bank: recall only.
        write: False moves Q but writes no memories: a fixed set of notes learns its ranking.
        intent: Finds the task text in the state; the last human message by default.
        render: `"fenced"`, `"turns"`, or a callable `(messages, memories) -> prompt`.
        max_memory_tokens: Budget of the memories in one prompt.
        name: The graph's name.

    Returns:
        A graph from `messages` to `messages`, `episode_id` and `reward`.

    Raises:
        ConfigError: A setting is unusable.
    """
    builder = create_memrl_builder(
        agent,
        retriever,
        evaluator=evaluator,
        summarizer=summarizer,
        learn=learn,
        write=write,
        intent=intent,
        render=render,
        max_memory_tokens=max_memory_tokens,
    )
    return builder.compile(name=name)


def create_memrl_builder(
    agent: Any,
    retriever: MemRLRetriever,
    *,
    evaluator: Evaluator | Literal["human"],
    summarizer: Summarizer | None = None,
    learn: bool = True,
    write: bool = True,
    intent: Callable[[Any], str] | None = None,
    render: Render = "fenced",
    max_memory_tokens: int = 1500,
) -> StateGraph[MemRLState, None, MemRLInput, MemRLOutput]:
    """The uncompiled loop, to add steps, retry policies or a checkpointer.

    Never give `retrieve`, `update_q` or `write` a cache policy: it would serve stale rankings and
    skip learning. Arguments as in `create_memrl_graph`.
    """
    nodes = make_memrl_nodes(
        agent,
        retriever,
        evaluator=evaluator,
        summarizer=summarizer,
        learn=learn,
        write=write,
        intent=intent,
        render=render,
        max_memory_tokens=max_memory_tokens,
    )
    builder = StateGraph(MemRLState, input_schema=MemRLInput, output_schema=MemRLOutput)
    for node, runnable in nodes.items():
        builder.add_node(node, runnable)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "generate")
    builder.add_edge("generate", "evaluate")
    if not learn:
        builder.add_edge("evaluate", END)
        return builder
    builder.add_edge("evaluate", "update_q")
    if write:
        builder.add_conditional_edges("update_q", _after_update, ["summarize", END])
        builder.add_edge("summarize", "write")
        builder.add_edge("write", END)
    else:
        builder.add_edge("update_q", END)
    return builder


def make_memrl_nodes(
    agent: Any,
    retriever: MemRLRetriever,
    *,
    evaluator: Evaluator | Literal["human"],
    summarizer: Summarizer | None = None,
    learn: bool = True,
    write: bool = True,
    intent: Callable[[Any], str] | None = None,
    render: Render = "fenced",
    max_memory_tokens: int = 1500,
) -> dict[str, Runnable[MemRLState, dict[str, Any]]]:
    """The single steps, for a graph of your own whose state extends `graph.MemRLState`.

    Arguments as in `create_memrl_graph`.

    Returns:
        `retrieve`, `generate` and `evaluate`, with `learn` also `update_q`, and with `write` also
        `summarize` and `write`, in the order in which they run.
    """
    learner = Learner(
        retriever.memory,
        evaluator=evaluator,
        summarizer=summarizer,
        agent=agent,
        intent=intent,
        render=render,
        max_memory_tokens=max_memory_tokens,
    )
    nodes = Nodes(Agent(agent), retriever, learner, learn=learn, write=write)
    steps = 3 if not learn else 6 if write else 4
    return dict(list(nodes.runnables().items())[:steps])


def _after_update(state: MemRLState) -> str:
    """An open episode ends here; `reinforce` completes it later."""
    return END if state["reward"] is None else "summarize"
