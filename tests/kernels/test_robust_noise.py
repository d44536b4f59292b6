"""The noise of an arm beside that of a typical one, and what the exploration rule makes of it."""

from typing import Any

import numpy as np
import pytest

from polyarm.inference import KindsEngine, RobustEngine, RobustState
from polyarm.kernels._jit import plain
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.robust.component import COUNT, VAR
from polyarm.kernels.robust.noise import ALIKE, DOUBT, MOST, relative_noise, weighted_median
from polyarm.models import RobustMixture
from polyarm.policies.information import InformationDirected
from polyarm.types import Array


def learnt(noise_sd: Array, n: int, seed: int = 0, scale: float = 1.0) -> tuple[RobustEngine, RobustState]:
    """State after n rewards of every arm whose noise has that standard deviation."""
    rng, data = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    engine = RobustEngine(RobustMixture(len(noise_sd), 1), 8, 4)
    state = engine.init()
    for i in range(n * len(noise_sd)):
        arm, x = i % len(noise_sd), data.standard_normal(1)
        reward = float(x[0] + noise_sd[arm] * data.standard_normal())
        state = engine.update(state, x, arm, scale * reward, rng)
    return engine, state


def test_the_median_is_where_half_of_the_weight_is() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 8):
        values, weights = rng.random(n + 3), rng.integers(0, 6, n + 3).astype(float)
        weights[0] += 1.0
        repeated = np.repeat(values[:n], weights[:n].astype(int))
        wanted = np.sort(repeated)[(len(repeated) + 1) // 2 - 1]  # the lower one of two in the middle
        assert plain(weighted_median)(values, weights, n) == wanted


def test_noise_is_that_of_the_typical_component_beside_the_typical_arm() -> None:
    engine, state = learnt(np.array([0.1, 1.0, 1.5, 20.0]), 30)
    s2, trust = np.empty(4), np.empty(4)
    for arm in range(4):
        K = state.sizes[arm, K_USED]
        counts, var = state.tables[arm, COUNT, :K], state.tables[arm, VAR, :K]
        s2[arm] = np.sort(np.repeat(var, counts.astype(int)))[(30 + 1) // 2 - 1]
        trust[arm] = 28 / (28 + DOUBT)
    ratio = s2 / np.sort(s2)[1]
    near = np.where(ratio > ALIKE, ratio / ALIKE, np.where(ratio < 1 / ALIKE, ratio * ALIKE, 1.0))
    wanted = near**trust
    found = engine.outlook(state, np.zeros(1))[1]
    np.testing.assert_array_equal(engine.outlook_many(state, np.zeros((3, 1)))[1], found)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    slow = np.empty(4)
    plain(relative_noise)(state.tables, state.sizes, 2, slow)
    np.testing.assert_allclose(found, slow, rtol=1e-12)
    assert found[0] < 1 < found[3]


def test_nothing_is_said_of_arms_with_no_more_rewards_than_features() -> None:
    engine, state = learnt(np.array([0.1, 20.0]), 2)
    np.testing.assert_array_equal(engine.outlook(state, np.zeros(1))[1], 1.0)
    np.testing.assert_array_equal(engine.outlook(engine.init(), np.zeros(1))[1], 1.0)


@pytest.mark.parametrize("scale", [2.0**20, 2.0**-20])
def test_units_do_not_matter(scale: float) -> None:
    sd = np.array([0.3, 2.0, 9.0])
    (one, a), (two, b) = learnt(sd, 12), learnt(sd, 12, scale=scale)
    np.testing.assert_array_equal(one.outlook(a, np.zeros(1))[1], two.outlook(b, np.zeros(1))[1])


def test_a_few_outliers_make_no_arm_noisy() -> None:
    rng = np.random.default_rng(3)
    engine = RobustEngine(RobustMixture(2, 1), 8, 4)
    state = engine.init()
    for i in range(120):
        wild = 1e4 if i % 2 and i % 15 == 0 else 1.0
        state = engine.update(state, rng.standard_normal(1), i % 2, float(wild * rng.standard_normal()), rng)
    np.testing.assert_array_equal(engine.outlook(state, np.zeros(1))[1], 1.0)


def test_where_there_are_kinds_or_counts_all_arms_are_typical() -> None:
    rng, engine = np.random.default_rng(4), KindsEngine(RobustEngine(RobustMixture(2, 1), 8, 4))
    clicks, counts = rng.integers(2, size=60), rng.poisson(9.0, size=60)
    for rewards in (clicks, counts):
        state = engine.init()
        for i in range(60):
            state = engine.update(state, rng.standard_normal(1), i % 2, float(rewards[i]), rng)
        np.testing.assert_array_equal(engine.outlook(state, np.zeros(1))[1], 1.0)


class Fixed:
    """An engine whose moments and noise are given."""

    n_arms, context_dim = 3, 1

    def __init__(self, noise: Array | None) -> None:
        if noise is not None:
            self.outlook = lambda state, context: (self.moments(state, context), noise)
            self.outlook_many = lambda state, contexts: (self.moments_many(state, contexts), noise)

    def moments(self, state: Any, context: Array) -> Array:
        return np.array([[0.3, 0.0, 0.1], [0.1, 0.5, 0.6]])

    def moments_many(self, state: Any, contexts: Array) -> Array:
        return np.stack([self.moments(state, x) for x in contexts])


def test_the_rule_asks_the_engine_and_takes_arms_for_alike_where_it_does_not_know() -> None:
    x, rng = np.zeros(1), np.random.default_rng
    shares = {}
    for name, noise in {"none": None, "equal": np.ones(3), "noisy": np.array([1.0, 1.0, 1e6])}.items():
        policy: Any = InformationDirected(Fixed(noise), n_draws=400, n_rounds=20)  # type: ignore[arg-type]
        shares[name] = policy.probabilities(0, x, rng(0))
        many = policy.probabilities_many(0, np.zeros((2, 1)), rng(0))
        np.testing.assert_allclose(many[0], shares[name])
        np.testing.assert_allclose(policy.judge(0, x, rng(0))[0], shares[name])
        choice = policy.choose(0, x, rng(1))
        assert choice.probabilities[choice.arm] > 0
        only = policy.choose(0, x, rng(1), np.array([True, False, True]))
        assert only.probabilities[1] == 0
    np.testing.assert_array_equal(shares["none"], shares["equal"])
    assert shares["equal"][2] > 0.2
    assert shares["noisy"][2] < 0.01


@pytest.mark.parametrize(
    ("ratio", "near"), [(1.0, 1.0), (0.9 * ALIKE, 1.0), (1.1 * ALIKE, 1.1), (100.0, 100 / ALIKE), (1e30, MOST / ALIKE)]
)
def test_noise_within_a_factor_counts_as_alike_and_beyond_it_by_so_much_less(ratio: float, near: float) -> None:
    """Three arms of 30 rewards, a line of two features: one as noisy as the typical one, one more and one less."""
    tables, sizes = np.zeros((3, VAR + 1, 2)), np.zeros((3, 3), np.int64)
    tables[:, COUNT, 0], tables[:, VAR, 0] = 30.0, [5.0, 5.0 * ratio, 5.0 / ratio]
    sizes[:, K_USED] = 1
    found = np.empty(3)
    plain(relative_noise)(tables, sizes, 2, found)
    np.testing.assert_allclose(found, np.array([1.0, near, 1 / near]) ** (28 / (28 + DOUBT)), rtol=1e-9)
