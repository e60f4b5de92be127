"""The learning loop as a LangGraph subgraph."""

from langchain_memrl.graph.builder import (
    create_memrl_builder,
    create_memrl_graph,
    make_memrl_nodes,
)
from langchain_memrl.graph.state import MemRLState

__all__ = ["MemRLState", "create_memrl_builder", "create_memrl_graph", "make_memrl_nodes"]
