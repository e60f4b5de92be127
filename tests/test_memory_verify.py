"""verify finds what was planted with another program, and says nothing about a sound bank."""

import re
import sqlite3
import threading

import numpy as np
import pytest

from langchain_memrl.errors import StoreCorruptError
from langchain_memrl.store.embedded.sidecar import FILE_NAME
from langchain_memrl.store.encoding import digest

TEXTS = ("reset a router", "bake a cake", "mend a bicycle")


@pytest.fixture
def plant(folder, open_bank):
    """Makes a used bank, changes its file with SQL, opens it again."""

    def plant_(sql, *values, keep_index=True, keep_marker=True):
        memory = open_bank()
        for text in TEXTS:
            memory.remember(text, f"lesson of {text}", episode_id=text)
            memory.recall(text, episode_id=f"use {text}", k=1)
            memory.reinforce(f"use {text}", reward=1)
        memory.hold("held", intent="a held task", trajectory="done")
        assert memory.verify().ok
        memory.close()
        if not keep_index:
            (folder / "intents.faiss").unlink()
        if not keep_marker:
            (folder / "memrl.marker").unlink()
        with sqlite3.connect(folder / FILE_NAME) as db:
            assert db.execute(sql, values).rowcount >= 1
        db.close()
        return open_bank()

    return plant_


def test_a_sound_bank_has_no_problems(open_bank):
    memory = open_bank()
    for text in TEXTS:
        memory.remember(text, "lesson", episode_id=text)
    memory.recall("a question", episode_id="e", score_threshold=None)
    memory.reinforce("e", reward=1)
    memory.configure(step_size=0.1)
    memory.hold("h", intent="another", trajectory="done")
    memory.reinforce("h", reward=-1)
    memory.update(memory.list()[0].id, lesson="better")
    memory.forget(ids=[memory.list()[-1].id])
    found = memory.verify()
    assert (found.ok, found.problems) == (True, ())
    assert (found.memories, found.intents) == (3, 3)


def test_an_empty_bank_is_sound(open_bank):
    found = open_bank().verify()
    assert (found.ok, found.memories, found.intents) == (True, 0, 0)


OTHER_UNIT = np.eye(16, dtype="<f4")[3].tobytes()
LONGER = (2 * np.eye(16, dtype="<f4")[3]).tobytes()
NOT_A_NUMBER = np.full(16, np.nan, dtype="<f4").tobytes()

PLANTED = {
    "another Q": (
        "UPDATE memories SET q = 0.9 WHERE seq = 1",
        (),
        r"has Q 0\.9.* its history says 0\.3.* after 1",
    ),
    "a Q moved by a millionth": ("UPDATE memories SET q = q + 1e-6 WHERE seq = 1", (), "has Q"),
    "another number of updates": (
        "UPDATE memories SET updates = 7 WHERE seq = 2",
        (),
        "after 7 rewards",
    ),
    "another start": ("UPDATE memories SET q_init = 0.5 WHERE seq = 1", (), "has Q"),
    "a lost step": ("DELETE FROM q_history WHERE memory = 3", (), "its history says"),
    "an added step": (
        "INSERT INTO q_history SELECT 99, memory, (SELECT max(seq) FROM episodes), 1, 0, 0.3, "
        "0.3, created_at FROM q_history LIMIT 1",
        (),
        "its history says",
    ),
    "a changed step": ("UPDATE q_history SET reward = -1 WHERE memory = 1", (), "history says"),
    "another vector of the same size": (
        "UPDATE intents SET vector = ? WHERE id = 2",
        (OTHER_UNIT,),
        "vector of intent 2 differs from its checksum",
    ),
    "a vector that is no unit vector": (
        "UPDATE intents SET vector = ? WHERE id = 2",
        (LONGER,),
        "the vector of intent 2 is not a unit vector",
    ),
    "a vector of NaN": (
        "UPDATE intents SET vector = ? WHERE id = 2",
        (NOT_A_NUMBER,),
        "the vector of intent 2 is not a unit vector",
    ),
    "another intent text": (
        "UPDATE intents SET text = 'bake a pie' WHERE id = 2",
        (),
        "text of intent 2 differs from its digest",
    ),
    "another digest": (
        "UPDATE intents SET digest = ? WHERE id = 2",
        (digest("bake a pie"),),
        "text of intent 2 differs from its digest",
    ),
    "an intent without a memory": (
        "INSERT INTO intents SELECT 99, namespace, ?, 'orphan', vector, change + 1, checksum "
        "FROM intents WHERE id = 1",
        (digest("orphan"),),
        "1 intents own no memory",
    ),
    "a memory without its text": ("DELETE FROM experiences WHERE seq = 2", (), "lost its text"),
    "a memory without its intent": (
        "DELETE FROM intents WHERE id = 2",
        (),
        "missing row of intents",
    ),
    "another lesson": (
        "UPDATE experiences SET lesson = 'obey me' WHERE seq = 2",
        (),
        "texts of memory .* differ from their checksum",
    ),
    "another outcome": (
        "UPDATE memories SET outcome = 'failure' WHERE seq = 2",
        (),
        "texts of memory .* differ from their checksum",
    ),
    "another held answer": (
        "UPDATE episodes SET held_trajectory = 'done otherwise' WHERE held_intent IS NOT NULL",
        (),
        "answer held by episode held differs",
    ),
    "another count of memories": (
        "UPDATE counters SET memories = 7",
        (),
        r"say memories 7, counted 3; call rebuild_index\(\)",
    ),
    "another histogram of Q": (
        "UPDATE q_bins SET memories = memories + 1 WHERE bin = 30",
        (),
        r"say memories 4, counted 3; call rebuild_index\(\)",
    ),
    "counters of a namespace that is not there": (
        "INSERT INTO counters (namespace, intents) VALUES ('ghost', 2)",
        (),
        "namespace 'ghost' say intents 2, counted 0",
    ),
    "a closed episode that was never rewarded": (
        "UPDATE episodes SET open = 0 WHERE held_intent IS NOT NULL",
        (),
        "open_episodes 0, counted 1",
    ),
    "a step without its episode": (
        "DELETE FROM episodes WHERE episode_id = 'use bake a cake'",
        (),
        "missing row of episodes",
    ),
}


@pytest.mark.parametrize("keep_marker", [True, False])
@pytest.mark.parametrize("name", PLANTED)
def test_what_was_planted_is_found_with_what_to_do(plant, name, keep_marker):
    sql, values, words = PLANTED[name]
    found = plant(sql, *values, keep_marker=keep_marker).verify()
    assert not found.ok
    assert [problem for problem in found.problems if re.search(words, problem)]
    advice = ("restore a backup", "rebuild_index()", "export and import")
    assert all(any(words in problem for words in advice) for problem in found.problems)


COUNTED = (
    "another count of memories",
    "another histogram of Q",
    "counters of a namespace that is not there",
    "a closed episode that was never rewarded",
)


@pytest.mark.parametrize("name", COUNTED)
def test_wrong_counters_are_mended_by_rebuild_index(plant, name):
    sql, values, _ = PLANTED[name]
    memory = plant(sql, *values, keep_marker=False)
    memory.rebuild_index()
    assert memory.verify().problems == ()
    memory.reinforce("held", reward=1)
    assert memory.stats().open_episodes == 0
    assert memory.verify().problems == ()


def test_verify_changes_nothing(plant, folder):
    memory = plant("UPDATE memories SET q = 0.9 WHERE seq = 1")
    before = list(sqlite3.connect(folder / FILE_NAME).iterdump())
    assert memory.verify() == memory.verify()
    assert list(sqlite3.connect(folder / FILE_NAME).iterdump()) == before


def test_a_damaged_page_is_an_error_and_the_file_is_left_as_it_is(folder, open_bank):
    memory = open_bank()
    memory.remember_many([{"intent": f"task {n}", "lesson": "x" * 500} for n in range(100)])
    memory.close()
    path = folder / FILE_NAME
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 4096] = bytes(4096)
    path.write_bytes(data)
    damaged = open_bank()
    assert any("restore a backup" in problem for problem in damaged.verify().problems)
    with pytest.raises(StoreCorruptError, match="restore a backup"):
        damaged.list()
    assert path.read_bytes() == bytes(data)


CUT_OFF = b"12345"
SHORTER = np.eye(3, dtype="<f4")[0].tobytes()


@pytest.mark.parametrize("keep_index", [True, False])
@pytest.mark.parametrize("blob", [CUT_OFF, SHORTER])
def test_a_vector_of_another_size_is_found_and_never_used(plant, blob, keep_index):
    memory = plant("UPDATE intents SET vector = ? WHERE id = 2", blob, keep_index=keep_index)
    found = memory.verify()
    assert not found.ok
    assert any("intent 2" in problem or "dimensions" in problem for problem in found.problems)
    if not keep_index:
        with pytest.raises(StoreCorruptError, match="restore a backup"):
            memory.recall(TEXTS[0])


def test_a_bank_that_others_are_writing_to_is_still_found_sound(open_bank):
    memory, writer = open_bank(), open_bank()
    made = memory.remember("task", "lesson")
    done = threading.Event()

    def learn():
        for number in range(150):
            writer.reinforce(f"e{number}", reward=1.0, ids=[made.id])
        done.set()

    thread = threading.Thread(target=learn)
    thread.start()
    found = []
    while not done.is_set():
        found += memory.verify().problems
    thread.join()
    assert found == []


SETTINGS = {
    "learning that is no JSON": "UPDATE meta SET value = '{' WHERE key = 'learning'",
    "learning with an unknown name": "UPDATE meta SET value = '{\"x\": 1}' WHERE key = 'learning'",
    "learning out of range": "UPDATE meta SET value = '{\"step_size\": 9}' WHERE key = 'learning'",
    "no secret": "UPDATE meta SET value = 5 WHERE key = 'secret'",
}


@pytest.mark.parametrize("name", SETTINGS)
def test_damaged_settings_of_a_bank_are_a_clear_error(plant, name):
    with pytest.raises(StoreCorruptError, match="restore a backup"):
        plant(SETTINGS[name], keep_marker=False)


MODEL = {
    "probes cut off": "UPDATE meta SET value = x'0102' WHERE key = 'probes'",
    "another dimension": "UPDATE meta SET value = 7 WHERE key = 'dimension'",
    "a change that is no number": "UPDATE meta SET value = 'abc' WHERE key = 'change'",
}


@pytest.mark.parametrize("name", MODEL)
def test_a_damaged_embedding_model_is_a_clear_error(plant, name):
    memory = plant(MODEL[name], keep_marker=False)
    with pytest.raises(StoreCorruptError, match="restore a backup"):
        memory.recall(TEXTS[0])
    assert len(memory.list()) == 3


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE memories SET q = 'high' WHERE seq = 1",
        "UPDATE memories SET updates = x'00' WHERE seq = 1",
        "UPDATE memories SET q = 9e999 WHERE seq = 1",
    ],
)
def test_numbers_that_are_none_are_a_clear_error(plant, sql):
    memory = plant(sql, keep_marker=False)
    with pytest.raises(StoreCorruptError, match="restore a backup"):
        memory.recall(TEXTS[0], score_threshold=None)


def test_a_time_that_is_none_is_a_clear_error(plant):
    memory = plant("UPDATE q_history SET created_at = 'noon'", keep_marker=False)
    with pytest.raises(StoreCorruptError, match="restore a backup"):
        memory.history(memory.list()[-1].id)


def test_a_memory_that_lost_its_text_hangs_nothing(plant, tmp_path):
    memory = plant("DELETE FROM experiences WHERE seq = 2", keep_marker=False)
    assert len(memory.recall(TEXTS[1], score_threshold=None).ids) == 2
    with pytest.raises(StoreCorruptError, match="has lost its text"):
        memory.export_jsonl(tmp_path / "dump.jsonl")
    assert list(tmp_path.glob("*dump*")) == []
