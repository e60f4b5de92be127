"""One suite for every store: each test runs on SQLite and on PostgreSQL."""

import pytest
from behind import Behind


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request):
    """Where the banks of a test are."""
    return request.param


@pytest.fixture
def behind(folder):
    """The rows of the bank in `folder`."""
    return Behind(folder)
