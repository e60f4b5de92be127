"""Episodic memory for LangChain and LangGraph that learns which of its memories help (MemRL).

The names below are loaded when they are first used, so that importing the package is quick.
"""

import importlib
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_memrl.compressor import MemRLCompressor
    from langchain_memrl.config import PRESETS, LearningConfig, RecallConfig, TrustConfig
    from langchain_memrl.errors import MemRLError
    from langchain_memrl.evaluators import (
        LLMJudge,
        contains,
        exact_match,
        from_openevals,
        reward_from,
    )
    from langchain_memrl.from_config import FromConfig
    from langchain_memrl.graph import create_memrl_builder, create_memrl_graph, make_memrl_nodes
    from langchain_memrl.learner import summarize_pending
    from langchain_memrl.loading import load_memories
    from langchain_memrl.memory import EpisodicMemory
    from langchain_memrl.retriever import MemRLRetriever
    from langchain_memrl.summarizers import Attempt, LLMSummarizer, verbatim
    from langchain_memrl.types import (
        Candidate,
        Credit,
        Episode,
        Memory,
        Recall,
        Reinforcement,
        ScoredMemory,
        ShownMemory,
        Verdict,
    )

_HOMES = {
    "PRESETS": "config",
    "Attempt": "summarizers",
    "Candidate": "types",
    "Credit": "types",
    "Episode": "types",
    "EpisodicMemory": "memory",
    "FromConfig": "from_config",
    "LLMJudge": "evaluators",
    "LLMSummarizer": "summarizers",
    "LearningConfig": "config",
    "MemRLCompressor": "compressor",
    "MemRLError": "errors",
    "MemRLRetriever": "retriever",
    "Memory": "types",
    "Recall": "types",
    "RecallConfig": "config",
    "Reinforcement": "types",
    "ScoredMemory": "types",
    "ShownMemory": "types",
    "TrustConfig": "config",
    "Verdict": "types",
    "contains": "evaluators",
    "create_memrl_builder": "graph",
    "create_memrl_graph": "graph",
    "exact_match": "evaluators",
    "from_openevals": "evaluators",
    "load_memories": "loading",
    "make_memrl_nodes": "graph",
    "reward_from": "evaluators",
    "summarize_pending": "learner",
    "verbatim": "summarizers",
}

__version__ = _version("langchain-memrl")
__all__ = [
    "PRESETS",
    "Attempt",
    "Candidate",
    "Credit",
    "Episode",
    "EpisodicMemory",
    "FromConfig",
    "LLMJudge",
    "LLMSummarizer",
    "LearningConfig",
    "MemRLCompressor",
    "MemRLError",
    "MemRLRetriever",
    "Memory",
    "Recall",
    "RecallConfig",
    "Reinforcement",
    "ScoredMemory",
    "ShownMemory",
    "TrustConfig",
    "Verdict",
    "contains",
    "create_memrl_builder",
    "create_memrl_graph",
    "exact_match",
    "from_openevals",
    "load_memories",
    "make_memrl_nodes",
    "reward_from",
    "summarize_pending",
    "verbatim",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
