"""Does `score_threshold="auto"` let a bank's own kind of task through and keep others out?"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

from langchain_memrl.errors import InputError
from langchain_memrl.memory import EpisodicMemory

TASKS = 100
"""How many tasks of either kind are tried per draw, at most."""


class Passed(NamedTuple):
    """Shares of tasks that found something similar enough, over several draws of the bank.

    Attributes:
        size: How many intents the bank held.
        own: Mean share of the bank's own kind of task, of tasks that it does not hold.
        own_least: The lowest share of a draw.
        foreign: Mean share of tasks of another kind.
        foreign_most: The highest share of a draw.
    """

    size: int
    own: float
    own_least: float
    foreign: float
    foreign_most: float


def passed(
    own: Sequence[str],
    foreign: Sequence[str],
    embeddings: Embeddings,
    *,
    sizes: Sequence[int],
    draws: int = 10,
    seed: int = 0,
) -> Iterator[Passed]:
    """Fill real banks with some of the own tasks and recall others, own and foreign.

    Args:
        own: Different texts of one kind of task; more than the largest size.
        foreign: Texts of another kind.
        embeddings: The model.
        sizes: How many intents the banks hold.
        draws: Banks per size, each with another random choice of its tasks.
        seed: Of that choice.

    Yields:
        One result per size.

    Raises:
        InputError: There are too few texts.
    """
    if not foreign or len(own) <= max(sizes):
        raise InputError(
            f"got {len(own)} own and {len(foreign)} foreign tasks; expected at least one foreign "
            f"and more own tasks than the largest bank holds ({max(sizes)}; choose other sizes)"
        )
    known = _Known(embeddings)
    for size in sizes:
        shares = [
            _shares(own, foreign, known, size, np.random.default_rng([seed, size, draw]))
            for draw in range(draws)
        ]
        kinds = np.array(shares).T
        yield Passed(
            size,
            float(kinds[0].mean()),
            float(kinds[0].min()),
            float(kinds[1].mean()),
            float(kinds[1].max()),
        )


def _shares(
    own: Sequence[str],
    foreign: Sequence[str],
    embeddings: Embeddings,
    size: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """One bank: the shares of own and of foreign tasks that passed."""
    mixed = [own[place] for place in rng.permutation(len(own))]
    others = [foreign[place] for place in rng.permutation(len(foreign))[:TASKS]]
    with EpisodicMemory.open(":memory:", embeddings=embeddings) as memory:
        memory.remember_many([{"intent": text, "lesson": "x"} for text in mixed[:size]])
        return (
            _share(memory, mixed[size : size + TASKS]),
            _share(memory, others),
        )


def _share(memory: EpisodicMemory, tasks: Sequence[str]) -> float:
    episodes = [f"task {number}" for number in range(len(tasks))]
    recalls = memory.recall_many(tasks, k=1, episode_ids=episodes, record=False)
    return sum(bool(recall.memories) for recall in recalls) / len(tasks)


class _Known(Embeddings):
    """Embeddings that are asked for every text once."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._vectors: dict[str, list[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        self._vectors |= zip(new, self._embeddings.embed_documents(new), strict=True)
        return [self._vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text."""
        return self.embed_documents([text])[0]
