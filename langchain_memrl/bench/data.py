"""Banks to measure: texts whose vectors are known, so that no embedding model is timed."""

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from langchain_memrl.memory import EpisodicMemory

BATCH = 1000
CLUSTERS = 200
NOISE = 1.0


class Tasks(Embeddings):
    """Task texts with unit vectors in clusters, as real tasks are; any other text gets its own.

    Args:
        size: How many tasks there are.
        dimension: Numbers per vector.
        seed: Of the vectors.
    """

    def __init__(self, size: int, dimension: int, seed: int = 0) -> None:
        rng = np.random.default_rng([seed, size, dimension])
        centres = rng.normal(size=(CLUSTERS, dimension))
        rows = centres[rng.integers(CLUSTERS, size=size)] + NOISE * rng.normal(
            size=(size, dimension)
        )
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        self.vectors: NDArray[np.float32] = rows.astype(np.float32)
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


def fill(memory: EpisodicMemory, tasks: Tasks) -> None:
    """Write one memory per task."""
    for start in range(0, len(tasks.texts), BATCH):
        memory.remember_many(
            [
                {"intent": text, "lesson": f"what {text} taught"}
                for text in tasks.texts[start : start + BATCH]
            ]
        )
