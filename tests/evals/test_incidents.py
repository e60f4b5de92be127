"""The incidents suite on a model that copies perfectly: two steps, both have to be right."""

from collections import Counter

import pytest

from langchain_memrl.evals.analysis import metrics
from langchain_memrl.evals.arms import ARMS
from langchain_memrl.evals.environment import Setup
from langchain_memrl.evals.loop import records
from langchain_memrl.evals.records import EpisodeRecord
from langchain_memrl.evals.settings import RunSettings
from langchain_memrl.evals.suites.incidents import SUITE, Incidents, score


def copier(prompt):
    answers = [message.text for message in prompt if message.type == "ai"]
    return answers[-1] if answers else "no idea"


def run(arms, epochs):
    chosen = RunSettings(tuple(ARMS[name] for name in arms), seeds=1, first_seed=2, epochs=epochs)
    return [r for r in records(SUITE, chosen, copier) if isinstance(r, EpisodeRecord)]


def test_a_seed_draws_six_notes_per_part_of_which_two_hold():
    one = Incidents(Setup(seed=3))
    assert list(one.notes) == list(Incidents(Setup(seed=3)).notes)
    assert list(one.notes) != list(Incidents(Setup(seed=4)).notes)
    assert Counter(note["metadata"]["holds"] for note in one.notes) == {True: 16, False: 32}
    assert len(one.tasks) == 24


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Command: fleet cycle falcon", True),
        ("fleet cycle falcon.", True),
        ("fleet bounce falcon", False),
        ("fleet cycle puffin", False),
        ("fleet cycle falcon or fleet bounce falcon", False),
        ("", False),
    ],
)
def test_an_answer_is_right_if_its_first_line_holds_that_command_only(answer, right):
    assert score(answer, "fleet cycle falcon") is right


def test_two_right_notes_solve_a_task_and_none_solves_nothing():
    found = run(["none", "oracle"], epochs=1)
    assert metrics.success_per_epoch(found, "oracle") == [1.0]
    assert metrics.success_per_epoch(found, "none") == [0.0]
    assert {record.calls for record in found} == {2}


def test_q_finds_both_notes_more_often_than_similarity():
    found = run(["rag", "memrl"], epochs=5)
    last = {arm: metrics.success_per_epoch(found, arm)[-1] for arm in ("rag", "memrl")}
    assert last["memrl"] > last["rag"]
