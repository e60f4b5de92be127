"""`memrl eval report`."""

import json
import sys
from pathlib import Path

import pytest
from synthetic import make_records, write_folder

from langchain_memrl.cli import main


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["memrl", "eval", "report", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    write_folder(tmp_path / "run", make_records(worlds=2, seeds=5))
    return tmp_path / "run"


def test_it_prints_tables_and_leaves_a_page_beside_the_records(
    records: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, records) == 0
    printed = capsys.readouterr().out
    assert "worlds (simulation)" in printed
    assert "95 % interval" in printed
    assert (records / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert run(monkeypatch, records) == 0


def test_json_holds_the_numbers_of_the_page_without_the_single_runs(
    records: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = records.parent / "page.html"
    assert run(monkeypatch, records, "--out", page, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    inside = page.read_text(encoding="utf-8").split('id="data">')[1].split("</script>")[0]
    whole = json.loads(inside)
    assert data == {name: value for name, value in whole.items() if name != "runs"}
    assert not (records / "report.html").exists()


def test_a_folder_without_records_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, tmp_path) == 1
    assert "holds no records" in capsys.readouterr().err
    assert run(monkeypatch, tmp_path / "absent") == 1


def test_a_page_that_cannot_be_written_is_one_sentence(
    records: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, records, "--out", records / "absent" / "page.html") == 1
    captured = capsys.readouterr()
    assert "cannot be written" in captured.err
    assert "Traceback" not in captured.err


def test_several_folders_go_on_one_page_where_all_of_them_lie(
    records: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_folder(records.parent / "other", make_records(worlds=1, seeds=2))
    assert run(monkeypatch, records, records.parent / "other") == 0
    printed = capsys.readouterr().out
    assert "1 worlds" in printed
    assert "2 worlds" in printed
    page = (records.parent / "report.html").read_text(encoding="utf-8")
    assert '<section id="experiment-2"' in page
    assert run(monkeypatch, records, records.parent / "other", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["experiments"]) == 2
