"""Each metric on records worked by hand."""

import math
from pathlib import Path

import pytest

from langchain_memrl.evals.analysis import metrics, q_metrics
from langchain_memrl.evals.analysis.metrics import RunKey
from langchain_memrl.evals.analysis.runs import reduce_run, with_regret
from langchain_memrl.evals.records import BankRecord, EpisodeRecord


def episode(epoch: int, task: str, success: bool | None, **fields: object) -> EpisodeRecord:
    values = {
        "world": "w", "arm": "a", "seed": 0, "epoch": epoch, "step": 0, "task": task,
        "success": success, "shown": (), "q_values": (), "seconds": 0.1,
    }  # fmt: skip
    return EpisodeRecord(**(values | fields))


def shown(q_values: tuple[float, ...], success: bool | None) -> EpisodeRecord:
    return episode(0, "x", success, q_values=q_values)


# x: failed, solved, failed.  y: solved, failed, failed.  z: failed, unanswered, failed.
RECORDS = [
    episode(0, "x", False), episode(0, "y", True), episode(0, "z", False),
    episode(1, "x", True), episode(1, "y", False), episode(1, "z", None),
    episode(2, "x", False), episode(2, "y", False), episode(2, "z", False),
]  # fmt: skip
BANK = BankRecord(
    "w", "a", 0, 0,
    ids=("m1", "m2", "m3", "m4", "m5"),
    q_values=(0.0, 0.1, -0.9, 0.95, 1.0),
    updates=(0, 2, 3, 0, 7),
    failures=(True, False, True, True, False),
)  # fmt: skip


def test_success_is_solved_over_answered_and_an_unanswered_episode_is_in_neither() -> None:
    assert metrics.success_per_epoch(RECORDS) == [1 / 3, 1 / 2, 0]


def test_an_epoch_without_any_answer_has_no_success_rather_than_none_solved() -> None:
    assert math.isnan(metrics.success_per_epoch([episode(0, "x", None)])[0])


def test_unanswered_episodes_are_counted() -> None:
    assert metrics.unanswered(RECORDS) == 1


def test_mean_success_counts_episodes_not_epochs() -> None:
    assert metrics.mean_success(RECORDS) == 2 / 8


def test_cumulative_success_counts_a_task_once_it_was_solved() -> None:
    assert metrics.cumulative_success(RECORDS) == [1 / 3, 2 / 3, 2 / 3]


def test_a_task_that_was_never_answered_is_no_failure_in_cumulative_success() -> None:
    records = [episode(0, "x", True), episode(0, "y", None), episode(1, "y", False)]
    assert metrics.cumulative_success(records) == [1, 1 / 2]


def test_forgetting_is_the_share_of_failures_that_were_solved_before() -> None:
    # Epoch 2: y fails after its success. Epoch 3: x and y do; z was never solved.
    assert metrics.forgetting_rate(RECORDS) == [0, 1, 2 / 3]


def test_nothing_is_forgotten_where_nothing_fails() -> None:
    assert metrics.forgetting_rate([episode(0, "x", True), episode(1, "x", True)]) == [0, 0]


def test_lost_is_the_share_of_the_tasks_solved_before_that_fail_now() -> None:
    # Epoch 2: of y, y. Epoch 3: of x and y, both.
    first, *others = metrics.lost_rate(RECORDS)
    assert math.isnan(first)
    assert others == [1, 1]
    records = [
        *(episode(0, task, True) for task in "abcd"), episode(0, "e", False),
        episode(1, "a", True), episode(1, "b", False), episode(1, "c", None),
        episode(1, "d", True), episode(1, "e", False),
    ]  # fmt: skip
    assert metrics.lost_rate(records)[1] == 1 / 3


def test_an_arm_that_solves_nearly_all_loses_little_although_its_forgetting_is_large() -> None:
    good = [episode(epoch, str(task), task != epoch) for epoch in (0, 1) for task in range(10)]
    bad = [episode(epoch, str(task), task == epoch) for epoch in (0, 1) for task in range(10)]
    assert metrics.forgetting_rate(good)[1] == 1
    assert metrics.forgetting_rate(bad)[1] == 1 / 9
    assert metrics.lost_rate(good)[1] == 1 / 9
    assert metrics.lost_rate(bad)[1] == 1


def test_a_task_of_another_seed_or_world_is_another_task() -> None:
    records = [
        episode(0, "x", True),
        episode(0, "x", False, seed=1),
        episode(1, "x", True),
        episode(1, "x", False, seed=1),
        episode(1, "x", False, world="v"),
    ]
    assert metrics.cumulative_success(records) == [1 / 2, 1 / 3]
    assert metrics.forgetting_rate(records) == [0, 0]


def test_transfer_counts_held_out_tasks_and_nothing_else_does() -> None:
    held_out = [
        episode(0, "h", False, split="held_out"),
        episode(2, "h", True, split="held_out"),
        episode(2, "i", False, split="held_out"),
        episode(2, "j", None, split="held_out"),
    ]
    assert metrics.transfer(RECORDS + held_out) == 1 / 2
    assert metrics.success_per_epoch(RECORDS + held_out) == metrics.success_per_epoch(RECORDS)
    assert metrics.cumulative_success(RECORDS + held_out) == metrics.cumulative_success(RECORDS)
    assert math.isnan(metrics.transfer(RECORDS))


def test_success_along_cuts_a_single_pass_by_the_order_of_its_steps() -> None:
    won = [True, False, False, None, True]
    records = [episode(0, str(step), won[step], step=step) for step in (4, 3, 2, 1, 0)]
    # Parts: steps 0 to 2 and 3 to 4; step 3 has no answer.
    assert metrics.success_along(records, parts=2) == [1 / 3, 1]
    assert metrics.success_along(records[:3]) == pytest.approx([0, math.nan, 1], nan_ok=True)
    both = [*records, episode(0, "0", True, seed=1), episode(0, "1", True, seed=1, step=1)]
    assert metrics.success_along(both, parts=2) == [2 / 4, 1]
    assert metrics.success_along([]) == []


def test_regret_adds_up_what_the_oracle_solved_more() -> None:
    arm = [episode(0, "x", False), episode(0, "y", True), episode(1, "x", True)]
    oracle = [episode(0, "x", True), episode(0, "y", True), episode(1, "x", False)]
    assert metrics.regret(arm, oracle) == [0.5, -0.5]
    assert metrics.regret(oracle, oracle) == [0, 0]


def test_running_success_leaves_out_what_has_no_answer() -> None:
    assert metrics.running_success(RECORDS, "a", window=2) == [0, 0.5, 0.5, 0.5, 0.5, 0, 0, 0]


def test_arms_can_be_picked_or_taken_apart() -> None:
    other = episode(0, "x", True, arm="b")
    assert metrics.arms([*RECORDS, other]) == ["a", "b"]
    assert metrics.success_per_epoch([*RECORDS, other], "b") == [1]
    assert metrics.by_arm([*RECORDS, other]) == {"a": RECORDS, "b": [other]}
    assert metrics.by_run([*RECORDS, other]) == {
        RunKey("w", "a", 0): RECORDS,
        RunKey("w", "b", 0): [other],
    }


def test_q_correlation_is_pearson_of_mean_q_and_success() -> None:
    # Mean Q 0, 1, 2, 3; success 0, 0, 1, 1: r = 2 / sqrt(5).
    records = [
        shown((-0.5, 0.5), False), shown((1.0,), False), shown((1.0, 3.0), True),
        shown((3.0,), True),
        shown((9.0,), None), shown((), False),
    ]  # fmt: skip
    assert q_metrics.q_correlation(records) == pytest.approx(2 / math.sqrt(5))


@pytest.mark.parametrize(
    "records",
    [
        [],
        [shown((0.5,), True)],
        [shown((0.5,), True), shown((0.5,), False)],
        [shown((0.1,), True), shown((0.5,), True)],
    ],
    ids=["nothing", "one", "Q never changes", "success never changes"],
)
def test_q_correlation_is_unknown_where_nothing_varies(records: list[EpisodeRecord]) -> None:
    assert math.isnan(q_metrics.q_correlation(records))


def test_success_by_q_sorts_episodes_by_the_mean_q_they_were_shown() -> None:
    records = [
        shown((-1.0,), False), shown((-0.2, 0.2), True), shown((0.0,), False),
        shown((0.9, 1.0), True), shown((1.7,), True), shown((), True), shown((0.0,), None),
    ]  # fmt: skip
    bins = q_metrics.success_by_q(records, edges=(-1, 0, 1))
    assert bins == [(-1, 0, 1, 0), (0, 1, 4, 3)]
    assert [one.success for one in bins] == [0, 3 / 4]
    assert len(q_metrics.success_by_q(records)) == 10


def test_an_edge_belongs_to_the_bin_above_it_whatever_floats_do() -> None:
    counts = q_metrics.q_counts([0.2, 0.1 + 0.2 - 0.1, 0.6, 3 * 0.2])
    assert counts.tolist() == [0, 0, 0, 0, 0, 0, 2, 0, 2, 0]


def test_the_bank_tells_sizes_failures_and_what_was_never_updated() -> None:
    edges = (-1, 0, 0.9, 1)
    assert q_metrics.q_histogram(BANK, edges) == [1, 2, 2]
    assert q_metrics.failure_share_by_q(BANK, edges) == [1, 1 / 2, 1 / 2]
    assert math.isnan(q_metrics.failure_share_by_q(BANK, (-1, 0, 0.2, 0.5, 1))[2])
    assert q_metrics.never_updated(BANK) == 2 / 5


def test_an_empty_bank_has_no_share_of_anything() -> None:
    empty = BankRecord("w", "a", 0, 0, (), (), (), ())
    assert math.isnan(q_metrics.never_updated(empty))
    assert sum(q_metrics.q_histogram(empty)) == 0


def test_cost_counts_unanswered_episodes_too() -> None:
    records = [
        episode(0, "x", True, prompt_tokens=90, completion_tokens=10, calls=2, seconds=1.0),
        episode(0, "y", None, prompt_tokens=20, completion_tokens=0, calls=1, seconds=3.0),
    ]
    assert metrics.tokens_per_episode(records) == 60
    assert metrics.calls_per_episode(records) == 1.5
    assert metrics.latency(records) == (2.0, pytest.approx(2.9))
    assert math.isnan(metrics.latency([]).median)


def test_a_reduced_run_holds_what_the_metrics_say() -> None:
    run = reduce_run(RunKey("w", "a", 0), RECORDS, [BANK])
    assert run.success == tuple(metrics.success_per_epoch(RECORDS))
    assert run.cumulative == tuple(metrics.cumulative_success(RECORDS))
    assert run.lost[1:] == tuple(metrics.lost_rate(RECORDS)[1:])
    assert run.sizes == (3, 3, 3)
    assert run.failures == (("z", ""),)
    assert run.forgetting == tuple(metrics.forgetting_rate(RECORDS))
    assert (run.episodes, run.unanswered, run.mean_success) == (9, 1, 0.25)
    assert run.banks[0].by_q == tuple(q_metrics.q_histogram(BANK))
    assert run.banks[0].failures_by_q == (1, 0, 0, 0, 0, 1, 0, 0, 0, 1)
    assert (run.banks[0].size, run.banks[0].never_updated) == (5, 0.4)


def test_regret_is_against_the_oracle_of_the_same_world_and_seed() -> None:
    def run(arm: str, seed: int, success: bool) -> object:
        record = episode(0, "x", success, arm=arm, seed=seed)
        return reduce_run(RunKey("w", arm, seed), [record])

    runs = with_regret([run("a", 0, False), run("oracle", 0, True), run("a", 1, False)])
    assert [one.regret for one in runs] == [(1.0,), (0.0,), ()]


def test_a_metric_takes_any_iterable(tmp_path: Path) -> None:
    assert metrics.success_per_epoch(iter(RECORDS)) == metrics.success_per_epoch(RECORDS)
