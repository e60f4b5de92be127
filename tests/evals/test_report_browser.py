"""The page in a real headless Chromium."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from synthetic import make_records, write_folder

from langchain_memrl.evals.analysis.reading import read_experiment
from langchain_memrl.evals.analysis.tables import tabulate
from langchain_memrl.evals.report.contents import all_figures
from langchain_memrl.evals.report.page import render_page
from langchain_memrl.evals.report.several import gather, render_several

SET_UP = 'apt-get install -y chromium && pip install -e ".[browser]"'
pytest.importorskip("websockets", reason=f"needs a Chromium and its driver: {SET_UP}")
import browser  # noqa: E402 - it needs websockets

CHROMIUM = browser.find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=f"needs a Chromium: {SET_UP}")

ARMS = (
    *("none", "pass@k", "reflexion", "rag", "memp", "memrl", "memrl-rag", "memrl-plain"),
    *("success-rate", "last-success", "shrunk", "placebo", "oracle"),
)
COLUMN = (
    "[...document.querySelectorAll('#every tbody tr:not([hidden])')]"
    ".map(row => row.children[%d].dataset.value)"
)
OVERLAPS = """
[...document.querySelectorAll("svg")].flatMap(svg => {
  const whole = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].map(one => [one, one.getBoundingClientRect()]);
  const found = [];
  texts.forEach(([one, a], place) => {
    const wide = a.left < whole.left - 1 || a.right > whole.right + 1;
    const high = a.top < whole.top - 1 || a.bottom > whole.bottom + 1;
    if (wide || high) found.push(`outside: ${one.textContent}`);
    for (const [other, b] of texts.slice(place + 1)) {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 4) found.push(`overlap: ${one.textContent} / ${other.textContent}`);
    }
  });
  return found.map(words => svg.ariaLabel + ": " + words);
})
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of 13 arms in 6 worlds."""
    folder = tmp_path_factory.mktemp("run")
    write_folder(folder, make_records(worlds=6, seeds=2, arms=ARMS, tasks=6))
    experiment = read_experiment(folder)
    tables = tabulate(experiment)
    page = render_page(experiment, tables, all_figures(experiment, tables))
    (folder / "report.html").write_text(page, encoding="utf-8")
    return folder / "report.html"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Page]:
    assert CHROMIUM is not None
    with browser.open_browser(CHROMIUM, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(chromium: browser.Page, path: Path) -> browser.Page:
    """The page, newly loaded."""
    chromium.look()
    chromium.requests.clear()
    chromium.problems.clear()
    chromium.open(path)
    return chromium


def column(page: browser.Page, place: int) -> list[str]:
    found: list[str] = page.evaluate(COLUMN % place)
    return found


def place_of(page: browser.Page, title: str) -> int:
    titles = page.evaluate(
        "[...document.querySelectorAll('#every thead button')].map(one => one.textContent)"
    )
    return int(titles.index(title))


def click(page: browser.Page, title: str) -> str:
    """Click a column's name; returns how it is then sorted."""
    head = f"#every thead th:nth-child({place_of(page, title) + 1})"
    page.click(f"{head} button")
    return str(page.evaluate(f"document.querySelector({json.dumps(head)}).ariaSort"))


def test_it_loads_nothing_but_itself_and_nothing_goes_wrong(page: browser.Page, path: Path) -> None:
    assert page.evaluate("document.title") == "Which memory helps? Suite worlds, simulation"
    assert page.evaluate("document.querySelectorAll('figure svg').length") >= 9
    assert page.requests == [path.resolve().as_uri()]
    assert page.problems == []


def test_its_policy_stops_what_somebody_would_slip_in(page: browser.Page) -> None:
    page.evaluate("new Image().src = 'http://127.0.0.1:9/x.png'")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<b onclick=\"hit = 1\">b</b>')")
    page.evaluate("document.querySelector('b').click()")
    assert page.evaluate("typeof hit") == "undefined"
    assert all("Content Security Policy" in problem for problem in page.problems)
    assert len(page.problems) == 2


def test_a_click_sorts_numbers_as_numbers_and_a_second_one_turns_them_around(
    page: browser.Page,
) -> None:
    place = place_of(page, "against no memory, all epochs")
    before = column(page, place)
    assert click(page, "against no memory, all epochs") == "descending"
    numbers = [value for value in before if value]
    missing = [""] * (len(before) - len(numbers))
    assert min(map(float, numbers)) < 0 < max(map(float, numbers))
    assert missing
    assert column(page, place) == sorted(numbers, key=float, reverse=True) + missing
    assert click(page, "against no memory, all epochs") == "ascending"
    assert column(page, place) == sorted(numbers, key=float) + missing
    assert page.problems == []


def test_text_sorts_from_a_to_z_and_only_one_column_is_marked(page: browser.Page) -> None:
    click(page, "regret")
    assert click(page, "arm") == "ascending"
    found = column(page, place_of(page, "arm"))
    assert found == sorted(found)
    marked = "document.querySelectorAll('#every th:not([aria-sort=none])[aria-sort]').length"
    assert page.evaluate(marked) == 1


def test_the_keyboard_sorts_too(page: browser.Page) -> None:
    page.evaluate("document.querySelector('#every thead button').focus()")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r",
                  windowsVirtualKeyCode=13)  # fmt: skip
    assert page.evaluate("document.querySelector('#every thead th').ariaSort") == "ascending"


def test_rows_stay_that_contain_every_word_that_is_typed(page: browser.Page) -> None:
    page.evaluate("document.getElementById('filter').focus()")
    page.type("0.1 MEMRL")
    shown = set(zip(column(page, 0), column(page, 1), strict=True))
    assert shown == {
        (world, arm) for world in ("tell 0.1",) for arm in ("memrl", "memrl-rag", "memrl-plain")
    }
    assert page.evaluate("document.getElementById('count').textContent") == "3 of 78 rows"
    page.type(" nothing like it")
    assert column(page, 0) == []


def test_the_numbers_inside_can_be_read_again(page: browser.Page) -> None:
    data = json.loads(page.evaluate("document.getElementById('data').textContent"))
    row = data["runs"]["rows"][0]
    assert len(data["runs"]["rows"]) == 6 * 13 * 2
    assert len(row) == len(data["runs"]["columns"])


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_phone_and_desktop_by_day_and_by_night(
    page: browser.Page, width: int, dark: bool
) -> None:
    from PIL import Image

    page.look(dark=dark, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.evaluate("document.getElementById('figures').scrollIntoView()")
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    counts = sorted(picture.getcolors(1 << 24) or [], reverse=True)
    paper = counts[0][1]
    assert picture.size == (width, 900)
    assert len(counts) > 100
    assert counts[0][0] < 0.97 * width * 900
    assert (sum(paper) < 150) == dark


def test_the_table_of_arms_does_not_scroll_sideways_on_a_desktop(page: browser.Page) -> None:
    page.look(width=1280)
    region = "document.querySelector('#by-arm').parentElement"
    assert page.evaluate(f"{region}.scrollWidth <= {region}.clientWidth")


def test_a_phone_shows_arm_success_and_difference_under_a_flat_header(page: browser.Page) -> None:
    page.look(width=390)
    heads = "[...document.querySelectorAll('#by-arm thead th')].slice(0, 3)"
    assert page.evaluate(f"{heads}.every(one => one.getBoundingClientRect().right <= 390)")
    assert page.evaluate(f"{heads}.every(one => one.getBoundingClientRect().height < 50)")


@pytest.mark.parametrize("width", [390, 1280])
def test_no_label_of_a_figure_lies_on_another_or_is_cut_off(page: browser.Page, width: int) -> None:
    page.look(width=width)
    assert page.evaluate(OVERLAPS) == []


def test_the_page_of_several_experiments_is_as_quiet_and_as_tidy(
    chromium: browser.Page, path: Path
) -> None:
    experiment = read_experiment(path.parent)
    common = path.parent / "several.html"
    common.write_text(render_several(gather([experiment, experiment])), encoding="utf-8")
    chromium.look(width=1280)
    chromium.requests.clear()
    chromium.problems.clear()
    chromium.open(common)
    assert chromium.requests == [common.resolve().as_uri()]
    assert chromium.problems == []
    assert chromium.evaluate("document.documentElement.scrollWidth") == 1280
    assert chromium.evaluate(OVERLAPS) == []
    sorted_ = "document.querySelector('#overview-table thead th').ariaSort"
    chromium.click("#overview-table thead th button")
    assert chromium.evaluate(sorted_) == "ascending"
