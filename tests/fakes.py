"""Stand-ins for what lies outside: an embedding model that counts and goes wrong when told."""

import asyncio
import functools
import hashlib
import inspect

import numpy as np
from langchain_core.embeddings import Embeddings

from langchain_memrl.core.probes import PROBES
from langchain_memrl.embedding import GUARD

FAULTS = {
    "fewer": lambda rows: rows[:-1],
    "more": lambda rows: [*rows, rows[0]],
    "none": lambda rows: [],
    "nan": lambda rows: [*rows[:-1], [float("nan"), *rows[-1][1:]]],
    "infinite": lambda rows: [*rows[:-1], [float("inf"), *rows[-1][1:]]],
    "zero": lambda rows: [*rows[:-1], [0.0] * len(rows[-1])],
    "dimension": lambda rows: [row[:-1] for row in rows],
    "ragged": lambda rows: [*rows[:-1], rows[-1][:-1]] if len(rows) > 1 else [rows[0][:-1]],
    "text": lambda rows: [["a"] * len(row) for row in rows],
    "shuffled": lambda rows: rows[::-1],
    "sorted": sorted,
}


@functools.lru_cache(maxsize=10_000)
def numbers_of(text, dimension):
    """A unit vector that only depends on the text."""
    numbers = np.random.default_rng([*hashlib.sha256(text.encode()).digest()]).normal(
        size=dimension
    )
    return tuple((numbers / np.linalg.norm(numbers)).tolist())


class ProviderError(Exception):
    """What a provider's client raises."""


class FakeEmbeddings(Embeddings):
    """Numbers from the SHA-256 of model and text, or those given for a text.

    `calls` lists the texts of each call. `break_call(n, fault)` spoils the n-th call from now on:
    "raise", or a name in `FAULTS`.
    """

    def __init__(self, dimension=16, *, model="fake", vectors=None):
        self.dimension = dimension
        self.model = model
        self.vectors = dict(vectors or {})
        self.calls = []
        self.awaited = 0
        self._faults = {}

    @property
    def texts(self):
        """Every text asked for so far, without those that check the model."""
        return [text for call in self.calls for text in call if text not in PROBES]

    def break_call(self, number, fault):
        self._faults[len(self.calls) + number] = fault

    def vector(self, text):
        if text in self.vectors:
            given = list(map(float, self.vectors[text]))
            return given + [0.0] * (self.dimension - len(given))
        return list(numbers_of(f"{self.model}\n{text}", self.dimension))

    def embed_documents(self, texts):
        self.calls.append([text for text in texts if text != GUARD])
        fault = self._faults.pop(len(self.calls), None)
        if fault == "raise":
            raise ProviderError("429: try again later")
        rows = [self.vector(text) for text in texts]
        return FAULTS[fault](rows) if fault else rows

    async def aembed_documents(self, texts):
        self.awaited += 1
        await asyncio.sleep(0)
        return self.embed_documents(texts)

    def embed_query(self, text):
        raise AssertionError("intents and tasks are always embedded as documents")


def at_cosine(cosine):
    """The first two numbers of a unit vector with this cosine to (1, 0)."""
    return [cosine, (1 - cosine**2) ** 0.5]


class AwaitedMemory:
    """An `EpisodicMemory` whose verbs are awaited, each call in an event loop of its own."""

    def __init__(self, memory):
        self._memory = memory

    def __getattr__(self, name):
        found = getattr(self._memory, name)
        verb = getattr(type(self._memory), f"a{name}", None)
        if inspect.iscoroutinefunction(verb):
            return lambda *args, **kwargs: asyncio.run(verb(self._memory, *args, **kwargs))
        return found

    def in_namespace(self, namespace):
        return AwaitedMemory(self._memory.in_namespace(namespace))
