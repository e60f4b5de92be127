"""One suite for every store: each test runs on SQLite and on PostgreSQL."""

import pytest


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request):
    """Where the banks of a test are."""
    return request.param
