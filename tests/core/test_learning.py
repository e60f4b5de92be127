import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_memrl.core.learning import q_step

numbers = st.floats(-1, 1)
step_sizes = st.floats(0, 1)


def test_one_step_by_hand():
    # .2 + .3 * (1 - .2) = .44; .2 + .3 * (-1 - .2) = -.16; -.5 + .3 * 1.5 = -.05
    assert q_step([0.2], 1.0, 0.3)[0] == pytest.approx(0.44)
    assert q_step([0.2], -1.0, 0.3)[0] == pytest.approx(-0.16)
    np.testing.assert_allclose(q_step([0.2, -0.5], 1.0, 0.3), [0.44, -0.05])


def test_step_size_zero_changes_nothing_and_one_forgets_the_past():
    assert q_step([0.25, -0.5], 1.0, 0.0).tolist() == [0.25, -0.5]
    assert q_step([0.25, -0.5], 1.0, 1.0).tolist() == [1.0, 1.0]


def test_the_input_is_not_changed():
    q = np.array([0.5])
    q_step(q, 1.0, 0.3)
    assert q.tolist() == [0.5]


def test_the_order_of_rewards_matters():
    # From 0 at .3: +1 then -1: .3, then .3 - .39 = -.09. The other way round: +.09.
    assert q_step(q_step(0.0, 1, 0.3), -1, 0.3) == pytest.approx(-0.09)
    assert q_step(q_step(0.0, -1, 0.3), 1, 0.3) == pytest.approx(0.09)


@given(numbers, numbers, step_sizes, st.integers(0, 60))
def test_a_constant_reward_follows_the_closed_form(q_start, reward, step_size, count):
    q = np.array([q_start])
    for _ in range(count):
        q = q_step(q, reward, step_size)
    closed = reward + (1 - step_size) ** count * (q_start - reward)
    assert q[0] == pytest.approx(closed, abs=1e-12)


@given(numbers, numbers, step_sizes)
def test_q_never_leaves_the_span_of_q_and_reward(q_start, reward, step_size):
    q = float(q_step(q_start, reward, step_size))
    slack = 1e-15
    assert min(q_start, reward) - slack <= q <= max(q_start, reward) + slack


@given(st.lists(numbers, max_size=30), step_sizes)
def test_q_stays_inside_the_reward_range_for_any_rewards(rewards, step_size):
    q = np.array(0.0)
    for reward in rewards:
        q = q_step(q, reward, step_size)
        assert -1 <= q <= 1


@pytest.mark.parametrize(("step_size", "spread"), [(0.3, 1.0), (0.1, 0.5)])
def test_the_variance_of_q_tends_to_the_closed_form(step_size, spread):
    # a / (2 - a) * s^2: .3 / 1.7 = .1765, and .1 / 1.9 * .25 = .0132
    rng = np.random.default_rng(7)
    q = np.zeros(20_000)
    for _ in range(80):
        rewards = rng.choice([-spread, spread], size=q.size)
        q = q + step_size * (rewards - q)
        stepped = q_step(q[:1], rewards[0], step_size)
        assert np.isfinite(stepped).all()
    assert q.var() == pytest.approx(step_size / (2 - step_size) * spread**2, rel=0.04)
