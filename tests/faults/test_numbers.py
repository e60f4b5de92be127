"""No number from outside spoils a bank: rewards, vectors, the clock; with and without asserts."""

import itertools
import math
import os
import random
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from fakes import FakeEmbeddings

from langchain_memrl import EpisodicMemory
from langchain_memrl.errors import RewardError
from langchain_memrl.store.embedded.local import LocalStore

HERE = Path(__file__).parent
SIMILARITY = {"q_weight": 0, "score_threshold": None}

USABLE = (1, -1, 0, 0.5, -0.0, 1e-300, 5e-324, np.float32(0.25), np.int8(1), Decimal("0.1"))
UNUSABLE = (
    *(math.nan, math.inf, -math.inf, 1.0000001, -2, 1e308, 10**400, Decimal("NaN"), np.nan),
    *(True, False, "1", "NaN", b"1", [1], (), {}, 1j, object()),
)


def test_no_sequence_of_rewards_leaves_q_unbounded_or_a_batch_half_done(bank, much):
    rng = random.Random(13)
    ids = [bank.remember(f"task {n}", "lesson").id for n in range(5)]
    expected, updates = dict.fromkeys(ids, 0.0), Counter()
    for sequence in range(much(1500, 100_000)):
        rewards = [
            rng.choice(UNUSABLE if rng.random() < 0.05 else USABLE)
            for _ in range(rng.randrange(1, 5))
        ]
        entries = [
            {"episode_id": f"{sequence} {n}", "reward": reward, "ids": rng.sample(ids, 2)}
            for n, reward in enumerate(rewards)
        ]
        if any(reward is bad for reward in rewards for bad in UNUSABLE):
            with pytest.raises(RewardError):
                bank.reinforce_many(entries)
        else:
            bank.reinforce_many(entries)
            for entry in entries:
                for id in entry["ids"]:
                    expected[id] += 0.3 * (float(entry["reward"]) - expected[id])
                    updates[id] += 1
        if sequence % 100 == 0:
            for one in bank.list():
                assert one.q_value == pytest.approx(expected[one.id], abs=1e-12)
                assert -1 <= one.q_value <= 1
                assert one.updates == updates[one.id]
    assert {one.id: one.updates for one in bank.list()} == updates


def test_the_length_of_a_vector_is_forgotten_and_its_direction_kept_over_reopening(open_bank):
    first = np.eye(16)[0]
    vectors = {"short": first * 0.1, "one": first, "long": first * 100}
    vectors |= {"orthogonal": np.eye(16)[1], "opposite": -first, "huge": first * 1e300}
    vectors |= {"tiny": first * 1e-300, "subnormal": first * 5e-324}
    embeddings = FakeEmbeddings(vectors=vectors)
    expected = dict.fromkeys(vectors, 1.0) | {"orthogonal": 0.0, "opposite": -1.0}
    memory = open_bank(embeddings=embeddings)
    for name in vectors:
        memory.remember(name, "lesson")
    for _ in range(2):
        found = memory.recall("one", k=9, **SIMILARITY).memories
        assert {hit.memory.intent: hit.similarity for hit in found} == expected
        memory.close()
        memory = open_bank(embeddings=embeddings)


@pytest.mark.parametrize("optimised", [[], ["-O"]], ids=["asserts", "no asserts"])
def test_what_is_unusable_is_refused_with_and_without_asserts(optimised):
    """What checks something must not be an `assert` statement, of ours or of FAISS."""
    run = subprocess.run(
        [sys.executable, *optimised, HERE / "refusals.py"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert (run.stdout, run.stderr) == (f"asserts {not optimised}\nall refused\n", "")


@pytest.fixture
def time_zone(monkeypatch):
    """Changes the time zone of this process."""

    def change(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield change
    monkeypatch.undo()
    time.tzset()


def test_a_clock_that_jumps_about_reorders_no_history_and_loses_nothing(
    folder, embeddings, time_zone
):
    rng, now = random.Random(8), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    zones = ("Europe/Berlin", "America/St_Johns", "UTC", "Pacific/Kiritimati")
    jumps = (timedelta(hours=-1), timedelta(days=3650), timedelta(days=-3650), timedelta(0))
    told = []

    def clock():
        told.append(now + rng.choice(jumps))
        return told[-1]

    memory = EpisodicMemory(LocalStore(folder, now=clock), embeddings)
    made = []
    for number in range(40):
        time_zone(zones[number % 4])
        made.append(memory.remember(f"task {number}", "lesson").id)
        memory.reinforce(f"e {number}", reward=1, ids=[made[0]])
    assert [one.id for one in reversed(memory.list())] == made
    assert {one.created_at for one in memory.list()} <= set(told)
    steps = memory.history(made[0])
    assert [step.episode_id for step in steps] == [f"e {number}" for number in range(40)]
    assert all(one.before == other.after for other, one in itertools.pairwise(steps))
    assert memory.get(made[0]).q_value == pytest.approx(1 - 0.7**40, abs=1e-12)
    assert memory.verify().ok
    memory.close()
