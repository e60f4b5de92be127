import os
import select
import signal

import pytest
from fakes import AwaitedMemory, FakeEmbeddings
from hypothesis import settings
from servers import PostgresServer

from langchain_memrl import EpisodicMemory

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=100)
settings.register_profile(
    "long", settings.get_profile("repeatable"), max_examples=2000, stateful_step_count=50
)
settings.load_profile("repeatable")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the long form of the fault tests")


def pytest_configure(config):
    if config.getoption("--long"):
        config.option.timeout = 0
        settings.load_profile("long")


@pytest.fixture
def much(request):
    """Chooses a size: `much(200, 3000)` is 200, and 3000 with `--long`."""
    return lambda short, long: long if request.config.getoption("--long") else short


@pytest.fixture
def embeddings():
    """A fake model that counts its calls and goes wrong when told; see `fakes.py`."""
    return FakeEmbeddings()


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL server; one for all tests."""
    with PostgresServer() as running:
        yield running


@pytest.fixture
def backend():
    """Where banks are; `tests/contract` runs everything on each."""
    return "sqlite"


@pytest.fixture
def new_place(backend, request, tmp_path):
    """Makes locations of banks that are not there yet."""
    made = []

    def new(name):
        if backend == "sqlite":
            return tmp_path / name
        made.append(request.getfixturevalue("server").new_location())
        return made[-1]

    yield new
    for location in made:
        request.getfixturevalue("server").drop(location)


@pytest.fixture
def folder(new_place):
    """A place for a bank that stays; nothing is there yet."""
    return new_place("bank")


@pytest.fixture
def open_bank(folder, new_place, backend, embeddings):
    """Opens the bank in `folder` (again); everything is closed after the test."""
    opened = []

    def open_(location=folder, **options):
        options.setdefault("embeddings", embeddings)
        if location == ":memory:" and backend != "sqlite":
            location = new_place("another")
        opened.append(EpisodicMemory.open(location, **options))
        return opened[-1]

    yield open_
    for memory in opened:
        memory.close()


@pytest.fixture
def bank(open_bank):
    """A bank in memory."""
    return open_bank(":memory:")


@pytest.fixture(params=["blocking", "awaited"])
def form(request):
    """Gives a bank's verbs in their blocking or their awaited form."""
    return {"blocking": lambda memory: memory, "awaited": AwaitedMemory}[request.param]


@pytest.fixture
def memory(form, bank):
    """A bank in memory, once with blocking and once with awaited verbs."""
    return form(bank)


@pytest.fixture
def in_child():
    """Runs a function in a forked child and returns what it returned or raised, as text."""

    def run(function, seconds=20):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                answer = f"returned {function()!r}"
            except BaseException as error:
                answer = f"raised {type(error).__name__}: {error}"
            os.write(write, answer.encode()[:4000])
            os._exit(0)
        os.close(write)
        return _answer_of(child, read, seconds)

    return run


def _answer_of(child, pipe, seconds):
    ready, _, _ = select.select([pipe], [], [], seconds)
    answer = os.read(pipe, 4000).decode() if ready else "hung"
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(pipe)
    return answer
