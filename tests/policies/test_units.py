"""The default policy knows no units."""

from typing import Any

import numpy as np
import pytest

import polyarm as pa
from polyarm.types import Array


def arms_played(scale: float, columns: Array | float, first: tuple[float, ...]) -> list[int]:
    """Arms of a short run whose first rewards are given and whose others are noise."""
    policy = pa.make_policy("nonparametric", 3, 2)
    state, rng, world = policy.init(), np.random.default_rng(3), np.random.default_rng(4)
    played = []
    for t in range(60):
        x = world.standard_normal(2)
        rewards = world.standard_normal(3) + np.array([0.0, x[0], x[1]])
        played.append(policy.choose(state, x * columns, rng).arm)
        reward = first[t] if t < len(first) else float(rewards[played[-1]])
        state = policy.update(state, x * columns, played[-1], scale * reward, rng)
    return played


@pytest.mark.parametrize("first", [(), (0.0, 0.0, 12.0), (0.0,) * 20, (5.0, 5.0, 5.0), (0.0, 5.0, 0.0, 5.0, 0.0)])
def test_powers_of_two_change_no_choice_however_a_run_begins(first: tuple[float, ...]) -> None:
    usual = arms_played(1.0, 1.0, first)
    for scale, columns in ((2.0**-7, 1.0), (2.0**20, np.array([2.0**-9, 2.0**12])), (0.5, 2.0)):
        assert arms_played(scale, columns, first) == usual


def test_0_and_1_are_known_from_the_first_reward_and_in_other_units_soon_after() -> None:
    """They are a code rather than amounts: such runs begin otherwise in other units, and learn the same."""
    found = []
    for scale in (1.0, 2.0**-7, 2.0**20):
        policy: Any = pa.make_policy("nonparametric", 3, 2)
        state, rng, world = policy.init(), np.random.default_rng(3), np.random.default_rng(4)
        for t in range(600):
            x = world.standard_normal(2)
            click = float(world.random() < 1 / (1 + np.exp(1 - x[0] * (t % 3))))
            state = policy.update(state, x, t % 3, scale * click, rng)
            assert len(state.values) == 1 or (scale != 1.0 and t < 2)
        found.append(policy.engine.moments(state, np.array([0.5, -0.5])) / scale)
    np.testing.assert_allclose(found[1:], [found[0]] * 2, atol=0.01)
