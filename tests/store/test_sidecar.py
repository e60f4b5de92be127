import os
import sqlite3
import stat
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from langchain_memrl.errors import (
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreNotFoundError,
    StoreVersionError,
)
from langchain_memrl.store.base import Fingerprint, HeldAnswer, NewMemory, RewardEntry
from langchain_memrl.store.embedded import migrations
from langchain_memrl.store.embedded import sidecar as sidecar_module
from langchain_memrl.store.embedded.local import LocalStore
from langchain_memrl.store.embedded.sidecar import FILE_NAME, Sidecar

SPACE = "default"
VECTOR = np.array([1, 0], dtype=np.float32)
MODEL = Fingerprint("fake", np.eye(2, dtype=np.float32))


def second_connection(folder):
    return sqlite3.connect(folder / FILE_NAME, isolation_level=None)


def dump(folder):
    """Everything a second connection sees, as SQL."""
    connection = second_connection(folder)
    lines = list(connection.iterdump())
    connection.close()
    return lines


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def new_memory(id, **changes):
    values = {
        "id": id,
        "namespace": SPACE,
        "intent": "reset a router",
        "lesson": f"lesson of {id}",
        "trajectory": "",
        "outcome": "success",
        "episode_id": f"episode of {id}",
        "parents": None,
        "source": "agent",
        "metadata": {},
    }
    return NewMemory(**values | changes)


@pytest.fixture
def store(folder):
    """A store on disk with one memory, one open episode and one held answer."""
    store = LocalStore(folder)
    store.remember([new_memory("m1")], [VECTOR], MODEL)
    store.hold(HeldAnswer(SPACE, "held", "reset a modem", "I pulled the plug", "raw1"), VECTOR)
    yield store
    store.close()


EFFECTS = {
    "remember": lambda store: store.remember(
        [new_memory("m2"), new_memory("m3", intent="another")], [VECTOR, VECTOR]
    ),
    "reinforce": lambda store: store.reinforce(
        [RewardEntry(SPACE, "rewarded", 1.0, ("m1",), "raw2")]
    ),
    "reinforce held": lambda store: store.reinforce([RewardEntry(SPACE, "held", -1, None, "raw3")]),
    "hold": lambda store: store.hold(HeldAnswer(SPACE, "held2", "new", "done", "raw4"), VECTOR),
    "update": lambda store: store.update(SPACE, "m1", {"lesson": "better"}),
    "forget": lambda store: store.forget(SPACE, ["m1"]),
    "clear": lambda store: store.clear(SPACE),
    "configure": lambda store: store.configure({"step_size": 0.2}),
}


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_returned_write_is_seen_by_a_second_connection(store, folder, effect):
    before = dump(folder)
    EFFECTS[effect](store)
    assert dump(folder) != before


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_write_that_fails_anywhere_leaves_nothing(store, folder, effect):
    """Refuse the 1st, 2nd, 3rd ... change of a row until a run completes."""
    before = dump(folder)
    changes = (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)
    left = 0

    def authorize(action, *_):
        nonlocal left
        if action in changes:
            left -= 1
            return sqlite3.SQLITE_DENY if left == 0 else sqlite3.SQLITE_OK
        return sqlite3.SQLITE_OK

    with store._sidecar.read() as db:
        db.set_authorizer(authorize)
    for number in range(1, 100):
        left = number
        try:
            EFFECTS[effect](store)
        except StoreError:
            assert dump(folder) == before
        else:
            break
    assert number > 1
    assert dump(folder) != before


def test_an_exception_inside_a_transaction_undoes_it(folder):
    sidecar = Sidecar(folder, create=True, read_only=False)
    before = dump(folder)

    def stopped():
        with sidecar.write() as db:
            db.execute("INSERT INTO meta VALUES ('half', 1)")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert dump(folder) == before
    with sidecar.write() as db:
        db.execute("INSERT INTO meta VALUES ('whole', 1)")
    assert dump(folder) != before
    sidecar.close()


def test_what_was_not_committed_is_not_seen_outside(folder):
    sidecar = Sidecar(folder, create=True, read_only=False)
    before = dump(folder)
    with sidecar.write() as db:
        db.execute("INSERT INTO meta VALUES ('early', 1)")
        assert dump(folder) == before
    sidecar.close()


def test_the_log_is_written_ahead_and_synced_at_every_commit(store, folder):
    with store._sidecar.read() as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        assert db.execute("PRAGMA foreign_keys").fetchone() == (1,)
    assert second_connection(folder).execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_folder_and_files_are_private_under_any_umask(folder):
    old = os.umask(0)
    try:
        store = LocalStore(folder)
        store.remember([new_memory("m1")], [VECTOR], MODEL)
        store.rebuild_index()
        while_open = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        store.close()
    finally:
        os.umask(old)
    after = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    closed = {FILE_NAME, "intents.faiss", "memrl.marker", "memrl.lock"}
    assert set(while_open) == closed | {f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"}
    assert set(after) == closed
    assert set(while_open.values()) | set(after.values()) == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_missing_bank_is_not_made_without_create(folder):
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(StoreNotFoundError, match="create=True"):
            LocalStore(folder, **options)
    assert not folder.exists()


def test_an_existing_bank_opens_without_create(store, folder):
    LocalStore(folder, create=False).close()


def test_read_only_reads_and_refuses_to_write(store, folder):
    before = dump(folder)
    reader = LocalStore(folder, read_only=True)
    assert list(reader.memories(SPACE, ["m1"])) == ["m1"]
    for effect in EFFECTS.values():
        with pytest.raises(StoreError, match="read-only"):
            effect(reader)
    reader.close()
    assert dump(folder) == before


def test_read_only_finds_no_bank_in_an_empty_file(folder):
    folder.mkdir()
    (folder / FILE_NAME).touch()
    with pytest.raises(StoreNotFoundError, match="no memory bank"):
        LocalStore(folder, read_only=True)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_format_is_refused_and_left_as_it_is(store, folder, read_only):
    store.close()
    connection = second_connection(folder)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = contents(folder)
    with pytest.raises(StoreVersionError, match=r"format 99.*upgrade"):
        LocalStore(folder, read_only=read_only)
    after = contents(folder)
    assert after[FILE_NAME] == before[FILE_NAME]
    assert not after.get(f"{FILE_NAME}-wal")


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("version", [0, 1, 99])
def test_the_database_of_another_application_is_refused_and_left_as_it_is(
    folder, version, read_only
):
    folder.mkdir()
    connection = second_connection(folder)
    connection.execute("CREATE TABLE notes (text)")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = contents(folder)
    with pytest.raises(StoreCorruptError, match="not a memory bank"):
        LocalStore(folder, read_only=read_only)
    assert contents(folder) == before


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\x00 cut"])
def test_a_damaged_database_is_refused_and_left_as_it_is(folder, content):
    folder.mkdir()
    (folder / FILE_NAME).write_bytes(content)
    with pytest.raises(StoreCorruptError, match="damaged"):
        LocalStore(folder)
    assert contents(folder) == {FILE_NAME: content}


def test_a_bank_whose_pages_are_damaged_is_refused_with_our_error(store, folder):
    store.close()
    path = folder / FILE_NAME
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreCorruptError, match="restore a backup"):
        LocalStore(folder).stats(SPACE)
    assert path.read_bytes() == bytes(data)


def test_a_location_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"notes\.txt"):
        LocalStore(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_closed_store_says_so(folder):
    store = LocalStore(folder)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="is closed; open it again"):
        store.stats(SPACE)


def test_a_lock_that_another_connection_keeps_is_an_error_that_may_be_repeated(folder, monkeypatch):
    monkeypatch.setattr(sidecar_module, "BUSY_SECONDS", 0.05)
    store = LocalStore(folder)
    other = second_connection(folder)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match="call again"):
        store.configure({"step_size": 0.2})
    assert store.learning().step_size == 0.3
    other.execute("ROLLBACK")
    store.configure({"step_size": 0.2})
    assert store.learning().step_size == 0.2
    store.close()


def test_ids_are_never_used_again_after_forgetting(store, folder):
    store.remember([new_memory("m2", intent="newest")], [VECTOR])
    numbers = "SELECT max(m.seq), max(i.id) FROM memories m, intents i"
    before = second_connection(folder).execute(numbers).fetchone()
    store.forget(SPACE, ["m2"])
    store.remember([new_memory("m4", intent="newer")], [VECTOR])
    after = second_connection(folder).execute(numbers).fetchone()
    assert all(new > old for new, old in zip(after, before, strict=True))


def test_a_step_that_fails_leaves_the_schema_as_it_was(folder, monkeypatch):
    def broken(connection):
        connection.execute("CREATE TABLE half (a)")
        raise sqlite3.OperationalError("power cut")

    LocalStore(folder).close()
    before = dump(folder)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, broken))
    with pytest.raises(StoreError, match="power cut"):
        LocalStore(folder)
    assert dump(folder) == before


def test_a_file_of_the_present_format_is_taken_to_the_next(store, folder, monkeypatch):
    def note(connection):
        connection.execute("ALTER TABLE memories ADD COLUMN note TEXT")

    store.close()
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, note))
    newer = LocalStore(folder)
    assert list(newer.memories(SPACE, ["m1"])) == ["m1"]
    newer.close()
    assert second_connection(folder).execute("PRAGMA user_version").fetchone() == (
        len(migrations.MIGRATIONS),
    )


# --- two connections, and a clock that steps back -----------------------------------------------


def test_what_another_connection_changed_is_seen_by_the_next_recall(folder, open_bank):
    first, second = open_bank(), open_bank()
    options = {"score_threshold": None, "q_weight": 0}
    assert second.recall("reset a router").ids == ()
    made = [first.remember(f"reset a router {n}", "lesson").id for n in range(3)]
    assert set(second.recall("reset a router", **options).ids) == set(made)
    first.forget(ids=[made[0]])
    assert set(second.recall("reset a router", **options).ids) == set(made[1:])
    first.reinforce("e", reward=1, ids=[made[1]])
    assert second.recall("reset a router", q_weight=1, score_threshold=None).ids[0] == made[1]
    first.update(made[1], lesson="better")
    assert second.recall("reset a router 1", **options).memories[0].memory.lesson == "better"
    first.forget(all=True)
    assert second.recall("reset a router", **options).ids == ()
    assert second.verify().ok


def test_a_clock_that_steps_back_or_far_ahead_reorders_nothing(folder):
    start, here = datetime(2026, 3, 29, 0, 30, tzinfo=UTC), ZoneInfo("Europe/Berlin")
    jumps = [timedelta(0), timedelta(hours=-1), timedelta(days=3650), timedelta(hours=1)]
    clock = iter([(start + jump).astimezone(here) for jump in jumps])
    store = LocalStore(folder, now=lambda: next(clock))
    for n in range(len(jumps)):
        store.remember([new_memory(f"m{n}")], [VECTOR], MODEL)
    found = list(store.scan(SPACE))
    assert [one.id for one in found] == ["m3", "m2", "m1", "m0"]
    assert [one.created_at for one in reversed(found)] == [start + jump for jump in jumps]
    assert {one.created_at.utcoffset() for one in found} == {timedelta(0)}
    store.close()
