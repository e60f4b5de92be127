"""Arms: configurations of the same parts. Only what is in the bank and how it ranks differs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.embeddings import Embeddings

from langchain_memrl.config import LearningConfig
from langchain_memrl.evals.suites.runbooks import Runbooks
from langchain_memrl.graph.builder import create_memrl_graph
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.retriever import MemRLRetriever


@dataclass(frozen=True, slots=True)
class Arm:
    """One configuration.

    Attributes:
        name: Its name in records and figures.
        notes: Which notes its bank holds: `"none"`, `"all"`, or only those that hold, `"right"`.
        q_weight: Weight of Q in the ranking.
        step_size: How fast Q moves; 0 never.
    """

    name: str
    notes: str
    q_weight: float
    step_size: float


ARMS = (
    Arm("none", notes="none", q_weight=0.0, step_size=0.0),
    Arm("rag", notes="all", q_weight=0.0, step_size=0.0),
    Arm("memrl", notes="all", q_weight=0.5, step_size=0.3),
    Arm("oracle", notes="right", q_weight=0.0, step_size=0.0),
)


def open_bank(arm: Arm, world: Runbooks, embeddings: Embeddings, seed: int) -> EpisodicMemory:
    """A bank in memory with the arm's notes."""
    memory = EpisodicMemory.open(
        ":memory:",
        embeddings=embeddings,
        learning=LearningConfig(step_size=arm.step_size),
        seed=seed,
    )
    notes = [note for note in world.notes if arm.notes == "all" or note.holds]
    if arm.notes != "none":
        memory.remember_many(
            [
                {"intent": note.title, "lesson": f"Queue: {note.queue}", "source": "runbook"}
                for note in notes
            ]
        )
    return memory


def build_loop(arm: Arm, memory: EpisodicMemory, model: Any, judge: Callable[[Any], bool]) -> Any:
    """The learning loop, but nothing is written: arms differ by ranking alone.

    One note is shown, as an earlier question and answer: a small model copies what stands nearest.
    """
    return create_memrl_graph(
        model,
        MemRLRetriever(memory=memory, k=1, q_weight=arm.q_weight),
        evaluator=judge,
        write=False,
        render="turns",
        name=f"runbooks-{arm.name}",
    )
