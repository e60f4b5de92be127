"""Held-out episodes prove what memories are worth; `explain` tells why they were chosen."""

import logging
import math
import random

import pytest

from langchain_memrl import EpisodicMemory, MemRLRetriever, create_memrl_graph
from langchain_memrl.core.lifting import Arm, lift_of
from langchain_memrl.errors import ConfigError
from langchain_memrl.offline import HashingEmbeddings

ROUTER = "reset a router"


@pytest.fixture
def bank():
    """A bank with two notes for one task, and a recall that always finds them."""
    with EpisodicMemory.open(":memory:", embeddings=HashingEmbeddings(16), seed=0) as memory:
        for text in ("hold the button", "pull the plug"):
            memory.remember(ROUTER, text)
        yield memory


def ask(memory, episode_id, **options):
    return memory.recall(ROUTER, episode_id=episode_id, score_threshold=None, **options)


def live(memory, episodes, success, *, seed=0, start=0, holdout=0.2, **options):
    """A simulated world: `success` gives the chance of success, with memories and without."""
    rng = random.Random(seed)
    for number in range(start, start + episodes):
        found = ask(memory, f"{seed}-{number}", holdout=holdout, **options)
        won = rng.random() < success[bool(found.memories)]
        memory.reinforce(f"{seed}-{number}", reward=1.0 if won else -1.0)


# --- holding out --------------------------------------------------------------------------------


def test_a_held_out_episode_shows_nothing_and_says_so(bank):
    recall = ask(bank, "e", holdout=1.0)
    assert recall.memories == ()
    assert recall.withheld == "held_out"
    assert len(recall.candidates) == 2
    assert bank.episode("e").memory_ids == ()
    assert all(one.selections == 0 for one in bank.list())
    assert bank.reinforce("e", reward=1.0).credits == ()
    assert all(one.updates == 0 for one in bank.list())


def test_an_episode_is_always_on_the_same_side(bank):
    sides = {n: ask(bank, f"e{n}", holdout=0.5, record=False).withheld for n in range(60)}
    assert {"", "held_out"} == set(sides.values())
    for n, side in sides.items():
        assert ask(bank, f"e{n}", holdout=0.5, record=False).withheld == side
        assert ask(bank, f"e{n}", holdout=0.5).withheld == side
        assert ask(bank, f"e{n}", holdout=0.5).withheld == side  # as recorded


def test_the_share_is_what_was_asked_for_and_sides_look_alike(bank):
    held = sum(ask(bank, f"e{n}", holdout=0.1, record=False).withheld != "" for n in range(1000))
    assert 70 < held < 130


def test_who_knows_the_ids_cannot_foresee_the_side():
    sides = []
    for _ in range(2):
        with EpisodicMemory.open(":memory:", embeddings=HashingEmbeddings(16)) as memory:
            memory.remember(ROUTER, "hold")
            sides.append([ask(memory, f"e{n}", holdout=0.5).withheld for n in range(64)])
    assert sides[0] != sides[1]


def test_without_an_episode_or_without_candidates_nothing_is_held_out(bank):
    assert ask(bank, None, holdout=1.0).withheld == ""
    assert len(ask(bank, None, holdout=1.0).memories) == 2
    empty = bank.recall("x", episode_id="e", holdout=1.0, namespace="empty")
    assert empty.withheld == ""


@pytest.mark.parametrize("value", [-0.1, 1.1, "x", True])
def test_an_unusable_share_is_refused(bank, value):
    with pytest.raises(ConfigError, match="holdout"):
        ask(bank, "e", holdout=value)


def test_the_retriever_checks_its_share_when_it_is_made(bank):
    with pytest.raises(ValueError, match="holdout is 1"):
        MemRLRetriever(memory=bank, holdout=1.5)


def test_the_retriever_and_the_graph_hold_out_too(bank):
    options = {"memory": bank, "holdout": 1.0, "score_threshold": None}
    retriever = MemRLRetriever(**options)
    config = {"metadata": {"memrl_episode_id": "job"}}
    assert retriever.invoke(ROUTER, config) == []
    seen = []

    def agent(messages):
        seen.append(len(messages))
        return "done"

    graph = create_memrl_graph(agent, retriever, evaluator=lambda state: True)
    result = graph.invoke({"messages": [("user", ROUTER)]})
    assert seen == [1]
    assert bank.episode(result["episode_id"]).reward == 1.0
    assert bank.lift().episodes_without == 1
    assert len(bank.list()) == 3  # what it did is learned all the same


def test_held_out_episodes_move_with_an_export(bank, tmp_path):
    live(bank, 40, (0.2, 0.8))
    bank.export_jsonl(tmp_path / "dump.jsonl")
    with EpisodicMemory.import_jsonl(tmp_path / "dump.jsonl", ":memory:") as copy:
        assert copy.lift(memories=True) == bank.lift(memories=True)


# --- lift ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("success", "verdict"),
    [((0.3, 0.8), "helps"), ((0.5, 0.5), "unknown"), ((0.8, 0.3), "harms")],
    ids=["helps", "does nothing", "harms"],
)
def test_lift_agrees_with_the_truth_in_three_worlds(bank, success, verdict):
    live(bank, 250, success)
    found = bank.lift()
    assert found.verdict == verdict
    assert found.low <= success[1] - success[0] <= found.high
    assert found.episodes_with + found.episodes_without == 250
    assert found.difference == pytest.approx(found.success_with - found.success_without)


def test_a_world_without_effect_stays_unknown_at_every_look_in_nearly_every_run(bank):
    rng, wrong = random.Random(1), 0
    for _ in range(200):
        counts = {True: [0, 0], False: [0, 0]}
        missed = False
        for number in range(1500):
            side = counts[rng.random() < 0.1]
            side[0] += 1
            side[1] += rng.random() < 0.7
            if number % 25 == 0:
                found = lift_of([(Arm(*counts[False]), Arm(*counts[True]))])
                missed |= found.low > 0 or found.high < 0
        wrong += missed
    assert wrong <= 16  # 5 % of 200, and three standard deviations less one


def test_episodes_that_prove_nothing_do_not_count(bank):
    ask(bank, "no holdout")
    bank.reinforce("no holdout", reward=1.0)
    bank.recall("unlike anything", episode_id="nothing", holdout=0.5, score_threshold=1.0)
    bank.reinforce("nothing", reward=1.0)
    ask(bank, "waits", holdout=1.0)
    found = bank.lift()
    assert found.episodes == 0
    assert math.isnan(found.difference)
    assert found.verdict == "unknown"
    assert (found.waiting_with, found.waiting_without) == (0, 1)


def test_fewer_than_ten_on_a_side_carry_no_interval():
    found = lift_of([(Arm(500, 500), Arm(9, 0))])
    assert found.value == 1.0
    assert math.isnan(found.low)
    assert lift_of([(Arm(500, 500), Arm(10, 0))]).low > 0


def test_a_changed_share_does_not_feign_a_difference():
    # Success rose from .2 to .8 for other reasons while the share went from .5 to .1.
    early, late = (Arm(500, 100), Arm(500, 100)), (Arm(900, 720), Arm(100, 80))
    assert lift_of([early, late]).value == pytest.approx(0.0)
    pooled = (Arm(1400, 820), Arm(600, 180))
    assert lift_of([pooled]).low > 0  # what counting them together would claim


def test_each_memory_has_its_own_lift(bank):
    good, bad = (one.id for one in bank.list()[::-1])
    rng = random.Random(3)
    for number in range(250):
        found = bank.recall(
            ROUTER, k=1, episode_id=f"e{number}", holdout=0.3, epsilon=1.0, score_threshold=None
        )
        chance = {good: 0.9, bad: 0.1}.get(found.ids[0], 0.5) if found.ids else 0.5
        bank.reinforce(f"e{number}", reward=1.0 if rng.random() < chance else -1.0)
    told = {one.memory_id: one for one in bank.lift(memories=True).memories}
    assert told[good].verdict == "helps"
    assert told[bad].verdict == "harms"
    assert bank.lift().memories == ()


def test_namespaces_are_measured_apart(bank):
    other = bank.in_namespace("other")
    other.remember(ROUTER, "hold")
    live(bank, 120, (0.9, 0.1))
    live(other, 120, (0.1, 0.9), seed=1)
    assert (bank.lift().verdict, other.lift().verdict) == ("harms", "helps")


# --- the brake ----------------------------------------------------------------------------------


def test_memories_that_harm_are_shown_no_more_and_it_is_said_once(bank, caplog):
    with caplog.at_level(logging.WARNING, logger="langchain_memrl"):
        live(bank, 250, (0.95, 0.05), stop_when_harmful=True)
        recall = ask(bank, "later", stop_when_harmful=True)
    assert recall.withheld == "harmful"
    assert recall.memories == ()
    assert len(recall.candidates) == 2
    said = [record.message for record in caplog.records if "were found to harm" in record.message]
    assert len(said) == 1
    assert ROUTER not in said[0]
    assert len(ask(bank, "shown").memories) == 2  # without the brake
    stopped = bank.lift()
    live(bank, 50, (0.95, 0.05), seed=9, stop_when_harmful=True)
    assert bank.lift() == stopped  # what is not shown by decision proves nothing


def test_memories_that_help_or_do_nothing_go_on(bank):
    live(bank, 150, (0.5, 0.5), stop_when_harmful=True)
    assert ask(bank, "later", stop_when_harmful=True).withheld == ""


# --- explain ------------------------------------------------------------------------------------


def test_explain_tells_for_every_candidate_why(bank):
    good, bad = (one.id for one in bank.list()[::-1])
    for n in range(3):
        bank.reinforce(f"g{n}", reward=1.0, ids=[good])
    recall = ask(bank, "e", k=1)
    first, second = bank.explain(recall)
    assert (first.id, first.chosen, first.place, first.by_q, first.updates) == (good, True, 1, 1, 3)
    assert (second.id, second.chosen, second.by_q) == (bad, False, 2)
    assert first.by_similarity == second.by_similarity == 1
    assert first.score == pytest.approx(0.5 * first.similarity_part + 0.5 * first.q_part)
    assert str(first).startswith("Chosen, place 1 of 2")
    assert "Q +0.66 after 3 rewards" in str(first)
    assert "no reward yet" in str(second)


def test_explain_knows_what_was_held_out(bank):
    assert str(bank.explain(ask(bank, "e", holdout=1.0))[0]).startswith("Held out by chance")


def test_an_empty_recall_has_nothing_to_explain(bank):
    assert bank.explain(bank.recall("x", namespace="empty")) == []


async def test_awaited_forms_do_the_same(bank):
    recall = await bank.arecall(ROUTER, episode_id="e", holdout=1.0, score_threshold=None)
    await bank.areinforce("e", reward=1.0)
    assert recall.withheld == "held_out"
    assert await bank.alift() == bank.lift()


def test_an_episode_that_was_shown_something_all_the_same_proves_nothing(bank):
    for number in range(40):
        ask(bank, f"e{number}", holdout=0.5)
        bank.recall(f"{ROUTER} now", episode_id=f"e{number}", score_threshold=None)
        bank.reinforce(f"e{number}", reward=1.0)
    found = bank.lift(memories=True)
    assert found.episodes_without == 0
    assert found.verdict == "unknown"
    assert 0 < found.episodes_with < 40
