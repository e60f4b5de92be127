"""The marker: what it notices, and that it raises no false alarm."""

import os
import subprocess
import sys

import pytest
from fakes import FakeEmbeddings

from langchain_memrl import EpisodicMemory
from langchain_memrl.errors import StoreCorruptError, StoreError
from langchain_memrl.store.embedded import marker as marker_module
from langchain_memrl.store.embedded.marker import FILE_NAME as MARKER
from langchain_memrl.store.embedded.sidecar import FILE_NAME as DATABASE


def open_bank(folder, **options):
    return EpisodicMemory.open(folder, embeddings=FakeEmbeddings(), **options)


@pytest.fixture
def closed(folder):
    with open_bank(folder) as memory:
        memory.remember_many([{"intent": f"task {n}", "lesson": "x" * 200} for n in range(20)])
    return folder


def rot(path):
    """Flip one bit of a text and leave size and time as they were."""
    data, times = bytearray(path.read_bytes()), path.stat()
    data[data.index(b"x" * 200) + 7] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_a_bit_that_flipped_on_the_disk_is_noticed_when_the_bank_is_opened(closed):
    rot(closed / DATABASE)
    with open_bank(closed) as memory, pytest.raises(StoreCorruptError, match="has changed"):
        memory.list()


def test_in_a_large_bank_verify_notices_it(closed, monkeypatch):
    monkeypatch.setattr(marker_module, "ALWAYS_HASHED", 0)
    rot(closed / DATABASE)
    with open_bank(closed) as memory:
        assert memory.stats().memories == 20
        assert "its content has changed" in memory.verify().problems[0]


@pytest.mark.parametrize(
    "said",
    [
        b"[[[[" * 50_000,
        b"[]",
        b"null",
        b'{"closed": false, "rows": "x"}',
        b'{"closed": true, "rows": [1], "size": 1, "mtime_ns": 1, "sha256": ""}',
        b"\xff\xfe",
    ],
)
def test_a_marker_that_says_nothing_is_written_anew(closed, said):
    (closed / MARKER).write_bytes(said)
    with open_bank(closed) as memory:
        assert len(memory.list()) == 20
        memory.remember("task", "lesson")
    assert b'"closed": true' in (closed / MARKER).read_bytes()


def test_a_marker_that_cannot_be_a_file_is_a_clear_error(closed):
    (closed / MARKER).unlink()
    (closed / MARKER).mkdir()
    with open_bank(closed) as memory:
        assert len(memory.list()) == 20
        with pytest.raises(StoreError, match=f"{MARKER} cannot be written"):
            memory.remember("task", "lesson")


def test_a_database_that_is_a_link_is_refused(closed, tmp_path):
    (closed / DATABASE).rename(tmp_path / "elsewhere")
    (closed / DATABASE).symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    with pytest.raises(StoreError, match="symbolic link"):
        open_bank(closed)
    assert (tmp_path / "elsewhere").read_bytes() == before


def test_a_folder_that_is_a_link_is_the_same_bank(closed, tmp_path):
    (tmp_path / "link").symlink_to(closed)
    for place in (tmp_path / "link", closed, tmp_path / "link"):
        with open_bank(place) as memory:
            memory.remember("task", "lesson")
            assert memory.verify().problems == ()


IN_USE = []
"""Keeps banks from being closed because nobody uses them any more."""


def leave_open(folder, in_child):
    """Write in a process that is gone before it can close anything."""

    def write():
        IN_USE.append(open_bank(folder))
        IN_USE[-1].remember("last", "lesson")

    assert in_child(write) == "returned None"


def test_an_emptied_database_of_a_bank_in_use_keeps_its_log(closed, in_child):
    leave_open(closed, in_child)
    log = closed / f"{DATABASE}-wal"
    before = log.read_bytes()
    (closed / DATABASE).write_bytes(b"")
    for _ in range(2):
        with pytest.raises(StoreCorruptError, match="empty or missing"):
            open_bank(closed, read_only=True)
        with pytest.raises(StoreCorruptError, match="empty or missing"):
            open_bank(closed)
    assert log.read_bytes() == before != b""


def test_a_lost_log_is_said(closed, in_child, caplog):
    leave_open(closed, in_child)
    (closed / f"{DATABASE}-wal").unlink()
    with open_bank(closed) as memory:
        assert memory.stats().memories == 20
    assert "the last writes are lost" in caplog.text
    caplog.clear()
    open_bank(closed).close()
    assert caplog.text == ""


FORGETFUL = """
import sys
from langchain_memrl import EpisodicMemory
from langchain_memrl.offline import HashingEmbeddings

def work():
    memory = EpisodicMemory.open(sys.argv[1], embeddings=HashingEmbeddings(16))
    memory.remember("task", "lesson")
    memory.recall("task")
    return memory

kept = work() if sys.argv[2] == "kept" else work() and None
"""


@pytest.mark.parametrize("how", ["kept", "dropped"])
def test_a_bank_that_nobody_closed_is_closed_when_python_ends(tmp_path, how, caplog):
    subprocess.run([sys.executable, "-c", FORGETFUL, tmp_path / "bank", how], check=True)
    assert not (tmp_path / "bank" / f"{DATABASE}-wal").exists()
    assert (tmp_path / "bank" / "intents.faiss").exists()
    with open_bank(tmp_path / "bank", read_only=True) as memory:
        assert len(memory.list()) == 1
        assert memory.verify().ok
    assert caplog.text == ""
