"""The page and the terminal: what they say, and that nothing in the records can change them."""

import base64
import dataclasses
import hashlib
import io
import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console
from synthetic import HEADER, make_records, make_run, write_folder

from langchain_memrl.evals.contents import all_figures, arm_columns
from langchain_memrl.evals.figures import curve_figure
from langchain_memrl.evals.findings import findings, notes
from langchain_memrl.evals.page import plain_json, render_page
from langchain_memrl.evals.printing import in_width, print_report
from langchain_memrl.evals.reading import Experiment, read_experiment
from langchain_memrl.evals.records import BankRecord, EpisodeRecord, Header, write_records
from langchain_memrl.evals.tables import tabulate

Lines = Sequence[EpisodeRecord | BankRecord]


def read(folder: Path, lines: Lines, header: Header = HEADER) -> Experiment:
    folder.mkdir(exist_ok=True)
    write_records(folder / "a.jsonl", header, lines)
    return read_experiment(folder)


def render(experiment: Experiment) -> str:
    tables = tabulate(experiment)
    return render_page(experiment, tables, all_figures(experiment, tables))


def printed(experiment: Experiment, width: int = 160) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_report(experiment, tabulate(experiment), console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def solved(arm: str, shares: Sequence[float], world: str = "w", **fields: object) -> Lines:
    """An epoch of 20 tasks per seed, of which a share is solved."""
    return [
        EpisodeRecord(
            world, arm, seed, 0, task, str(task), task < share * 20, (), (), 0.1, **fields
        )
        for seed, share in enumerate(shares)
        for task in range(20)
    ]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    folder = tmp_path_factory.mktemp("run")
    write_folder(folder, make_records(worlds=3, seeds=3))
    return read_experiment(folder)


@pytest.fixture(scope="module")
def page(experiment: Experiment) -> str:
    return render(experiment)


# --- what it says ---------------------------------------------------------------------------------


def test_simulation_is_said_wherever_numbers_are_shown(page: str, experiment: Experiment) -> None:
    assert "simulation" in re.findall("<title>(.*?)</title>", page)[0]
    captions = re.findall(r"<(?:caption|figcaption)>(.*?)</", page)
    assert len(captions) == 3 + page.count("<figure ")
    assert [caption for caption in captions if "imulation" not in caption] == []
    assert "worlds (simulation)" in printed(experiment)


def test_a_real_model_is_named_and_not_called_a_simulation(tmp_path: Path) -> None:
    found = read(tmp_path, list(make_run("", "rag", 0)), Header("runbooks", "smollm2", {}, {}))
    assert "Model: smollm2." in render(found)
    assert "imulation" not in render(found) + printed(found)


def test_settings_versions_and_arms_are_on_the_page(page: str) -> None:
    assert "<dt>protocol</dt><dd>runtime</dd>" in page
    assert "<dt>langchain-memrl</dt><dd>0.1.0</dd>" in page
    assert "<dt>arm shrunk</dt><dd>what shrunk is</dd>" in page
    assert "A task may recall memories of its own intent." in page


def test_every_column_is_explained(page: str, experiment: Experiment) -> None:
    for column in arm_columns(tabulate(experiment)):
        assert column.meaning.replace("'", "&#x27;") in page


def test_a_tie_with_a_rival_is_said_as_plainly_as_a_win(tmp_path: Path) -> None:
    lines = [
        *solved("rag", [0.2, 0.3, 0.4]),
        *solved("memrl", [0.5, 0.6, 0.7]),
        *solved("shrunk", [0.6, 0.5, 0.75]),
        *solved("last-success", [0.9, 0.9, 0.9]),
        *solved("placebo", [0.5, 0.65, 0.7]),
        *solved("none", [0.0, 0.0, 0.0]),
    ]
    told = findings(tabulate(read(tmp_path, lines)))
    assert told[0] == (
        "Against its rivals: memrl is ahead of rag; no difference can be told from shrunk; "
        "memrl is behind last-success."
    )
    assert told[1].startswith("memrl is ahead of rag by 0.300")
    assert told[2].startswith("last-success is ahead of memrl by 0.300")
    assert any("not surely ahead of the placebo" in sentence for sentence in told)
    assert not any("elow no memory" in sentence for sentence in told)


def test_worlds_below_no_memory_are_counted_and_named(tmp_path: Path) -> None:
    lines = [
        *(line for world in "abc" for line in solved("none", [0.5, 0.5, 0.5], world)),
        *solved("rag", [0.2, 0.3, 0.4], "a"),
        *solved("rag", [0.2, 0.4, 0.7], "b"),
        *solved("rag", [0.6, 0.7, 0.7], "c"),
    ]
    assert findings(tabulate(read(tmp_path, lines))) == [
        "Below no memory over all epochs, so many worlds of 3 (in brackets, with the whole "
        "interval): rag 2 (1).",
        "With its whole interval, rag is below no memory in: a.",
    ]


def test_where_held_out_tasks_were_tried_they_decide(tmp_path: Path) -> None:
    lines = [
        *solved("rag", [0.9, 0.9]),
        *solved("memrl", [0.1, 0.1]),
    ]
    held_out = [
        dataclasses.replace(line, split="held_out", epoch=1, success=line.arm == "memrl")
        for line in lines
        if isinstance(line, EpisodeRecord)
    ]
    tables = tabulate(read(tmp_path, [*lines, *held_out]))
    assert tables.headline == "transfer"
    assert findings(tables)[0] == "Against its rivals: memrl is ahead of rag."


def test_a_single_pass_is_drawn_by_tenths_instead_of_epochs(tmp_path: Path) -> None:
    lines = [line for seed in range(3) for line in make_run("", "rag", seed, tasks=20, epochs=1)]
    found = read(tmp_path, lines, Header("mine", "", {"protocol": "stream"}, {}))
    figures = {figure.name: figure for figure in all_figures(found, tabulate(found))}
    assert "learning" not in figures
    expected = [run.along for run in found.runs]
    means = [point.mean for point in figures["along"].data["rag"]]
    assert means == pytest.approx([sum(tenth) / 3 for tenth in zip(*expected, strict=True)])
    assert "Protocol: stream." in render(found)


def test_what_makes_numbers_doubtful_is_said(tmp_path: Path) -> None:
    lines = list(make_run("w", "rag", 0, epochs=2)) + list(make_run("v", "none", 0, epochs=3))
    told = " ".join(notes(read(tmp_path, lines)))
    assert "1 of 2 runs have fewer than 3 epochs" in told
    assert "Some arms lack worlds or seeds" in told
    assert "One seed only" in told


def test_the_smallest_experiment_has_a_page(tmp_path: Path) -> None:
    lone = [EpisodeRecord("", "mine", 0, 0, 0, "x", None, (), (), 0.1)]
    found = read(tmp_path, lone, Header("mine", "", {}, {}))
    assert "1 of 1 episodes have no answer" in render(found)
    assert "mine" in printed(found)
    assert curve_figure(found, "a", "b", "c", "d", lambda run: run.success) is None


# --- what it is made of ---------------------------------------------------------------------------


def test_the_policy_lets_in_exactly_the_pages_own_style_and_script(page: str) -> None:
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)[0]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for name, tag in (("style-src", "style"), ("script-src", "script")):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert len(inside) == 1
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"


def test_the_page_names_no_address_to_load_from(page: str) -> None:
    assert not re.findall(r"""(?:src|srcset|data|action|poster)\s*=\s*["']?[a-z/.]""", page)
    assert set(re.findall(r'href="([^"#]*)', page)) == {""}
    assert set(re.findall(r"https?://[^\"' ]*", page)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in page
    assert "url(" not in page


class Checker(HTMLParser):
    """Collects ids and elements, and notes elements that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.elements: set[str] = set()
        self.crossed: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in ("meta", "input"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open.pop() != tag:
            self.crossed.append(tag)


NASTY = "</script><img src=x onerror=alert(1)>\"'&\x1b[31m[bold]{{data}}"


def test_names_in_the_records_stay_text(tmp_path: Path, experiment: Experiment, page: str) -> None:
    header = Header(
        "worlds", NASTY, {"arms": {NASTY: {"about": NASTY}}, NASTY: NASTY}, {"a": NASTY}
    )
    lines = [
        line for seed in range(2) for arm in (NASTY, "memrl", "rag", "none")
        for line in make_run(NASTY, arm, seed)
    ]  # fmt: skip
    found = read(tmp_path, lines, header)
    text, plain = Checker(), Checker()
    text.feed(render(found))
    plain.feed(page)
    assert text.elements <= plain.elements
    assert text.crossed == plain.crossed == []
    assert len(set(text.ids)) == len(text.ids)
    assert "\x1b" not in printed(found)
    assert "[bold]" in printed(found)


def test_json_in_the_page_cannot_end_its_element() -> None:
    text = plain_json({"a": "</script><!--&"})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"a": "</script><!--&"}


def test_the_same_records_give_the_same_page(experiment: Experiment, page: str) -> None:
    assert render(experiment) == page


# --- the terminal ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_table_is_split_so_that_it_fits_the_terminal(
    experiment: Experiment, width: int
) -> None:
    groups = in_width(arm_columns(tabulate(experiment)), width)
    assert all(group[0].title == "arm" for group in groups)
    assert sum(len(group) - 1 for group in groups) == len(arm_columns(tabulate(experiment))) - 1
    assert max(map(len, printed(experiment, width).splitlines())) <= width
    assert "0.…" not in printed(experiment, width)


def test_a_figure_shows_itself_in_a_notebook(experiment: Experiment) -> None:
    figure = all_figures(experiment, tabulate(experiment))[0]
    assert figure._repr_svg_().startswith("<svg")
    assert figure._repr_svg_().count("<style>") == 1
