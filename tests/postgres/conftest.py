"""What PostgreSQL promises on top of the contract that `tests/contract` holds every store to."""

import pytest
from servers import PostgresServer

from langchain_memrl.store.postgres import server as server_module


@pytest.fixture
def backend():
    """Banks of these tests are on a server."""
    return "postgres"


@pytest.fixture(scope="module")
def mortal():
    """A server of its own, for a module that kills it; its commits wait for the disk."""
    with PostgresServer(durable=True) as running:
        yield running


@pytest.fixture
def impatient(monkeypatch):
    """Calls wait for half a second, not for half a minute."""
    monkeypatch.setattr(server_module, "WAIT_SECONDS", 0.5)


@pytest.fixture
def database(server, folder):
    """A look behind the bank: runs a statement in its schema."""
    schema = folder.rpartition("schema=")[2]
    with server.connect() as db:
        db.execute(f'SET search_path TO "{schema}", public')
        yield db
