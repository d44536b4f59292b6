"""The default policy knows no units."""

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


@pytest.mark.parametrize("first", [(), (0.0, 0.0, 12.0), (0.0,) * 20, (5.0, 5.0, 5.0), (0.0, 1.0, 0.0, 1.0, 0.0)])
def test_powers_of_two_change_no_choice_however_a_run_begins(first: tuple[float, ...]) -> None:
    usual = arms_played(1.0, 1.0, first)
    for scale, columns in ((2.0**-7, 1.0), (2.0**20, np.array([2.0**-9, 2.0**12])), (0.5, 2.0)):
        assert arms_played(scale, columns, first) == usual
