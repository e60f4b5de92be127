"""The runbooks suite on a model that copies perfectly: what is left is the memory alone."""

from collections import Counter
from typing import Any

import pytest

from langchain_memrl.evals.analysis import metrics
from langchain_memrl.evals.arms import ARMS
from langchain_memrl.evals.loop import records as run_all
from langchain_memrl.evals.records import EpisodeRecord
from langchain_memrl.evals.settings import RunSettings
from langchain_memrl.evals.suites.runbooks import QUEUES, SUITE, TOPICS, make_runbooks, score


def copier(prompt: Any) -> str:
    """Says what the last answer in its prompt says, and nothing without one."""
    answers = [message.text for message in prompt if message.type == "ai"]
    return answers[-1] if answers else "no idea"


def run() -> list[EpisodeRecord]:
    arms = tuple(ARMS[name] for name in ("none", "rag", "memrl", "oracle"))
    found = run_all(SUITE, RunSettings(arms, seeds=1, first_seed=1), copier)
    return [record for record in found if isinstance(record, EpisodeRecord)]


@pytest.fixture(scope="module")
def records() -> list[EpisodeRecord]:
    return run()


def test_a_world_has_three_notes_a_topic_of_which_one_holds() -> None:
    world = make_runbooks(3)
    assert len(world.notes) == 24
    assert Counter(note.title for note in world.notes if note.holds) == Counter(list(TOPICS))
    assert len({note.queue for note in world.notes}) == 24
    right = {note.queue for note in world.notes if note.holds}
    assert {ticket.queue for ticket in world.tickets} == right
    assert len(world.tickets) == len({ticket.text for ticket in world.tickets}) == 32


def test_a_world_is_drawn_by_its_seed() -> None:
    assert make_runbooks(3) == make_runbooks(3)
    assert make_runbooks(3) != make_runbooks(4)


def test_fewer_tickets_are_spread_over_the_topics() -> None:
    assert {ticket.id.split("-")[0] for ticket in make_runbooks(0, 8).tickets} == set("01234567")


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Cedar", True),
        ("cedar.", True),
        ("The queue is Cedar", True),
        ("Cedar or Maple", False),
        ("Cedarwood", False),
        ("", False),
        ("I do not know\nCedar", False),
    ],
)
def test_an_answer_is_right_if_its_first_line_names_that_queue_only(
    answer: str, right: bool
) -> None:
    assert "Cedar" in QUEUES
    assert score(answer, "Cedar") is right


def test_without_notes_nothing_is_solved_and_the_oracle_solves_all(
    records: list[EpisodeRecord],
) -> None:
    assert metrics.success_per_epoch(records, "none") == [0, 0, 0]
    assert metrics.success_per_epoch(records, "oracle") == [1, 1, 1]


def test_similarity_alone_stays_near_the_share_of_good_notes(records: list[EpisodeRecord]) -> None:
    assert all(
        share == pytest.approx(1 / 3, abs=0.13)
        for share in metrics.success_per_epoch(records, "rag")
    )


def test_q_finds_the_right_notes_within_the_first_epoch(records: list[EpisodeRecord]) -> None:
    first, second, third = metrics.success_per_epoch(records, "memrl")
    assert first > 0.6
    assert second == third == 1


def test_every_arm_meets_the_same_tickets_in_the_same_order(records: list[EpisodeRecord]) -> None:
    orders = {
        arm: [(record.epoch, record.task) for record in records if record.arm == arm]
        for arm in metrics.arms(records)
    }
    assert list(orders) == ["none", "rag", "memrl", "oracle"]
    assert len({tuple(order) for order in orders.values()}) == 1


def test_each_ticket_shows_one_note(records: list[EpisodeRecord]) -> None:
    shown = Counter((record.arm, len(record.shown)) for record in records)
    assert shown == {("none", 0): 96, ("rag", 1): 96, ("memrl", 1): 96, ("oracle", 1): 96}


def test_the_same_seed_gives_the_same_records(records: list[EpisodeRecord]) -> None:
    for one, two in zip(records, run(), strict=True):
        assert (one.arm, one.task, one.answer, one.q_values) == (
            two.arm,
            two.task,
            two.answer,
            two.q_values,
        )
