"""What a server, a database or a schema may be instead of a bank; and passwords stay unseen."""

import logging

import psycopg
import pytest
from children import open_shared

from langchain_memrl import EpisodicMemory
from langchain_memrl.config import LearningConfig
from langchain_memrl.errors import (
    ConfigError,
    MemRLError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreNotFoundError,
    StoreVersionError,
)
from langchain_memrl.store.places import without_secrets
from langchain_memrl.store.postgres import schema as schema_module
from langchain_memrl.store.postgres.address import parse_address

PASSWORD = "canary-Pa55word"


def tables(server):
    with server.connect() as db:
        return db.execute(
            "SELECT table_schema, table_name FROM information_schema.tables ORDER BY 1, 2"
        ).fetchall()


# --- passwords ----------------------------------------------------------------------------------


@pytest.fixture
def guarded(mortal):
    """The location of a bank that takes a password; `{}` stands for it."""
    with mortal.connect() as db:
        known = db.execute("SELECT 1 FROM pg_roles WHERE rolname = 'guarded'").fetchone()
    if not known:
        mortal.require_password("guarded", PASSWORD)
    location = mortal.new_location()
    return location.replace("postgres:@", "guarded:{}@", 1)


def test_a_wrong_password_is_refused_and_shown_nowhere(guarded, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(StoreError, match="password authentication failed") as caught:
        open_shared(guarded.format(f"{PASSWORD}-wrong"))
    assert not isinstance(caught.value, StoreBusyError)  # trying again does not help
    told = [str(caught.value), repr(caught.value), caplog.text, *capsys.readouterr()]
    told += [str(caught.value.__cause__), str(caught.value.__context__)]
    assert not any(PASSWORD in text for text in told)


def test_a_right_password_is_shown_nowhere(guarded, caplog, mortal):
    location = guarded.format(PASSWORD)
    with caplog.at_level(logging.DEBUG), open_shared(location) as memory:
        memory.remember("task", "lesson")
        memory.recall("task", episode_id="e")
        store = memory._store
        told = [repr(memory), repr(store), repr(store._server), repr(store._server.address)]
        told += [str(store._server.place), repr(store._server._pool)]
        with store._server.read() as db:
            told += [repr(db), repr(db.raw)]
        mortal.kill()
        with pytest.raises(StoreBusyError) as caught:
            memory.stats()
        mortal.start()
        told += [str(caught.value), repr(caught.value), str(caught.value.__context__)]
    assert not any(PASSWORD in text for text in [*told, caplog.text])


@pytest.mark.parametrize(
    "location",
    [
        f"postgresql://user:{PASSWORD}@[host/db",
        f"postgresql://user:{PASSWORD}@host:port/db",
        f"postgresql://user:{PASSWORD}%zz@host/db",
        f"postgresql://user:{PASSWORD}@host/db?unknown=1",
        f"postgresql://user:{PASSWORD}@host/db?schema=Bad-Name",
        f"postgres://host/db?user=u&password={PASSWORD}&schema=1",
        f"mysql://user:{PASSWORD}@host/db",
        f"postgresql://user:1234/{PASSWORD}@host/db",
        f"postgresql://user:some@{PASSWORD}@host/db",
        f"postgresql://user:{PASSWORD}@host:99999/db",
        f"postgresql:/user:{PASSWORD}@host/db",
        f"host=127.0.0.1 port=1 password={PASSWORD}",
    ],
)
def test_an_unreadable_location_is_refused_without_its_password(location, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        EpisodicMemory.open(location)
    assert PASSWORD not in f"{caught.value} {caught.value.__cause__!r}"
    assert PASSWORD not in without_secrets(f"there is no bank at {location}")
    assert list(tmp_path.iterdir()) == []


# --- places -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "Bank", "a-b", "1a", "pg_catalog", "pg_x", "a" * 64, "ä", "a.b", "a%00b"),
        *("a%22", "a'", "a;DROP SCHEMA public", '"a"', "a%22; DROP TABLE meta; --", "%24user"),
    ],
)
def test_a_hostile_schema_name_is_refused_and_nothing_is_made(server, name):
    before = tables(server)
    with pytest.raises(ConfigError, match="small letters, digits and underscores"):
        EpisodicMemory.open(f"{server.uri}&schema={name}")
    assert tables(server) == before


def test_a_schema_is_memrl_unless_another_is_named(server):
    assert parse_address(server.uri).schema == "memrl"
    assert parse_address(f"{server.uri}&schema=a_1").schema == "a_1"
    address = parse_address("postgresql://u:p@h:1/d?schema=a&options=-c%20geqo%3Doff")
    assert address.place == "postgresql://h:1/d (schema a)"
    assert "options='-c geqo=off'" in address.conninfo


def test_banks_in_two_schemas_of_one_database_know_nothing_of_each_other(new_place, open_bank):
    one, other = open_bank(new_place("one")), open_bank(new_place("two"))
    id = one.remember("task", "lesson").id
    assert other.recall("task").ids == ()
    assert other.stats().memories == 0
    with pytest.raises(MemRLError):
        other.get(id)
    other.remember("task", "lesson")
    other.forget(all=True)
    assert one.recall("task").ids == (id,)


def test_a_database_that_is_missing_is_named(server):
    location = server.uri.replace("/postgres?", "/nowhere?")
    with pytest.raises(StoreError, match='database "nowhere" does not exist') as caught:
        EpisodicMemory.open(location)
    assert not isinstance(caught.value, StoreBusyError)


def test_a_server_that_is_away_is_a_retryable_error(tmp_path):
    for host in (f"postgresql:///db?host={tmp_path}", "postgresql://127.0.0.1:1/db"):
        with pytest.raises(StoreBusyError, match="call again"):
            EpisodicMemory.open(host)


def test_a_server_without_pgvector_is_told_what_to_install(server, folder, monkeypatch):
    monkeypatch.setattr(schema_module, "EXTENSION", "vector_of_another_name")
    with pytest.raises(StoreError, match="lacks pgvector; install it"):
        EpisodicMemory.open(folder)
    assert not any(folder.endswith(f"={schema}") for schema, _ in tables(server))


def test_a_pgvector_that_is_too_old_is_told(open_bank, monkeypatch):
    open_bank()
    monkeypatch.setattr(schema_module, "OLDEST", (99, 0))
    with pytest.raises(StoreError, match=r"has pgvector 0\.8.*expected 0\.8 or newer"):
        open_bank()


def test_pgvector_may_be_installed_in_a_schema_of_its_own(server):
    with server.connect() as db:
        db.execute("CREATE DATABASE apart TEMPLATE template0 ENCODING 'UTF8'")
    location = server.uri.replace("/postgres?", "/apart?")
    try:
        with psycopg.connect(location, autocommit=True) as db:
            db.execute("CREATE SCHEMA extensions")
            db.execute("CREATE EXTENSION vector SCHEMA extensions")
        for number in range(2):
            with open_shared(location) as memory:
                memory.remember(f"task {number}", "lesson")
                assert len(memory.recall(f"task {number}", episode_id=f"e{number}").ids) > 0
                memory.rebuild_index()
                assert memory.verify().problems == ()
    finally:
        with server.connect() as db:
            db.execute("DROP DATABASE apart WITH (FORCE)")


def test_a_database_in_another_encoding_is_refused(server):
    with server.connect() as db:
        db.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(StoreError, match="keeps texts as LATIN1; a bank needs UTF8"):
            EpisodicMemory.open(server.uri.replace("/postgres?", "/latin?"))
    finally:
        with server.connect() as db:
            db.execute("DROP DATABASE latin WITH (FORCE)")


def test_a_schema_that_holds_something_else_is_refused_and_kept(server, folder):
    name = folder.rpartition("=")[2]
    with server.connect() as db:
        db.execute(f"CREATE SCHEMA {name}")
        db.execute(f"CREATE TABLE {name}.meta (key TEXT, value TEXT)")
    before = tables(server)
    with pytest.raises(StoreCorruptError, match="holds tables, but no memory bank"):
        EpisodicMemory.open(folder)
    assert tables(server) == before


def test_a_newer_format_is_refused_and_kept(open_bank, folder, database):
    open_bank().close()
    database.execute("UPDATE meta SET value = 'i99' WHERE key = 'format'")
    for options in ({}, {"read_only": True}):
        with pytest.raises(StoreVersionError, match="has format 99, this version reads up to 1"):
            open_bank(**options)
    assert database.execute("SELECT value FROM meta WHERE key = 'format'").fetchone() == ("i99",)


def test_a_bank_that_is_not_there_is_made_only_where_that_is_asked_for(server, folder):
    before = tables(server)
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(StoreNotFoundError, match="there is no memory bank at postgresql://"):
            EpisodicMemory.open(folder, **options)
    assert tables(server) == before


def test_read_only_looks_and_never_writes(open_bank, database):
    id = open_bank().remember("task", "lesson").id
    memory = open_bank(read_only=True)
    before = database.execute("SELECT * FROM counters").fetchall()
    assert memory.recall("task").ids == (id,)
    for call in (
        lambda: memory.remember("other", "lesson"),
        lambda: memory.reinforce("e", reward=1, ids=[id]),
        lambda: memory.recall("task", episode_id="e"),
        lambda: memory.forget(ids=[id]),
        memory.rebuild_index,
        memory.compact,
    ):
        with pytest.raises(StoreError, match="read-only"):
            call()
    with pytest.raises(StoreError, match="read-only"), memory._store._server.read() as db:
        db.execute("DELETE FROM memories")  # the server refuses too
    assert database.execute("SELECT * FROM counters").fetchall() == before


def test_other_learning_settings_than_the_saved_ones_are_refused(open_bank):
    open_bank(learning=LearningConfig(step_size=0.5)).close()
    with pytest.raises(ConfigError, match=r"step_size=0\.5.*step_size=0\.1"):
        open_bank(learning=LearningConfig(step_size=0.1))


# --- settings of a role, and poolers ------------------------------------------------------------


@pytest.fixture
def odd_role(server, folder):
    """The bank's location for a role whose own settings are unusual."""
    settings = {
        "search_path": "pg_catalog",
        "client_encoding": "LATIN1",
        "extra_float_digits": "-10",
        "bytea_output": "escape",
        "default_transaction_isolation": "serializable",
        "default_transaction_read_only": "on",
        "standard_conforming_strings": "off",
        "datestyle": "German",
        "intervalstyle": "postgres_verbose",
        "timezone": "Asia/Tokyo",
    }
    with server.connect() as db:
        version = int(db.execute("SHOW server_version_num").fetchone()[0])
        db.execute("CREATE ROLE odd LOGIN SUPERUSER")
        for name, value in settings.items():
            if name != "standard_conforming_strings" or version < 190000:
                db.execute(f"ALTER ROLE odd SET {name} TO '{value}'")
    yield folder.replace("postgres:@", "odd:@", 1)
    with server.connect() as db:
        db.execute("REASSIGN OWNED BY odd TO postgres")
        db.execute("DROP OWNED BY odd")
        db.execute("DROP ROLE odd")


def test_what_a_role_has_set_for_itself_changes_nothing(odd_role, open_bank, folder):
    with open_shared(odd_role) as odd:
        made = odd.remember("日本 é", 'l\'äpfel \\ "😀"', metadata={"ä": 0.1}, episode_id="w")
        for n in range(7):
            odd.reinforce(f"e{n}", reward=1 / 3, ids=[made.id])
        mine = odd.get(made.id), odd.recall("日本 é").memories[0].score
        assert odd.verify().problems == ()
    with open_shared(folder) as usual:
        assert (usual.get(made.id), usual.recall("日本 é").memories[0].score) == mine
        assert usual.verify().problems == ()


def test_a_role_that_may_only_use_a_schema_made_for_it_can_make_a_bank_there(server, folder):
    name = folder.rpartition("=")[2]
    with server.connect() as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        db.execute("CREATE ROLE tenant LOGIN")
        db.execute(f"CREATE SCHEMA {name} AUTHORIZATION tenant")
    try:
        with open_shared(folder.replace("postgres:@", "tenant:@", 1)) as memory:
            id = memory.remember("task", "lesson").id
            assert memory.recall("task", episode_id="e").ids == (id,)
            memory.compact()
            memory.rebuild_index()
            assert memory.verify().problems == ()
    finally:
        server.drop(folder)
        with server.connect() as db:
            db.execute("DROP ROLE tenant")


def test_a_role_that_may_not_make_a_schema_is_told_so(server, folder):
    with server.connect() as db:
        db.execute("CREATE ROLE visitor LOGIN")
    try:
        with pytest.raises(StoreError, match="permission denied") as caught:
            open_shared(folder.replace("postgres:@", "visitor:@", 1))
        assert not isinstance(caught.value, StoreBusyError)
    finally:
        with server.connect() as db:
            db.execute("DROP ROLE visitor")


def test_a_pooler_that_mixes_up_sessions_is_noticed_before_anything_is_written(
    new_place, open_bank
):
    bank, place = open_bank(), new_place("other")
    id = bank.remember("task", "lesson").id
    open_bank(place)
    with bank._store._server.read() as db:  # as another client of the pooler leaves it behind
        db.raw.execute(f"SET search_path TO {place.rpartition('=')[2]}, public")
    for call in (
        lambda: bank.reinforce("e", reward=1, ids=[id]),
        lambda: bank.remember("other", "lesson"),
        bank.verify,
    ):
        with pytest.raises(StoreError, match="a connection pooler mixes up sessions"):
            call()
    with bank._store._server.read() as db:
        db.raw.close()
    assert bank.get(id).updates == 0
    assert open_bank(place).stats().episodes == 0
