"""Fixtures for the tests of everything that loops: the graph and the middleware."""

import pytest
from fakes import FakeEmbeddings, at_cosine
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.event_hooks import register_serde_event_listener
from loops import TASK

from langchain_memrl import MemRLRetriever
from langchain_memrl.core.probes import PROBES

PROBE_VECTORS = {text: FakeEmbeddings().vector(text) for text in PROBES}  # once: they cost most
SEED = {"intent": "restart the modem", "lesson": "Press it for ten seconds."}


@pytest.fixture(autouse=True)
def only_registered_types():
    """Every checkpoint that a test reads holds nothing but types LangGraph calls safe."""
    found = []
    stop = register_serde_event_listener(found.append)
    yield
    stop()
    assert found == []


@pytest.fixture
def embeddings():
    return FakeEmbeddings(vectors={**PROBE_VECTORS, TASK: [1, 0], SEED["intent"]: at_cosine(0.8)})


@pytest.fixture
def seed(bank):
    """The one memory that is there at the start, and the only one the retriever may choose."""
    return bank.remember(**SEED, trajectory="pressed it", outcome="success", source="seed")


@pytest.fixture
def retriever(bank, seed):
    return MemRLRetriever(memory=bank, filter={"source": "seed"}, score_threshold=None)


@pytest.fixture(params=["blocking", "awaited"])
def form(request):
    """How a graph is run; see `loops.run`."""
    return request.param


@pytest.fixture
def saver():
    return InMemorySaver()
