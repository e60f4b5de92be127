"""Times, goals, and the plan of a run, with hand-worked numbers."""

from langchain_memrl.bench.plan import LARGE, Step, duration, plan, rounds_for, seconds
from langchain_memrl.bench.report import as_json, as_table
from langchain_memrl.bench.rows import Goal, Row
from langchain_memrl.bench.timing import Times, in_turns, sum_of, summary


def row(ours, floor=None, goal=None, **more):
    beside = None if floor is None else Times(floor, floor, floor, 1)
    return Row("x", 1, 1, Times(ours, 10 * ours, 20 * ours, 1), "floor", beside, goal, **more)


def verdict(one):
    return str([*as_table([one]).columns[-1].cells][-1])


def test_a_goal_is_a_factor_and_something_on_top():
    assert row(2.7, 2.0, Goal(1.25, 0.2)).is_met
    assert not row(2.71, 2.0, Goal(1.25, 0.2)).is_met
    assert row(3.0, 2.0, None).is_met is None
    assert row(3.0, 2.0, None).ratio == 1.5


def test_a_goal_without_a_floor_is_a_limit():
    assert row(100, goal=Goal(0, 100)).is_met
    assert not row(101, goal=Goal(0, 100)).is_met
    assert verdict(row(101, goal=Goal(0, 100))) == "MISSED 100"


def test_a_goal_below_one_is_a_speedup():
    assert row(4.0, 1000.0, Goal(1 / 250)).is_met
    assert not row(4.1, 1000.0, Goal(1 / 250)).is_met
    assert verdict(row(4.0, 1000.0, Goal(1 / 250))) == "met 1/250x"


def test_a_row_is_about_its_median_or_its_99th_percentile_or_its_worst():
    limit = Goal(0, 15)
    kinds = ("median", "p99", "largest")
    assert [row(1, goal=limit, of=kind).value for kind in kinds] == [1, 10, 20]
    assert [row(1, goal=limit, of=kind).is_met for kind in kinds] == [True, True, False]


def test_a_wrong_answer_meets_no_goal():
    wrong = row(1, goal=Goal(0, 15), error="lost one")
    assert wrong.is_met is False
    assert as_json([wrong])[0]["error"] == "lost one"


def test_calls_take_turns_and_warm_ups_do_not_count():
    order = []
    calls = {name: lambda n, name=name: order.append((name, n)) for name in "ab"}
    times = in_turns(calls, 2)
    assert order == [(name, n) for n in range(5) for name in "ab"]
    assert [times[name].calls for name in "ab"] == [2, 2]


def test_the_median_the_99th_percentile_and_the_worst():
    found = summary([float(n) for n in range(1, 201)])
    assert found == Times(100.5, 199.0, 200.0, 200)
    assert sum_of(found, Times(1.0, 2.0, 3.0, 5)) == Times(101.5, 201.0, 203.0, 5)


def test_a_plan_starts_small_and_times_large_banks_less_often():
    steps = plan([10_000, 1_000], [384, 1536], rounds=None, peers=True, large=True)
    assert [(step.size, step.dimension) for step in steps] == [
        *((1_000, 384), (1_000, 1536), (10_000, 384), (10_000, 1536)),
        (LARGE, 384),
    ]
    assert [step.peers for step in steps] == [True] * 4 + [False]
    rounds = [rounds_for(size) for size in (10, 1_000, 10_000, 100_000, LARGE, 5 * LARGE)]
    assert rounds == sorted(rounds, reverse=True)
    assert plan([10], [8], rounds=7, peers=False, large=False) == [Step(10, 8, 7, False)]


def test_the_expected_time_grows_with_the_bank_and_is_said_in_words():
    small, large = (seconds(Step(size, 384, 20, False)) for size in (1_000, 100_000))
    assert 0 < small < large
    assert [duration(s) for s in (2, 48, 89, 100, 600)] == [
        *("5 seconds", "50 seconds", "90 seconds"),
        *("2 minutes", "10 minutes"),
    ]
