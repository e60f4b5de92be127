import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from loop_fixtures import (  # noqa: F401
    embeddings,
    form,
    only_registered_types,
    retriever,
    saver,
    seed,
)

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


@pytest.fixture
def nested(form):  # noqa: F811
    """Blocking runs happen inside a parent and awaited ones alone, or the other way round."""
    return form == "blocking"


@pytest.fixture(params=["memory", "sqlite"])
def any_saver(request, tmp_path):
    """A checkpointer for blocking runs."""
    if request.param == "memory":
        yield InMemorySaver()
        return
    connection = sqlite3.connect(tmp_path / "checkpoints.sqlite3", check_same_thread=False)
    yield SqliteSaver(connection)
    connection.close()
