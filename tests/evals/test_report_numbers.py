"""Every number on the page can be computed again from the records by the metric functions."""

import json
import math
import re
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from synthetic import ARMS, make_records, write_folder

from langchain_memrl.evals.analysis import metrics, q_metrics
from langchain_memrl.evals.analysis.intervals import compare, interval
from langchain_memrl.evals.analysis.measures import mean
from langchain_memrl.evals.analysis.metrics import by_arm, by_run
from langchain_memrl.evals.analysis.reading import read_experiment
from langchain_memrl.evals.analysis.tables import tabulate
from langchain_memrl.evals.arms import ARMS as EVERY
from langchain_memrl.evals.records import BankRecord, EpisodeRecord
from langchain_memrl.evals.report import svg
from langchain_memrl.evals.report.contents import all_figures
from langchain_memrl.evals.report.figures import LOOKS, looks
from langchain_memrl.evals.report.page import render_page

LINES = make_records(worlds=3, seeds=5)
EPISODES = [line for line in LINES if isinstance(line, EpisodeRecord)]
BANKS = [line for line in LINES if isinstance(line, BankRecord)]
RUNS = by_run(EPISODES)
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("run")
    write_folder(folder, LINES)
    experiment = read_experiment(folder)
    tables = tabulate(experiment)
    return render_page(experiment, tables, all_figures(experiment, tables))


@pytest.fixture(scope="module")
def data(page: str) -> Any:
    return json.loads(DATA.findall(page)[0])


def same(found: Any, expected: Any) -> bool:
    """Equal to six digits; None is NaN."""
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float) and math.isnan(expected):
        return found is None
    return found == pytest.approx(expected, rel=1e-6, abs=1e-6)


def oracle_of(key: metrics.RunKey) -> list[EpisodeRecord]:
    return RUNS[key._replace(arm="oracle")]


PER_EPOCH: dict[str, Callable[[metrics.RunKey], list[float]]] = {
    "learning": lambda key: metrics.success_per_epoch(RUNS[key]),
    "cumulative": lambda key: metrics.cumulative_success(RUNS[key]),
    "lost": lambda key: metrics.lost_rate(RUNS[key]),
    "regret": lambda key: metrics.regret(RUNS[key], oracle_of(key)),
}


def test_each_run_holds_its_metrics(data: Any) -> None:
    runs = data["runs"]
    assert len(runs["rows"]) == len(RUNS)
    for row in (dict(zip(runs["columns"], values, strict=True)) for values in runs["rows"]):
        key = metrics.RunKey(row["world"], row["arm"], row["seed"])
        own = RUNS[key]
        bank = [bank for bank in BANKS if (bank.world, bank.arm, bank.seed) == key][-1]
        expected = {
            "success_per_epoch": metrics.success_per_epoch(own),
            "cumulative_per_epoch": metrics.cumulative_success(own),
            "lost_per_epoch": metrics.lost_rate(own),
            "lost": mean(metrics.lost_rate(own)[1:]),
            "forgetting_per_epoch": metrics.forgetting_rate(own),
            "regret_per_epoch": metrics.regret(own, oracle_of(key)),
            "success_per_tenth": metrics.success_along(own),
            "success": metrics.success_per_epoch(own)[-1],
            "mean_success": metrics.mean_success(own),
            "cumulative": metrics.cumulative_success(own)[-1],
            "forgetting": statistics.fmean(metrics.forgetting_rate(own)[1:]),
            "transfer": metrics.transfer(own),
            "regret": metrics.regret(own, oracle_of(key))[-1],
            "q_correlation": q_metrics.q_correlation(own),
            "never_updated": q_metrics.never_updated(bank),
            "bank": len(bank.ids),
            "tokens": metrics.tokens_per_episode(own),
            "calls": metrics.calls_per_episode(own),
            "ms": 1000 * metrics.latency(own).median,
            "ms_p95": 1000 * metrics.latency(own).p95,
            "unanswered": metrics.unanswered(own),
            "episodes": len(own),
        }
        assert {name for name, value in expected.items() if not same(row[name], value)} == set()
        assert row.keys() == expected.keys() | {"world", "arm", "seed"}


@pytest.mark.parametrize("name", PER_EPOCH)
def test_a_curve_is_the_mean_over_worlds_then_seeds_with_its_interval(data: Any, name: str) -> None:
    for arm in ARMS:
        drawn = data["figures"][name][arm]
        per_run = {key: PER_EPOCH[name](key) for key in RUNS if key.arm == arm}
        for epoch, point in enumerate(drawn):
            seeds = [
                mean([v[epoch] for key, v in per_run.items() if key.seed == seed])
                for seed in range(5)
            ]
            expected = interval(seeds, None if name == "regret" else (0, 1))
            assert expected.known or len(set(seeds)) == 1 or (name == "lost" and epoch == 0)
            found = [point[part] for part in ("mean", "low", "high", "error", "count")]
            assert same(found, [getattr(expected, part) for part in point])


def test_comparisons_are_paired_by_seed_after_averaging_over_worlds(data: Any) -> None:
    values: dict[str, dict[object, float]] = {arm: {} for arm in ARMS}
    for key, own in RUNS.items():
        values[key.arm][key.world, key.seed] = metrics.success_per_epoch(own)[-1]
    found = data["comparisons"]["success"]
    assert [(one["left"], one["right"]) for one in found] == [
        *(("memrl", arm) for arm in ARMS if arm != "memrl"),
        *(("rag", arm) for arm in ARMS if arm not in ("rag", "memrl")),
    ]
    for one in found:
        expected = compare(one["left"], one["right"], values)
        assert same(one["mean"], expected.difference.mean)
        assert same([one["low"], one["high"]], [expected.difference.low, expected.difference.high])
        assert (one["count"], one["ahead"]) == (5, expected.ahead)
        assert one["sentence"] == expected.sentence
    drawn = data["figures"]["against_arms"]
    assert same([drawn[arm]["mean"] for arm in drawn], [one["mean"] for one in found[:5]])


def test_memrl_against_rag_in_each_world_is_over_the_same_seeds(data: Any) -> None:
    for world, drawn in data["figures"]["against_rag"].items():
        memrl, rag = (
            [metrics.mean_success(RUNS[metrics.RunKey(world, arm, seed)]) for seed in range(5)]
            for arm in ("memrl", "rag")
        )
        assert same(drawn["mean"], statistics.fmean(memrl) - statistics.fmean(rag))


def test_a_row_of_a_world_says_how_far_it_is_from_no_memory(data: Any) -> None:
    row = next(row for row in data["worlds"] if (row["world"], row["arm"]) == ("tell 0.1", "rag"))
    rag, none = (
        [metrics.mean_success(RUNS[metrics.RunKey("tell 0.1", arm, seed)]) for seed in range(5)]
        for arm in ("rag", "none")
    )
    differences = [left - right for left, right in zip(rag, none, strict=True)]
    expected = interval(differences)
    found = row["against_none"]
    assert same(
        [found["mean"], found["low"], found["high"]], [expected.mean, expected.low, expected.high]
    )


def test_calibration_pools_the_episodes_of_an_arm(data: Any) -> None:
    for arm, own in by_arm(EPISODES).items():
        expected = [one._asdict() for one in q_metrics.success_by_q(own)]
        assert data["figures"]["calibration"][arm] == expected


def test_the_histogram_of_q_adds_up_the_banks_of_memrl(data: Any) -> None:
    drawn = data["figures"]["q_histogram"]
    assert drawn["arm"] == "memrl"
    for epoch, row in enumerate(drawn["epochs"]):
        banks = [bank for bank in BANKS if (bank.arm, bank.epoch) == ("memrl", epoch)]
        counts = [q_metrics.q_histogram(bank) for bank in banks]
        assert row["memories"] == [sum(column) for column in zip(*counts, strict=True)]
        lost = [
            [share * count if count else 0 for share, count in zip(shares, own, strict=True)]
            for shares, own in zip(map(q_metrics.failure_share_by_q, banks), counts, strict=True)
        ]
        assert same(row["failures"], [sum(column) for column in zip(*lost, strict=True)])


def test_cost_is_that_of_the_arms_episodes(data: Any) -> None:
    for arm, own in by_arm(EPISODES).items():
        drawn = data["figures"]["cost"][arm]
        assert "tokens" not in drawn  # no model was asked
        assert same(drawn["ms"], 1000 * metrics.latency(own).median)
        sizes = [len(bank.ids) for bank in BANKS if (bank.arm, bank.epoch) == (arm, 3)]
        assert same(drawn["bank"], statistics.fmean(sizes))


def test_the_drawn_line_lies_where_its_numbers_say(page: str, data: Any) -> None:
    figure = re.findall(r'<figure id="figure-learning">.*?</figure>', page, re.DOTALL)[0]
    points = re.findall(r'<g class="c1"><title>memrl.*?<polyline points="([^"]+)"', figure)[0]
    ys = [float(point.split(",")[1]) for point in points.split()]
    means = [point["mean"] for point in data["figures"]["learning"]["memrl"]]
    slope = (ys[-1] - ys[0]) / (means[-1] - means[0])
    assert [ys[0] + slope * (mean - means[0]) for mean in means] == pytest.approx(ys, abs=0.05)


def test_an_arm_has_one_colour_in_all_figures(page: str) -> None:
    look = looks(ARMS)
    assert len({color for color, _ in look.values()}) == len(ARMS)
    every = looks([*LOOKS, *EVERY])
    assert len({color for color, _ in every.values()}) == len(every)
    for color, arm in re.findall(r'<g class="(c\d+|ink)"><title>(\w+):', page):
        assert color == look[arm][0]


# --- the drawing board ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.31, 0.52, [0.35, 0.4, 0.45, 0.5]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
        (0, 4000, [0, 1000, 2000, 3000, 4000]),
    ],
)
def test_ticks_are_round_values_inside(low: float, high: float, expected: list[float]) -> None:
    assert svg.ticks(low, high) == expected


def test_labels_are_moved_apart_and_stay_inside() -> None:
    assert svg.spread([50, 50, 10], 10, 0, 100) == [45, 55, 10]
    assert svg.spread([99, 98], 10, 0, 100) == [100, 90]
    assert svg.spread([1, 2, 50], 10, 0, 100) == [0, 10, 50]
    assert svg.spread([20, 28, 36], 10, 0, 100) == [18, 28, 38]


def test_text_in_a_figure_is_escaped() -> None:
    assert svg.text(1, 2, "<&>").endswith(">&lt;&amp;&gt;</text>")
    assert svg.element("a", b='"<') == '<a b="&quot;&lt;"/>'
