"""The steps of the learning loop that a graph and an agent's middleware share."""

from langchain_memrl.loop.steps import LoopSteps

__all__ = ["LoopSteps"]
