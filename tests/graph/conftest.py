import sqlite3

import pytest
from fakes import FakeEmbeddings, at_cosine
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from loops import TASK

from langchain_memrl import MemRLRetriever
from langchain_memrl.core.probes import PROBES

PROBE_VECTORS = {text: FakeEmbeddings().vector(text) for text in PROBES}  # once: they cost most
SEED = {"intent": "restart the modem", "lesson": "Press it for ten seconds."}


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


@pytest.fixture(params=["memory", "sqlite"])
def any_saver(request, tmp_path):
    """A checkpointer for blocking runs."""
    if request.param == "memory":
        yield InMemorySaver()
        return
    connection = sqlite3.connect(tmp_path / "checkpoints.sqlite3", check_same_thread=False)
    yield SqliteSaver(connection)
    connection.close()
