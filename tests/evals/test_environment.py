"""One's own suite: found, checked, and told what is wrong with it."""

import sys
from dataclasses import replace

import colours as small
import pytest

from langchain_memrl.errors import InputError
from langchain_memrl.evals.contract import check_suite
from langchain_memrl.evals.environment import Environment, Suite, Task, Trial
from langchain_memrl.evals.suites import find_suites, load_suite


def test_suites_are_found_by_listing_the_folder():
    assert {"worlds", "runbooks"} <= set(find_suites())
    assert all(load_suite(name).name == name for name in find_suites())


@pytest.mark.parametrize("name", [name for name in find_suites() if name == "worlds"])
def test_a_simulated_suite_keeps_the_contract(name):
    check_suite(load_suite(name))


def asks_without_data(name):
    suite = load_suite(name)
    return suite.asks_model and not suite.needs_data


@pytest.mark.parametrize("name", [*filter(asks_without_data, find_suites())])
def test_a_suite_that_asks_a_model_keeps_the_contract(name):
    check_suite(load_suite(name), model=lambda prompt: "no idea")


def test_one_s_own_suite_keeps_the_contract_and_is_found_by_its_module():
    check_suite(small.SLOW)
    assert load_suite("colours:SLOW") is small.SLOW


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("moon", "no suite 'moon'; known are"),
        ("no_such_module:SUITE", "cannot be imported"),
        ("colours:NOTHING", "there is no NOTHING in .*colours.py"),
        ("colours:Colours", "is a class; expected a Suite: write SUITE = Suite"),
        ("colours:COLOURS", "expected a Suite"),
    ],
)
def test_what_is_no_suite_is_said(name, said):
    with pytest.raises(InputError, match=said):
        load_suite(name)


class Bad(Environment):
    def __init__(self, tasks, trial=None, recall=None):
        self.tasks = tasks
        self._trial = trial or Trial(success=True)
        self.recall = recall or {}

    def act(self, situation):
        return self._trial


ONE = [Task("a", "do a")]


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (lambda: Bad([]), "no tasks"),
        (lambda: Bad([Task("a", "x"), Task("a", "y")]), "same id"),
        (lambda: Bad([Task("a", "x"), Task("b", "x")]), "same text"),
        (lambda: Bad([Task("a", " ")]), "blank"),
        (lambda: Bad(ONE, recall={"k": 0}), "k is 0"),
        (lambda: Bad(ONE, recall={"top": 1}), "recall is refused"),
        (lambda: Bad(ONE, Trial(success=True, reward=7.0)), "reward is 7"),
        (lambda: Bad(ONE, Trial(success=1)), "expected a bool"),
        (lambda: Bad(ONE, Trial(success=True, trajectory="x", metadata={"a": set()})), "metadata"),
    ],
)
def test_what_a_suite_does_not_keep_is_one_sentence(environment, said):
    with pytest.raises(InputError, match=said):
        check_suite(Suite("bad", lambda setup: environment()))


def test_a_seed_that_gives_other_tasks_each_time_is_noticed():
    count = iter(range(100))
    suite = Suite("bad", lambda setup: Bad([Task("a", f"do {next(count)}")]))
    with pytest.raises(InputError, match="the same seed gave other tasks"):
        check_suite(suite)


def test_an_environment_that_fails_is_noticed():
    suite = replace(small.SLOW, make=lambda setup: Bad(ONE, trial=Bad))
    with pytest.raises(InputError, match="expected a Trial"):
        check_suite(suite)
    assert "colours" in sys.modules
