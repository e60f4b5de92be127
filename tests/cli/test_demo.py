"""`memrl demo` with the real small model, on a few tickets."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from langchain_memrl.cli import main
from langchain_memrl.evals.records import read_records


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["memrl", "demo", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_the_demo_runs_the_real_model_and_leaves_records_summary_and_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"

    assert run(monkeypatch, "--episodes", 2, "--seed", 1, "--out", out, "--json") == 0

    summary: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert summary == json.loads((out / "summary.json").read_text())
    assert summary["last_epoch"].keys() == {"none", "rag", "memrl", "oracle"}
    assert summary["last_epoch"]["none"] == 0.0
    assert summary["last_epoch"]["oracle"] > 0.0
    header, records, _ = read_records(out / "records.jsonl")
    assert (header.settings["seed"], header.model, len(records)) == (1, "smollm2-135m-instruct", 24)
    assert (out / "learning_curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--base-url", "http://127.0.0.1:9/v1"], "belong together"),
        (["--base-url", "http://127.0.0.1:9/v1", "--model", "m"], "the model did not answer"),
    ],
)
def test_a_wrong_endpoint_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    assert run(monkeypatch, "--episodes", 1, "--out", tmp_path, *arguments) == 1
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err


def test_a_folder_that_cannot_be_written_is_said_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run(monkeypatch, "--out", tmp_path / "file") == 1
    assert "cannot be written" in capsys.readouterr().err
    assert run(monkeypatch, "--episodes", 0) == 2
