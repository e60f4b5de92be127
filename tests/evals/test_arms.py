"""Arms are configurations of the product; simple rivals only put its pool into another order."""

from datetime import UTC, datetime
from types import SimpleNamespace

import colours as small
import pytest

from langchain_memrl.config import PRESETS, LearningConfig, RecallConfig
from langchain_memrl.errors import InputError
from langchain_memrl.evals.arms import ARMS, Arm, choose_arms
from langchain_memrl.evals.loop import records
from langchain_memrl.evals.rankings import RANKINGS, Tally
from langchain_memrl.evals.records import EpisodeRecord
from langchain_memrl.evals.running.recalling import Recaller
from langchain_memrl.evals.suites import load_suite
from langchain_memrl.types import Memory, ScoredMemory

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def recall(name):
    return RecallConfig(**ARMS[name].recall)


def test_the_arms_are_configured_as_the_baselines_of_the_paper():
    default, step = RecallConfig(), LearningConfig().step_size
    assert (recall("memrl"), ARMS["memrl"].step_size, ARMS["memrl"].lessons) == (
        default,
        step,
        True,
    )
    assert not ARMS["none"].remembers
    assert not ARMS["pass@k"].remembers
    assert ARMS["pass@k"].sample
    rag = recall("rag")
    assert (rag.q_weight, rag.score_threshold, ARMS["rag"].step_size) == (0, None, 0)
    assert not ARMS["rag"].lessons
    memp = recall("memp")
    assert (memp.q_weight, memp.score_threshold, ARMS["memp"].step_size) == (0, "auto", 0)
    assert ARMS["memp"].lessons
    assert (recall("memrl-rag"), ARMS["memrl-rag"].lessons) == (default, False)
    assert ARMS["memrl-rag"].step_size == step
    plain = recall("memrl-plain")
    assert (plain.normalization, plain.score_threshold, plain.q_weight) == ("none", None, 0.5)
    assert ARMS["reflexion"].ranking == "latest"
    assert (recall("placebo"), ARMS["placebo"].step_size) == (default, step)
    assert [name for name, arm in ARMS.items() if arm.shuffled] == ["placebo"]
    assert [name for name, arm in ARMS.items() if arm.truth] == ["oracle"]


@pytest.mark.parametrize("name", [name for name, arm in ARMS.items() if arm.remembers])
def test_every_arm_takes_the_best_as_they_are_like_the_paper(bank, name):
    bank.remember_many([{"intent": f"t {n}", "lesson": "the same lesson"} for n in range(8)])
    environment = SimpleNamespace(recall={"score_threshold": None}, oracle=lambda situation: None)
    found = []
    recall, many = bank.recall, bank.recall_many
    bank.recall = lambda *a, **kw: found.append(recall(*a, **kw)) or found[-1]
    bank.recall_many = lambda *a, **kw: found.extend(many(*a, **kw)) or found
    recaller = Recaller(bank, ARMS[name], environment, guard=False)
    batch = SimpleNamespace(episode_ids=["e"], frozen=True)
    recaller.recall(batch, [SimpleNamespace(task=SimpleNamespace(text="t 0"))], Tally())
    assert [one.settings["distinct"] for one in found] == [False]


def test_presets_choose_like_the_paper():
    assert not any(preset.distinct for preset in PRESETS.values())


def test_arms_are_chosen_by_name_and_an_unknown_one_lists_the_known():
    worlds = load_suite("worlds")
    assert [arm.name for arm in choose_arms(["memrl", "rag"], worlds, guard=False, batch=4)] == [
        "memrl",
        "rag",
    ]
    assert [arm.name for arm in choose_arms(None, worlds, guard=False, batch=4)] == [*ARMS]
    guarded = {arm.name for arm in choose_arms(None, worlds, guard=True, batch=4)}
    assert {*ARMS} - guarded == {"reflexion"}
    assert "oracle" not in {arm.name for arm in choose_arms(None, small.SLOW, guard=False, batch=4)}
    with pytest.raises(InputError, match=r"unknown arm raq; known are none, .*memrl"):
        choose_arms(["rag", "raq"], worlds, guard=False, batch=4)
    with pytest.raises(InputError, match="twice"):
        choose_arms(["rag", "rag"], worlds, guard=False, batch=4)
    with pytest.raises(InputError, match="knows no truth"):
        choose_arms(["oracle"], small.SLOW, guard=False, batch=4)
    assert "placebo" not in {arm.name for arm in choose_arms(None, worlds, guard=False, batch=1)}
    with pytest.raises(InputError, match="--batch is 1; give at least 2"):
        choose_arms(["memrl", "placebo"], worlds, guard=False, batch=1)
    with pytest.raises(InputError, match="ranking"):
        Arm("x", "", ranking="best")


def scored(name, similarity=0.0, outcome="unknown", intent="t"):
    memory = Memory(
        name, "n", intent, "l", "", outcome, 0, 0, 0, (), (), name, "a", "trusted", NOW, NOW
    )
    return ScoredMemory(memory, similarity, 0.0, similarity, 0.0)


def order(ranking, pool, results=(), intent="t"):
    tally = Tally()
    for name, rewards in dict(results).items():
        for reward in rewards:
            tally.add([name], reward)
    return [one.id for one in RANKINGS[ranking](pool, tally, intent)]


POOL = [scored("a", 2.0), scored("b", 1.0), scored("c", 0.5)]


def test_the_success_rate_has_a_prior():
    # a: (0 + 1) / (1 + 2) = .33; b: no episode, .5; c: (1 + 1) / (1 + 2) = .67
    assert order("success-rate", POOL, {"a": [-1], "c": [1]}) == ["c", "b", "a"]
    # One success of one is .67, three of three are .8.
    assert order("success-rate", POOL, {"a": [1], "b": [1, 1, 1]}) == ["b", "a", "c"]
    assert order("success-rate", POOL) == ["a", "b", "c"]


def test_last_success_looks_at_the_last_result_only():
    assert order("last-success", POOL, {"a": [1, 1, -1], "c": [-1, 1]}) == ["c", "b", "a"]
    fresh = [scored("a", 2, "failure"), scored("b", 1, "success"), scored("c", 0.5, "failure")]
    assert order("last-success", fresh) == ["b", "a", "c"]
    assert order("last-success", fresh, {"b": [-1], "c": [1]}) == ["c", "a", "b"]


def test_the_shrunk_advantage_is_added_to_the_similarity():
    # a: 2 - 1.5 * 3 / 6 = 1.25; b: 1 + 1.5 * 1 / 4 = 1.375; c: .5 + 1.5 * 3 / 6 = 1.25
    assert order("shrunk", POOL, {"a": [-1] * 3, "b": [1], "c": [1] * 3}) == ["b", "a", "c"]


def test_the_latest_attempt_is_the_newest_memory_of_this_very_task():
    pool = [scored("2"), scored("3", intent="other"), scored("1")]
    assert order("latest", pool) == ["2"]
    assert order("latest", pool, intent="never seen") == []


def test_no_reward_and_a_reward_of_zero_are_not_counted():
    assert order("success-rate", POOL, {"a": [None, 0, None], "b": [1]}) == ["b", "a", "c"]


def episodes(arm, **options):
    chosen = small.settings(arm, epochs=3, **options)
    return [r for r in records(small.SLOW, chosen) if isinstance(r, EpisodeRecord)]


def test_reflexion_sees_exactly_its_own_last_attempt():
    for record in episodes("reflexion"):
        assert record.shown == ((f"{record.epoch - 1}-{record.task}",) if record.epoch else ())


def test_arms_without_learning_leave_q_alone_and_memrl_moves_it():
    assert all(q == 0 for record in episodes("rag") for q in record.q_values)
    assert any(q != 0 for record in episodes("memrl") for q in record.q_values)


def test_what_a_rival_shows_is_what_its_bank_recorded(monkeypatch):
    from langchain_memrl import EpisodicMemory

    told = []
    reinforce = EpisodicMemory.reinforce_many

    def watched(self, rewards):
        results = reinforce(self, rewards)
        names = {memory.id: memory.episode_id for memory in self.list(limit=None)}
        told.extend((r.episode_id, {names[c.id] for c in r.credits}) for r in results)
        return results

    monkeypatch.setattr(EpisodicMemory, "reinforce_many", watched)
    shown = [(f"{r.epoch}-{r.task}", set(r.shown)) for r in episodes("shrunk")]
    assert told == shown
    assert any(names for _, names in told)


def test_arms_with_lessons_keep_them_and_the_others_keep_raw_trajectories(monkeypatch):
    seen = {}
    act = small.Colours.act

    def watched(self, situation):
        seen.setdefault(situation.lessons, []).extend(situation.memories)
        return act(self, situation)

    monkeypatch.setattr(small.Colours, "act", watched)
    episodes("memp,rag")
    assert all(one.memory.lesson.startswith("do ") for one in seen[True])
    assert all(one.memory.raw for one in seen[False])
    assert seen[True]
    assert seen[False]
