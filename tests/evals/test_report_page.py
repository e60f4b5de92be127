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
from synthetic import make_records, make_run, write_folder

from langchain_memrl.evals.analysis.reading import Experiment, read_experiment
from langchain_memrl.evals.analysis.tables import tabulate
from langchain_memrl.evals.records import BankRecord, EpisodeRecord, Header, write_records
from langchain_memrl.evals.report.advice import _choice
from langchain_memrl.evals.report.contents import all_figures, arm_columns, more_arm_columns
from langchain_memrl.evals.report.figures import curve_figure
from langchain_memrl.evals.report.findings import caveat, findings, notes
from langchain_memrl.evals.report.html import plain_json
from langchain_memrl.evals.report.page import render_page
from langchain_memrl.evals.report.printing import in_width, print_report

PLAIN = Header("worlds", "", {}, {})
"""Announces nothing, so that any number of epochs is a whole run."""
RUN = list(make_run("w", "rag", 0))
Lines = Sequence[EpisodeRecord | BankRecord]


def read(folder: Path, lines: Lines, header: Header = PLAIN) -> Experiment:
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
    assert len(captions) == 4 + page.count("<figure ")
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


def test_every_column_of_every_table_is_explained_in_the_glossary(page: str) -> None:
    titles = set(re.findall(r'<button type="button" title="[^"]*">([^<]*)</button>', page))
    assert {"against no memory", "against no memory, all epochs", "seeds", "runs"} <= titles
    assert titles - set(re.findall("<dt>([^<]*)</dt>", page)) == set()


def test_forgetting_is_explained_without_a_promise_and_the_figure_shows_what_was_lost(
    page: str,
) -> None:
    meaning = re.findall("<dt>forgetting</dt><dd>(.*?)</dd>", page)[0]
    assert "few failures, so this can be large" in meaning
    assert "mall is good" not in page
    assert 'id="figure-lost"' in page
    assert 'id="figure-forgetting"' not in page


def test_memrl_is_set_against_memp_first_in_sentences_table_and_figure(tmp_path: Path) -> None:
    lines = [
        line for arm in ("none", "rag", "memrl", "memp") for line in solved(arm, MEMRL, "w")
    ] + [line for arm in ("none", "rag", "memrl", "memp") for line in solved(arm, MEMRL, "v")]
    found = read(tmp_path, lines)
    tables = tabulate(found)
    assert [one.right for one in tables.comparisons["success"]][:3] == ["memp", "none", "rag"]
    names = [figure.name for figure in all_figures(found, tables)]
    assert names[-2:] == ["against_memp", "against_rag"]


def test_a_figure_says_in_its_title_which_epochs_it_is_about(page: str) -> None:
    titles = re.findall("<h3>(.*?)</h3>", page)
    assert len(titles) == page.count("<figure ")
    assert [title for title in titles if "epoch" not in title] == []


def test_the_table_of_arms_begins_with_what_a_phone_has_room_for(experiment: Experiment) -> None:
    titles = [column.title for column in arm_columns(tabulate(experiment))]
    assert titles[:3] == ["arm", "success", "against no memory"]
    assert len(titles) <= 10


def test_calls_and_tokens_are_hidden_where_no_model_was_asked(
    tmp_path: Path, page: str, experiment: Experiment
) -> None:
    found = read(tmp_path, list(make_run("", "rag", 0)), Header("runbooks", "smollm2", {}, {}))
    assert "<dt>calls</dt>" in render(found)
    assert "No model was asked" not in render(found)
    assert "No model was asked" in page
    assert "<dt>calls</dt>" not in page
    assert "<dt>tokens</dt>" not in page
    assert " calls" not in printed(experiment)


def test_a_tie_with_a_rival_is_said_as_plainly_as_a_win(tmp_path: Path) -> None:
    lines = [
        *solved("rag", [0.2, 0.3, 0.4, 0.35, 0.25]),
        *solved("memrl", MEMRL),
        *solved("memp", [0.55, 0.55, 0.65, 0.65, 0.6]),
        *solved("shrunk", [0.6, 0.5, 0.75, 0.6, 0.6]),
        *solved("last-success", [0.9, 0.95, 0.9, 0.95, 0.9]),
        *solved("placebo", [0.5, 0.65, 0.7, 0.6, 0.6]),
        *solved("none", [0.0, 0.0, 0.05, 0.0, 0.0]),
    ]
    told = findings(tabulate(read(tmp_path, lines)))
    assert told[0].startswith("Use memrl (the defaults), or any arm that cannot be told from it: ")
    assert "memp; of these memp (q_weight=0) is the simplest" in told[0]
    assert told[1].startswith("Q cannot be shown to help here: memrl cannot be told from memp")
    assert "q_weight=0 turns memrl into memp" in told[1]
    assert told[2] == (
        "Simpler rules are not surely worse than Q: last-success is ahead of memrl; shrunk cannot "
        "be told from memrl. They are not in the product yet; today you can choose between Q (the "
        "defaults) and q_weight=0 (memp)."
    )
    assert told[3].startswith("No difference between memrl and memp")
    assert told[3].endswith(
        "memp is the fair rival without Q: the same lessons and gate, q_weight=0."
    )
    assert told[4] == (
        "Against its rivals: memrl is ahead of rag; no difference can be told from memp and "
        "shrunk; memrl is behind last-success."
    )
    assert told[5].startswith("memrl is ahead of rag by 0.300")
    assert told[5].endswith("it keeps raw trajectories and has no gate.")
    assert told[6].startswith("last-success is ahead of memrl by 0.320")
    assert any("not surely ahead of the placebo" in sentence for sentence in told)
    assert not any("Worse than no memory" in sentence for sentence in told)


MEMRL = [0.5, 0.6, 0.7, 0.6, 0.6]
HALF = [0.5] * 5


@pytest.mark.parametrize(
    ("memrl", "none", "expected"),
    [
        (MEMRL, [0.9, 0.95, 0.9, 0.95, 0.9], "Use no memory here: even memrl, the best arm"),
        (MEMRL, [0.7, 0.5, 0.6, 0.65, 0.5], "No arm with memory can be told from no memory here"),
        (MEMRL, [0.2, 0.2, 0.3, 0.3, 0.3], "Use memrl (the defaults). memrl is ahead of no memory"),
        (MEMRL, [], "Of the arms with memory use memrl (the defaults). Whether memory helps at"),
        (MEMRL[:2], [0.1, 0.1], "No advice yet: 2 seeds are too few to tell arms apart; run at"),
    ],
)
def test_it_begins_with_what_to_do(
    tmp_path: Path, memrl: list[float], none: list[float], expected: str
) -> None:
    lines = [*solved("memrl", memrl), *solved("rag", [0.1] * len(memrl)), *solved("none", none)]
    told = findings(tabulate(read(tmp_path, lines)))
    assert told[0].startswith(expected)
    assert "In short</h2>\n<ul><li>" + expected in render(read(tmp_path, lines))


def test_memp_ahead_of_memrl_says_what_a_user_can_do_today(tmp_path: Path) -> None:
    lines = [
        *solved("memrl", [0.3, 0.35, 0.4, 0.3, 0.3]),
        *solved("memp", MEMRL),
        *solved("none", [0.1, 0.15, 0.1, 0.1, 0.1]),
    ]
    told = findings(tabulate(read(tmp_path, lines)))
    assert told[0].startswith("Use memp (q_weight=0). memp is ahead of no memory by ")
    assert told[1].startswith("Q surely hurts here: memp is ahead of memrl (-0.270).")


def test_worlds_below_no_memory_are_counted_and_named_in_a_plain_sentence(tmp_path: Path) -> None:
    lines = [
        *(line for world in "abc" for line in solved("none", HALF, world)),
        *solved("rag", [0.2, 0.3, 0.4, 0.3, 0.2], "a"),
        *solved("rag", [0.2, 0.4, 0.7, 0.3, 0.6], "b"),
        *solved("rag", [0.6, 0.7, 0.7, 0.6, 0.8], "c"),
    ]
    assert findings(tabulate(read(tmp_path, lines)))[-1] == (
        "Worse than no memory, all epochs together: rag in 2 of 3 worlds, surely in 1 (a)."
    )


def test_two_seeds_show_neither_interval_nor_verdict_and_say_so_beside_the_findings(
    tmp_path: Path,
) -> None:
    lines = [
        *solved("memrl", [0.6, 0.6]), *solved("rag", [0.5, 0.55]), *solved("none", [0.1, 0.1])
    ]  # fmt: skip
    found = read(tmp_path, lines)
    short = re.findall('<section aria-labelledby="short".*?</section>', render(found), re.DOTALL)[0]
    assert "memrl against rag, 2 seeds: too few to tell; difference so far +0.075." in short
    assert "no interval and no verdict is given" in short
    assert "is ahead" not in printed(found)
    assert "95 % interval" not in printed(found)
    assert "0.600 (2 seeds)" in printed(found)


def test_an_interrupted_run_is_called_unfinished_at_the_top_and_left_out(tmp_path: Path) -> None:
    settings = {"arms": {"none": {}, "memrl": {}}, "worlds": [""], "seeds": 2, "epochs": 4}
    lines = [
        line for seed in range(2) for arm in ("none", "memrl") for line in make_run("", arm, seed)
    ]
    whole = read(tmp_path, lines, Header("worlds", "", settings, {}))
    assert not any("nfinished" in note for note in notes(whole))
    found = read(tmp_path, lines[:-5], Header("worlds", "", settings, {}))
    assert notes(found)[0] == "Unfinished: arm memrl has 1 of 2 seeds and 1 begun."
    assert any(note.endswith("without an answer: memrl seed 1.") for note in notes(found))
    assert tabulate(found).comparisons["success"][0].difference.count == 1
    assert "over the worlds and seeds that all arms have, " in findings(tabulate(found))[0]
    page = render(found)
    assert page.index("Unfinished: arm memrl") < page.index("In short")


def test_runs_that_were_announced_and_never_began_are_missed(tmp_path: Path) -> None:
    settings = {"arms": {"none": {}, "rag": {}}, "worlds": ["a", "b"], "seeds": 3, "epochs": 4}
    lines = list(make_run("a", "none", 0))
    found = read(tmp_path, lines, Header("worlds", "", settings, {}))
    assert notes(found)[0] == (
        "Unfinished: no run in b (1 of 2 worlds); arm none has 1 of 3 seeds; "
        "arm rag has 0 of 3 seeds."
    )


def test_seeds_may_hold_out_more_or_fewer_of_the_same_number_of_tasks(tmp_path: Path) -> None:
    def transfer(arm: str, seed: int, trained: int, held_out: int) -> Lines:
        splits = ["train"] * trained + ["held_out"] * held_out
        return [
            EpisodeRecord(
                "", arm, seed, int(n >= trained), n, str(n), True, (), (), 0.1, split=split
            )
            for n, split in enumerate(splits)
        ]

    head = dataclasses.replace(PLAIN, settings={"protocol": "transfer", "epochs": 1, "tasks": 10})
    whole = [*transfer("none", 0, 7, 3), *transfer("none", 1, 6, 4), *transfer("memrl", 1, 6, 4)]
    assert not [one for one in notes(read(tmp_path / "whole", whole, head)) if "nfinished" in one]
    cut = [*whole, *transfer("memrl", 0, 7, 2)]
    assert notes(read(tmp_path / "cut", cut, head))[0] == (
        "Unfinished: arm memrl has 1 of 2 seeds and 1 begun."
    )


def test_a_lone_run_that_lacks_tasks_of_its_only_epoch_is_unfinished(tmp_path: Path) -> None:
    settings = {"arms": {"rag": {}}, "worlds": ["a"], "seeds": 1, "epochs": 1, "tasks": 20}
    lines = list(make_run("a", "rag", 0, tasks=12, epochs=1))
    assert notes(read(tmp_path, lines, Header("worlds", "", settings, {})))[0].startswith(
        "Unfinished: arm rag has 0 of 1 seeds and 1 begun"
    )


def test_episodes_without_an_answer_show_their_errors_and_tasks(tmp_path: Path) -> None:
    lines = [
        dataclasses.replace(line, step=place % 20) for place, line in enumerate(solved("rag", HALF))
    ]
    lines = [
        dataclasses.replace(
            line, success=None, error="timeout\nafter 30 s" if line.step else "gone"
        )
        if line.step < 3 and line.seed < 2
        else line
        for line in lines
    ]
    told = notes(read(tmp_path, lines))
    assert (
        "6 of 100 episodes have no answer because the environment failed; they are in no share. "
        "Most frequent errors: timeout after 30 s (4 times), gone (2 times). "
        "Tasks: 0 (2 times), 1 (2 times), 2 (2 times)."
    ) in told
    assert any(note.endswith("rag in w seed 0, rag in w seed 1.") for note in told)


def test_where_held_out_tasks_were_tried_they_decide(tmp_path: Path) -> None:
    lines = [
        *solved("rag", [0.9] * 5),
        *solved("memrl", [0.1] * 5),
    ]
    held_out = [
        dataclasses.replace(
            line, split="held_out", epoch=1, success=line.arm == "memrl" and line.step > line.seed
        )
        for line in lines
        if isinstance(line, EpisodeRecord)
    ]
    tables = tabulate(read(tmp_path, [*lines, *held_out]))
    assert tables.headline == "transfer"
    assert findings(tables)[0].startswith("Of the arms with memory use memrl")
    assert findings(tables)[1].startswith("memrl is ahead of rag")


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
    assert told.startswith("Unfinished: arm rag has 0 of 1 runs")
    assert "Some arms lack worlds or seeds" in told
    assert "with 1 seed nothing can be said about chance" in caveat(read(tmp_path, RUN))


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
    tables = tabulate(experiment)
    every = [*arm_columns(tables), *more_arm_columns(tables)[1:]]
    groups = in_width(every, width)
    assert all(group[0].title == "arm" for group in groups)
    assert sum(len(group) - 1 for group in groups) == len(every) - 1
    assert max(map(len, printed(experiment, width).splitlines())) <= width
    assert "0.…" not in printed(experiment, width)


def test_a_figure_shows_itself_in_a_notebook(experiment: Experiment) -> None:
    figure = all_figures(experiment, tabulate(experiment))[0]
    assert figure._repr_svg_().startswith("<svg")
    assert figure._repr_svg_().count("<style>") == 1


@pytest.mark.parametrize(("gain", "said"), [(1.0, "Use memrl"), (-0.5, "Use no memory")])
def test_seeds_that_agree_exactly_still_lead_to_advice(gain: float, said: str) -> None:
    pairs = [("", seed) for seed in range(5)]
    values = {"none": dict.fromkeys(pairs, 0.5), "memrl": dict.fromkeys(pairs, 0.5 + gain)}
    found = _choice("memrl", ["memrl"], values, "")
    assert found.startswith(said)
    assert "in each of 5 seeds" in found
    assert "chance cannot be judged" in found
