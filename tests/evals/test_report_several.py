"""Several experiments on one page: environments, side by side, each by itself."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
from synthetic import HEADER, make_run

from langchain_memrl.evals.analysis.overview import line_of, truth_of
from langchain_memrl.evals.analysis.reading import Experiment, read_experiment
from langchain_memrl.evals.analysis.tables import tabulate
from langchain_memrl.evals.records import EpisodeRecord, Header, write_records
from langchain_memrl.evals.report.several import gather, render_several

TIE = "several answers are right"


def header(suite: str, agent: str, **settings: object) -> Header:
    chosen = {"protocol": "runtime", "epochs": 1, "agent": agent, "note": f"agent {agent}: acts"}
    return dataclasses.replace(HEADER, suite=suite, settings=chosen | settings)


def tries(arm: str, seed: int, epoch: int, solved: int, tasks: int = 10) -> list[EpisodeRecord]:
    return [
        EpisodeRecord("", arm, seed, epoch, epoch * tasks + n, str(n), n < solved, (), (), 0.1)
        for n in range(tasks)
    ]


def read(folder: Path, head: Header, lines: list[EpisodeRecord]) -> Experiment:
    folder.mkdir()
    write_records(folder / "a.jsonl", head, lines)
    return read_experiment(folder)


@pytest.fixture
def truth(tmp_path: Path) -> Experiment:
    """Nine of ten right solutions counted, of which one is known not to be solvable."""
    head = header("lookups", "oracle", exceptions={"9": TIE})
    return read(tmp_path / "truth", head, tries("none", 0, 0, 9))


@pytest.fixture
def learning(tmp_path: Path) -> Experiment:
    lines = [
        one
        for seed, (none, rag, memrl) in enumerate([(2, 4, 7), (3, 6, 5)])
        for arm, last in (("none", none), ("rag", rag), ("memrl", memrl))
        for one in (*tries(arm, seed, 0, 1), *tries(arm, seed, 1, last))
    ]
    return read(tmp_path / "learning", header("lookups", "memory-bound", epochs=2, steps=7), lines)


@pytest.fixture
def single(tmp_path: Path) -> Experiment:
    lines = [*tries("none", 0, 0, 5), *tries("memrl", 0, 0, 6)]
    head = header("programs", "prior-bound", steps=1, guard=True, protocol="stream")
    return read(tmp_path / "single", head, lines)


def test_right_solutions_are_counted_with_the_known_exceptions_apart(truth: Experiment) -> None:
    found = truth_of(truth)
    assert found[:4] == ("lookups", 9, 10, 0)
    assert found.exceptions == {TIE: ("9",)}
    assert found.unexpected == 0


def test_a_failure_that_nobody_expected_is_shown(tmp_path: Path) -> None:
    head = header("lookups", "oracle", exceptions={"9": TIE})
    assert truth_of(read(tmp_path / "x", head, tries("none", 0, 0, 7))).unexpected == 2


def test_a_line_compares_arms_over_the_same_seeds(learning: Experiment) -> None:
    line = line_of(1, learning, tabulate(learning))
    assert line[:7] == (1, "lookups", "memory-bound", "runtime", "several", 10, 2)
    assert line.success == pytest.approx({"none": 0.25, "rag": 0.5, "memrl": 0.6})
    assert line.over_none is not None
    assert line.over_rag is not None
    assert line.over_none.mean == pytest.approx(0.35)
    assert line.over_rag.mean == pytest.approx(0.1)
    assert (line.lowest, line.highest) == pytest.approx((-0.1, 0.3))


def test_a_line_without_a_rival_has_no_gain_over_it(single: Experiment) -> None:
    line = line_of(1, single, tabulate(single))
    assert line.over_rag is None
    assert line.how == "stream, own memories hidden"
    assert line.steps == "one"


def test_one_page_holds_all_of_it(
    truth: Experiment, learning: Experiment, single: Experiment
) -> None:
    several = gather([single, truth, learning])
    page = render_several(several)
    assert [line.suite for line in several.lines] == ["programs", "lookups"]
    assert "<title>Which memory helps? Several experiments</title>" in page
    assert f"lookups: task 9: {TIE}." in page
    assert re.findall(r'<section id="(experiment-\d)"', page) == ["experiment-1", "experiment-2"]
    assert "No result of a large language model" in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
    labels = re.findall(r">(\d [^<]*?)</text>", page.split("figure-gain_none")[1])
    assert labels[:2] == ["2 lookups", "1 programs *"]


def test_its_numbers_are_inside_as_data(truth: Experiment, learning: Experiment) -> None:
    page = render_several(gather([truth, learning]))
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert data["truths"][0]["solved"] == 9
    assert data["overview"][0]["success"]["memrl"] == pytest.approx(0.6)
    assert data["experiments"][0]["headers"][0]["settings"]["agent"] == "memory-bound"


def test_what_stands_in_records_cannot_change_the_page(tmp_path: Path) -> None:
    evil = "</script><b onclick=x>"
    head = header(evil, evil, protocol=evil, exceptions={evil: evil})
    lines = [one for one in make_run("", evil, 0) if isinstance(one, EpisodeRecord)]
    page = render_several(gather([read(tmp_path / "evil", head, lines)]))
    assert "<b onclick" not in page
    assert page.count("</script>") == 2
