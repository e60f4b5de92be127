"""Simulated worlds: the truth is known, the same numbers are drawn in every arm."""

from dataclasses import replace

import numpy as np
import pytest
from test_arms import scored

from langchain_memrl.errors import InputError
from langchain_memrl.evals.analysis import metrics
from langchain_memrl.evals.arms import ARMS
from langchain_memrl.evals.environment import Setup, Situation
from langchain_memrl.evals.loop import records
from langchain_memrl.evals.records import EpisodeRecord
from langchain_memrl.evals.settings import RunSettings, choose_worlds
from langchain_memrl.evals.simulation import CEILING, SHARED, Simulation, World
from langchain_memrl.evals.suites import load_suite
from langchain_memrl.evals.suites.worlds import GRID, STRESS


def simulation(world=None, name="w", seed=0, **changes):
    return Simulation(replace(world or World(), **changes), Setup(name, seed))


def situation(env, place=0, memories=(), **options):
    return Situation(env.tasks[place], tuple(memories), **options)


def memory(env, text, place):
    found = scored("m", intent=env.tasks[place].text)
    return replace(found, memory=replace(found.memory, lesson=text))


def means(arms, seeds=1, epochs=3, tasks=36, **world):
    names = arms.split(",")
    chosen = RunSettings(
        tuple(ARMS[name] for name in names), seeds=seeds, epochs=epochs, batch=18, tasks=tasks
    )
    suite = replace(load_suite("worlds"), make=lambda setup: Simulation(World(**world), setup))
    found = [r for r in records(suite, chosen) if isinstance(r, EpisodeRecord)]
    return {arm: np.mean(metrics.success_per_epoch(found, arm)) for arm in names}


def test_the_chance_follows_the_formula():
    env = simulation(base=0.3, help=0.5, harm=0.2, distraction=0.1, look_alikes=2)
    right = env.right_way(situation(env))
    helps, alike, other = memory(env, right, 12), memory(env, "wrong", 1), memory(env, "wrong", 5)
    assert env.chance(situation(env)) == pytest.approx(0.3)
    assert env.chance(situation(env, 0, [helps])) == pytest.approx(0.3 + 0.65 * 0.5)
    assert env.chance(situation(env, 0, [helps] * 2)) == pytest.approx(0.3 + 0.65 * 0.75)
    assert env.chance(situation(env, 0, [alike])) == pytest.approx(0.3 * 0.8)
    assert env.chance(situation(env, 0, [other])) == pytest.approx(0.3 * 0.9)
    mixed = env.chance(situation(env, 0, [helps, alike, other]))
    assert mixed == pytest.approx((0.3 + 0.65 * 0.5) * 0.8 * 0.9)
    assert env.chance(situation(env, 0, [helps] * 50)) == pytest.approx(CEILING)


def test_success_is_a_pure_function_of_world_task_epoch_memories_and_seed():
    one, two, other = simulation(), simulation(), simulation(seed=1)
    outcomes = [
        [env.act(situation(env, place, epoch=epoch)) for place in range(60) for epoch in range(3)]
        for env in (one, two, other)
    ]
    assert outcomes[0] == outcomes[1] != outcomes[2]


def test_a_better_memory_never_turns_success_into_failure():
    """Common random numbers: one draw per task and epoch decides in every arm."""
    env = simulation(base=0.4)
    for place in range(60):
        right = memory(env, env.right_way(situation(env, place)), place)
        wrong = memory(env, "wrong", place)
        ordered = [[wrong] * 3, [wrong], [], [right], [right] * 3]
        solved = [env.act(situation(env, place, shown)).success for shown in ordered]
        assert solved == sorted(solved)


def test_arms_without_memory_and_arms_that_recall_nothing_succeed_alike():
    chosen = RunSettings(
        (ARMS["none"], ARMS["rag"]), worlds=("alike-standard",), seeds=1, epochs=1, batch=60
    )
    found = [r for r in records(load_suite("worlds"), chosen) if isinstance(r, EpisodeRecord)]
    alone = {r.task: r.success for r in found if r.arm == "none"}
    assert alone == {r.task: r.success for r in found if r.arm == "rag"}


def test_similarity_tells_skills_apart_as_far_as_the_world_says():
    for tells in (0.0, 0.5, 1.0):
        env = simulation(similarity_tells=tells, look_alikes=2)
        vectors = np.array(env.embeddings().embed_documents([task.text for task in env.tasks]))
        cosine = vectors @ vectors.T
        skill = np.arange(60) % 12
        same = skill[:, None] == skill[None, :]
        group = (skill // 3)[:, None] == (skill // 3)[None, :]
        np.fill_diagonal(same, False)
        assert cosine[same].mean() == pytest.approx(SHARED, abs=0.08)
        alike = group & ~(skill[:, None] == skill[None, :])
        assert cosine[alike].mean() == pytest.approx(SHARED * (1 - tells), abs=0.08)
        assert cosine[~group].mean() == pytest.approx(0, abs=0.08)


def test_rewards_are_told_the_wrong_way_round_as_often_as_the_world_says():
    for noise in (0.0, 0.1, 0.25):
        env = simulation(reward_noise=noise)
        trials = [env.act(situation(env, p, epoch=e)) for p in range(60) for e in range(20)]
        flipped = [(trial.told > 0) != trial.success for trial in trials]
        assert np.mean(flipped) == pytest.approx(noise, abs=0.03)


def test_memories_are_right_as_often_as_the_world_says():
    env = simulation(useless_successes=0.2, useful_failures=0.4, base=0.5)
    told = {True: [], False: []}
    for place in range(60):
        for epoch in range(20):
            trial = env.act(situation(env, place, epoch=epoch))
            told[trial.success].append(trial.lesson.startswith("right"))
    assert np.mean(told[True]) == pytest.approx(0.8, abs=0.04)
    assert np.mean(told[False]) == pytest.approx(0.4, abs=0.05)


def test_ways_change_at_each_fifth_where_the_world_drifts():
    steady, churn = simulation(drift=0.0), simulation(drift=1.0)
    times = [0.0, 0.19, 0.2, 0.5, 1.0]
    assert len({steady.right_way(situation(steady, progress=time)) for time in times}) == 1
    versions = [churn.right_way(situation(churn, progress=time)) for time in times]
    assert versions == [f"right way 0.{change};" for change in (0, 0, 1, 2, 4)]


def test_one_note_of_each_skill_is_right():
    env = simulation(notes=3)
    assert len(env.notes) == 36
    assert sum(note["lesson"].startswith("right") for note in env.notes) == 12


def test_the_standard_grid_has_at_least_24_worlds_beside_the_stress_worlds():
    assert len(GRID) >= 24
    assert len(STRESS) >= 5
    assert not GRID.keys() & STRESS.keys()
    varied = {
        name
        for world in GRID.values()
        for name in World.__dataclass_fields__
        if getattr(world, name) != getattr(World(), name)
    }
    assert varied >= {
        *("similarity_tells", "base", "harm", "distraction", "useless_successes"),
        *("useful_failures", "drift", "reward_noise", "look_alikes", "notes"),
    }
    assert {world.reward_noise for world in GRID.values()} == {0, 0.1, 0.25}


def test_worlds_are_chosen_by_patterns():
    suite = load_suite("worlds")
    assert choose_worlds(None, suite) == tuple(GRID)
    assert choose_worlds("all", suite) == (*GRID, *STRESS)
    assert choose_worlds("*-noise25, stress-coin", suite) == (
        "clear-noise25",
        "alike-noise25",
        "stress-coin",
    )
    with pytest.raises(InputError, match="no world is called 'mars'"):
        choose_worlds("mars", suite)


def test_the_oracle_is_ahead_of_every_arm_in_a_world_without_noise():
    found = means(",".join(ARMS), epochs=2, similarity_tells=0.5)
    assert max(found, key=found.get) == "oracle"


def test_where_stale_notes_read_like_right_ones_q_finds_the_right_one():
    found = means("rag,memrl,placebo", tasks=60, look_alikes=0, notes=3, writes=False, k=1)
    assert found["memrl"] > found["rag"] + 0.05
    assert found["memrl"] > found["placebo"] + 0.05


def test_without_a_single_right_memory_no_arm_is_ahead_of_no_memory():
    found = means("none,rag,memrl", useless_successes=1.0, useful_failures=0.0)
    assert found["none"] > max(found["rag"], found["memrl"])
