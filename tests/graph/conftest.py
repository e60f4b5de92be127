import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import FakeEmbeddings, at_cosine
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.event_hooks import register_serde_event_listener
from langgraph.checkpoint.sqlite import SqliteSaver
from loops import TASK

from langchain_memrl import MemRLRetriever
from langchain_memrl.core.probes import PROBES

PROBE_VECTORS = {text: FakeEmbeddings().vector(text) for text in PROBES}  # once: they cost most
SEED = {"intent": "restart the modem", "lesson": "Press it for ten seconds."}


STRICT = "LANGGRAPH_STRICT_MSGPACK"


@pytest.fixture(scope="session", autouse=True)
def strict_run(request, tmp_path_factory):
    """This folder's tests once more with the strict serialiser, meanwhile; call it to wait.

    None in the run inside.
    """
    wanted = any(item.path.name == "test_graph_strict.py" for item in request.session.items)
    if os.environ.get(STRICT) or not wanted:
        yield None
        return
    folder, output = Path(__file__).parent, tmp_path_factory.mktemp("strict") / "output"
    with output.open("w") as file:
        inside = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
            cwd=folder.parents[1],
            env={**os.environ, STRICT: "true"},
            stdout=file,
            stderr=subprocess.STDOUT,
        )

    def wait():
        inside.wait(250)
        return output.read_text().strip()

    yield wait
    inside.kill()
    inside.wait()


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
def nested(form):
    """Blocking runs happen inside a parent and awaited ones alone, or the other way round."""
    return form == "blocking"


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
