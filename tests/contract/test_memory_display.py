"""What is shown of a memory: lengths in repr, escaped text in HTML, no text in errors and logs."""

import dataclasses
import logging

import pytest

from langchain_memrl.errors import EpisodeError, InputError, WriteConflictError

CANARY = "CANARY-7f3a"


@pytest.fixture
def canaries(memory):
    """A bank whose every text holds the canary."""
    made = memory.remember(
        f"{CANARY} task",
        f"{CANARY} lesson",
        trajectory=f"{CANARY} steps",
        metadata={"note": CANARY},
        episode_id="w",
    )
    recall = memory.recall(f"{CANARY} task", episode_id="e")
    memory.hold("h", intent=f"{CANARY} held", trajectory=f"{CANARY} done")
    return made, recall


def test_the_repr_of_a_memory_shows_its_id_and_lengths(memory):
    made = memory.remember("task", "lesson!", trajectory="steps")
    assert repr(made) == (
        f"Memory(id='{made.id}', outcome='unknown', q_value=0.000, updates=0, "
        "intent=<4 chars>, lesson=<7 chars>, trajectory=<5 chars>)"
    )


def test_no_repr_shows_a_text(memory, canaries):
    made, recall = canaries
    shown = [made, recall, recall.memories, recall.candidates, memory.episode("e")]
    shown += [memory.reinforce("e", reward=1), memory.history(made.id), memory.stats(), memory]
    shown += [memory.reinforce("h", reward=-1), memory.verify(), memory.list()]
    for one in shown:
        assert CANARY not in repr(one)


def test_no_error_shows_a_text(memory, canaries):
    made, _ = canaries
    secret = f"{CANARY}\x00"
    for call in (
        lambda: memory.remember(f"{CANARY} other", "lesson", episode_id="w"),
        lambda: memory.hold("h", intent=CANARY, trajectory=CANARY),
        lambda: memory.remember(secret, "lesson"),
        lambda: memory.remember("task", secret),
        lambda: memory.remember("task", CANARY * 200_000),
        lambda: memory.recall(secret),
        lambda: memory.update(made.id, lesson=secret),
        lambda: memory.remember("task", "lesson", metadata={"note": {CANARY}}),
        lambda: memory.remember("task", "lesson", metadata={"note": (CANARY,)}),
        lambda: memory.recall(f"{CANARY} new", episode_id="w2", filter={"a": {"$in": CANARY}}),
    ):
        with pytest.raises((InputError, EpisodeError, WriteConflictError)) as caught:
            call()
        assert CANARY not in str(caught.value)


def test_no_log_above_debug_shows_a_text(memory, canaries, caplog):
    with caplog.at_level(logging.INFO):
        for n in range(60):
            memory.recall(f"{CANARY} {n}")
            memory.reinforce(f"r{n}", reward=1, ids=[canaries[0].id])
    assert caplog.records
    assert CANARY not in caplog.text


def test_html_shows_the_text_escaped(memory):
    hostile = "<script>alert('x')</script> & \"more\""
    made = memory.remember(hostile, hostile, trajectory=hostile)
    recall = memory.recall(hostile)
    for one in (made, recall, memory.stats()):
        assert "<script" not in one._repr_html_()
    assert "&lt;script&gt;" in made._repr_html_()
    assert "&lt;script&gt;" in recall._repr_html_()
    assert "&amp;" in made._repr_html_()


def test_html_of_a_raw_memory_says_so(memory):
    assert "not summarised" in memory.remember("task", None, trajectory="steps")._repr_html_()


def test_an_empty_recall_is_an_empty_table(memory):
    assert memory.recall("task")._repr_html_().count("<tr>") == 1


def test_records_cannot_be_changed(memory, canaries):
    made, recall = canaries
    for one, name in ((made, "q_value"), (recall, "memories"), (memory.episode("e"), "reward")):
        with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
            setattr(one, name, 1)
