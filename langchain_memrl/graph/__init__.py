"""The learning loop as a LangGraph subgraph."""

from langchain_memrl.graph.builder import (
    create_memrl_builder,
    create_memrl_graph,
    make_memrl_nodes,
)

__all__ = ["create_memrl_builder", "create_memrl_graph", "make_memrl_nodes"]
