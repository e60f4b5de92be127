"""One suite for every store: each test runs on SQLite and on PostgreSQL."""

import pytest
from behind import Behind
from fakes import AwaitedMemory

FORMS = [("sqlite", "blocking"), ("sqlite", "awaited"), ("postgres", "blocking")]
"""Awaited verbs make the same calls of the store in other threads; `tests/postgres` awaits some."""


def pytest_generate_tests(metafunc):
    if "form" in metafunc.fixturenames:
        metafunc.parametrize(("backend", "form"), FORMS, indirect=True)
    elif "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def backend(request):
    """Where the banks of a test are."""
    return request.param


@pytest.fixture
def form(request):
    """Gives a bank's verbs in their blocking or their awaited form."""
    return {"blocking": lambda memory: memory, "awaited": AwaitedMemory}[request.param]


@pytest.fixture
def behind(folder):
    """The rows of the bank in `folder`."""
    return Behind(folder)
