"""S14: files of a bank are private whatever the umask, and temporary ones stay beside them.

That nothing is left of what was forgotten: `contract/test_memory_upkeep.py`,
`faults/test_deleting.py`.
"""

import os
import stat
import tempfile

import pytest
from fakes import FakeEmbeddings

from langchain_memrl import EpisodicMemory


@pytest.fixture
def open_umask():
    old = os.umask(0)
    yield
    os.umask(old)


def whole_life(open_bank, embeddings, tmp_path):
    """Everything that writes a file; tells the modes of all files after each step."""
    modes = {}

    def look(step):
        for path in (tmp_path / "bank").rglob("*"):
            modes[step, path.name] = stat.S_IMODE(path.stat().st_mode)
        for name in ("copy", "export.jsonl", "second"):
            if (tmp_path / name).exists():
                for path in (tmp_path / name, *(tmp_path / name).rglob("*")):
                    kind = "folder" if path.is_dir() else path.name
                    modes[step, kind] = stat.S_IMODE(path.stat().st_mode)

    with open_bank() as bank:
        bank.remember_many([{"intent": f"task {n}", "lesson": "x" * 5000} for n in range(50)])
        bank.recall("task 1", episode_id="e", score_threshold=None)
        bank.reinforce("e", reward=1.0)
        look("written")
        bank.rebuild_index()
        bank.forget(ids=[bank.list(limit=1)[0].id])
        bank.compact()
        look("compacted")
        bank.reembed(FakeEmbeddings(model="other"))
        bank.recall("task 2", score_threshold=None)
        look("reembedded")
        bank.backup(tmp_path / "copy")
        bank.export_jsonl(tmp_path / "export.jsonl")
        look("copied")
    look("closed")
    EpisodicMemory.import_jsonl(
        tmp_path / "export.jsonl", tmp_path / "second", embeddings=FakeEmbeddings(model="other")
    ).close()
    look("imported")
    return modes


def test_every_file_is_its_owners_only_under_any_umask(open_bank, embeddings, tmp_path, open_umask):
    modes = whole_life(open_bank, embeddings, tmp_path)
    assert {name for _, name in modes} >= {"memrl.sqlite3", "export.jsonl", "folder"}
    files = {place: mode for place, mode in modes.items() if place[1] != "folder"}
    assert {place: oct(mode) for place, mode in files.items() if mode != 0o600} == {}
    folders = [tmp_path / name for name in ("bank", "copy", "second")]
    assert {stat.S_IMODE(one.stat().st_mode) for one in folders} == {0o700}


def test_temporary_files_are_made_beside_the_banks_only(
    open_bank, embeddings, tmp_path, monkeypatch
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    before = set(tmp_path.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    monkeypatch.setenv("SQLITE_TMPDIR", str(elsewhere))
    made = []
    real = tempfile._get_candidate_names
    monkeypatch.setattr(tempfile, "_get_candidate_names", lambda: made.append(1) or real())
    whole_life(open_bank, embeddings, tmp_path)
    assert list(elsewhere.iterdir()) == []
    left = {path.name for path in set(tmp_path.iterdir()) - before}
    assert left == {"bank", "copy", "export.jsonl", "second"}
    names = {path.name for path in (tmp_path / "bank").iterdir()}
    assert not [name for name in names if name.startswith(".") or name.endswith(".tmp")]
    assert made, "some of it went through a temporary file"
