import logging
import tempfile

import pytest
from canaries import CANARY, files_with, redact


def pytest_generate_tests(metafunc):
    """Modules that promise the same of every store run on each."""
    if getattr(metafunc.module, "EVERY_STORE", False) and "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", ["sqlite", "postgres"])


@pytest.fixture
def redacting(open_bank):
    """A bank with a redactor."""
    return open_bank(redact=redact)


@pytest.fixture
def scan(tmp_path, monkeypatch, caplog, embeddings):
    """Everything that a test leaves behind, searched for the secret; call it at the end.

    Files of the bank and temporary ones, an export, log lines of every level, what was embedded,
    and the reprs of what is given.
    """
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("SQLITE_TMPDIR", str(temporary))
    caplog.set_level(logging.DEBUG)

    def places(memory, *shown, canary=CANARY):
        memory.export_jsonl(tmp_path / "export.jsonl")
        found = [str(path) for path in files_with(tmp_path, canary)]
        found += [f"log: {record.name}" for record in caplog.records if canary in text_of(record)]
        found += ["embedded" for text in embeddings.texts if canary in text]
        mine = [memory, memory.stats(), memory.verify(), *memory.list(limit=None)]
        return found + [f"repr: {type(one)}" for one in (*mine, *shown) if canary in repr(one)]

    return places


def text_of(record):
    """A log record as every handler writes it, its traceback included."""
    return logging.Formatter().format(record)
