"""Episodic memory for LangChain and LangGraph that learns which of its memories help (MemRL).

The names below are loaded when they are first used, so that importing the package is quick.
"""

import importlib
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_memrl.config import PRESETS, LearningConfig, RecallConfig
    from langchain_memrl.memory import EpisodicMemory
    from langchain_memrl.types import (
        Candidate,
        Credit,
        Episode,
        Memory,
        Recall,
        Reinforcement,
        ScoredMemory,
        Verdict,
    )

_HOMES = {
    "PRESETS": "config",
    "Candidate": "types",
    "Credit": "types",
    "Episode": "types",
    "EpisodicMemory": "memory",
    "LearningConfig": "config",
    "Memory": "types",
    "Recall": "types",
    "RecallConfig": "config",
    "Reinforcement": "types",
    "ScoredMemory": "types",
    "Verdict": "types",
}

__version__ = _version("langchain-memrl")
__all__ = [
    "PRESETS",
    "Candidate",
    "Credit",
    "Episode",
    "EpisodicMemory",
    "LearningConfig",
    "Memory",
    "Recall",
    "RecallConfig",
    "Reinforcement",
    "ScoredMemory",
    "Verdict",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
