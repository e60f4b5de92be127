"""What is written, how often, and what is refused."""

import pytest

from langchain_memrl.errors import InputError


def test_parents_have_to_be_a_list(memory):
    with pytest.raises(InputError, match="parents is one str"):
        memory.remember("reset a router", "lesson", parents="an id")
    assert memory.list() == []
