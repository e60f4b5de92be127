"""Folders of records: what is read, and what is refused."""

from pathlib import Path

import pytest
from synthetic import HEADER, make_records, make_run, write_folder

from langchain_memrl.errors import InputError
from langchain_memrl.evals.analysis.metrics import by_run
from langchain_memrl.evals.analysis.reading import is_simulated, read_experiment
from langchain_memrl.evals.analysis.runs import reduce_run
from langchain_memrl.evals.records import EpisodeRecord, Header, write_records

RECORDS = list(make_run("w", "rag", 0))


def test_files_at_any_depth_are_read_and_reduced_run_by_run(tmp_path: Path) -> None:
    records = make_records(worlds=2, seeds=2)
    write_folder(tmp_path / "deep" / "er", records)
    experiment = read_experiment(tmp_path)
    episodes = by_run(record for record in records if isinstance(record, EpisodeRecord))
    assert {run.key for run in experiment.runs} == set(episodes)
    for run in experiment.runs:
        assert run.success == reduce_run(run.key, episodes[run.key]).success
        assert run.episodes == len(episodes[run.key])


def test_arms_come_in_the_order_of_the_header_and_say_what_they_are(tmp_path: Path) -> None:
    settings = {"arms": {"rag": {"about": "by similarity"}, "none": {}, "absent": {"about": "x"}}}
    records = [*make_run("w", "none", 0), *make_run("w", "rag", 0), *make_run("w", "extra", 0)]
    write_records(tmp_path / "a.jsonl", Header("s", "", settings, {}), records)
    experiment = read_experiment(tmp_path)
    assert experiment.arms == ("rag", "none", "extra")
    assert experiment.abouts == {"rag": "by similarity"}


def test_each_file_is_told_once_it_is_read(tmp_path: Path) -> None:
    write_folder(tmp_path, make_records(worlds=1, seeds=3, arms=["rag"]))
    told: list[Path] = []
    read_experiment(tmp_path, told.append)
    assert [path.name for path in told] == ["seed-0.jsonl", "seed-1.jsonl", "seed-2.jsonl"]


def test_a_line_that_breaks_off_is_left_out_and_the_file_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_records(path, HEADER, RECORDS[:5])
    path.write_text(path.read_text()[:-20])
    experiment = read_experiment(tmp_path)
    assert experiment.cut == (str(path),)
    assert experiment.runs[0].episodes == 4


def test_a_broken_line_in_the_middle_is_refused_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_records(path, HEADER, RECORDS[:3])
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "{}\n", *lines[1:]]))
    with pytest.raises(InputError, match="line 2, is no record"):
        read_experiment(tmp_path)


def test_a_file_without_a_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_records(path, HEADER, RECORDS[:3])
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(InputError, match="expected a header first"):
        read_experiment(tmp_path)


def test_the_same_run_in_two_files_is_refused_because_it_would_count_twice(tmp_path: Path) -> None:
    write_records(tmp_path / "a.jsonl", HEADER, RECORDS)
    write_records(tmp_path / "b.jsonl", HEADER, RECORDS)
    with pytest.raises(InputError, match=r"b\.jsonl and .*a\.jsonl both hold world 'w', arm 'rag'"):
        read_experiment(tmp_path)


def test_an_episode_that_stands_twice_is_refused(tmp_path: Path) -> None:
    write_records(tmp_path / "a.jsonl", HEADER, [*RECORDS[:5], RECORDS[2]])
    with pytest.raises(InputError, match="twice"):
        read_experiment(tmp_path)


def test_two_suites_are_not_mixed(tmp_path: Path) -> None:
    write_records(tmp_path / "a.jsonl", HEADER, RECORDS)
    write_records(tmp_path / "b.jsonl", Header("runbooks", "", {}, {}), make_run("v", "rag", 0))
    with pytest.raises(InputError, match="the suites runbooks, worlds"):
        read_experiment(tmp_path)


def test_a_folder_without_records_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \*\.jsonl file"):
        read_experiment(tmp_path)
    write_records(tmp_path / "a.jsonl", HEADER, [])
    with pytest.raises(InputError, match="no episode yet"):
        read_experiment(tmp_path)


def test_several_headers_in_one_file_are_files_put_together(tmp_path: Path) -> None:
    write_folder(tmp_path / "apart", make_records(worlds=2, seeds=1, arms=["rag"]))
    parts = sorted((tmp_path / "apart").rglob("*.jsonl"))
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.jsonl").write_text("".join(path.read_text() for path in parts))
    apart, one = read_experiment(tmp_path / "apart"), read_experiment(tmp_path / "one")
    assert [run.success for run in apart.runs] == [run.success for run in one.runs]
    assert apart.headers == one.headers == (HEADER,)


def test_a_simulated_suite_is_known_as_such() -> None:
    assert is_simulated(Header("worlds", "", {}, {}))
    assert is_simulated(Header("mine", "", {"simulated": True}, {}))
    assert not is_simulated(Header("runbooks", "smollm2", {}, {}))
