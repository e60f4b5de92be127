"""No reward yet: an answer is held until its reward comes, then written raw, once."""

import sqlite3

from langchain_memrl.store.sidecar import FILE_NAME


def test_a_replayed_hold_does_not_bring_back_a_forgotten_text(folder, form, open_bank):
    memory = form(open_bank())
    memory.hold("e", intent="reset a router", trajectory="a secret step")
    memory.reinforce("e", reward=1)
    memory.forget(episode_id="e")
    memory.hold("e", intent="reset a router", trajectory="a secret step")
    assert memory.list() == []
    dump = "\n".join(sqlite3.connect(folder / FILE_NAME).iterdump())
    assert "a secret step" not in dump
