"""Banks to measure: texts whose vectors are known, so that no embedding model is timed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from langchain_memrl.bench.rows import Row
from langchain_memrl.bench.timing import Times
from langchain_memrl.memory import EpisodicMemory

BATCH = 1000
CLUSTERS = 200
NOISE = 1.0
STRIDE = 7919
"""A prime: stepping by it visits a bank all over, and no place twice."""


class Tasks(Embeddings):
    """Task texts with unit vectors in clusters, as real tasks are; any other text gets its own.

    Args:
        size: How many tasks there are.
        dimension: Numbers per vector.
        seed: Of the vectors.
    """

    def __init__(self, size: int, dimension: int, seed: int = 0) -> None:
        rng = np.random.default_rng([seed, size, dimension])
        centres = rng.standard_normal((CLUSTERS, dimension), dtype=np.float32)
        self.vectors: NDArray[np.float32] = np.empty((size, dimension), dtype=np.float32)
        for places in batches(size):
            shape = (len(places), dimension)
            rows = centres[rng.integers(CLUSTERS, size=len(places))]
            rows = rows + np.float32(NOISE) * rng.standard_normal(shape, dtype=np.float32)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            self.vectors[places.start : places.stop] = rows
        self.texts = [f"task {number}" for number in range(size)]
        self._places = {text: place for place, text in enumerate(self.texts)}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text."""
        place = self._places.get(text)
        if place is not None:
            found: list[float] = self.vectors[place].tolist()
            return found
        seed = [*text.encode()]
        size = (self.vectors.shape[1],)
        made: list[float] = np.random.default_rng(seed).normal(size=size).tolist()
        return made

    def text(self, number: int) -> str:
        """Another stored task for every number, from all over the bank."""
        return self.texts[self.place(number)]

    def place(self, number: int) -> int:
        """Where that task stands."""
        return number * STRIDE % len(self.texts)


class Filled(NamedTuple):
    """An open bank that holds one memory per task.

    Attributes:
        memory: The bank.
        tasks: What it was filled with.
        folder: A place for files of the measurements.
        rounds: How often each call is timed.
    """

    memory: EpisodicMemory
    tasks: Tasks
    folder: Path
    rounds: int

    def row(self, what: str, times: Times, *beside: Any, **more: Any) -> Row:
        """A line about this bank."""
        size, dimension = self.tasks.vectors.shape
        return Row(what, size, dimension, times, *beside, **more)


def batches(size: int) -> Iterator[range]:
    """The numbers below `size`, a thousand at a time."""
    return (range(start, min(start + BATCH, size)) for start in range(0, size, BATCH))


def fill(memory: EpisodicMemory, tasks: Tasks) -> None:
    """Write one memory per task."""
    for places in batches(len(tasks.texts)):
        memory.remember_many(
            [{"intent": tasks.texts[n], "lesson": f"what helped: {tasks.texts[n]}"} for n in places]
        )
