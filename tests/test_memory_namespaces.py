"""Tenants: exact names, and nothing of one is seen, counted, moved or deleted by another."""

import pytest

from langchain_memrl.errors import InputError


def test_a_view_refuses_to_record_a_recall_of_another_namespace(memory):
    memory.remember("reset a router", "lesson")
    recall = memory.recall("reset a router", episode_id="e", record=False)
    with pytest.raises(InputError, match="bound to namespace 'acme'"):
        memory.in_namespace("acme").record(recall)
    assert memory.namespaces() == ("default",)
    assert memory.stats().open_episodes == 0
