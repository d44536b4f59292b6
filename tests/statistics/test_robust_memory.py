"""The robust engine with bounded memory, which freezes old rewards in place, and with forgetting, which fades them."""

from collections import Counter

import numpy as np
import pytest

from polyarm.environments.drift import Drift
from polyarm.errors import InvalidArgument
from polyarm.inference import RobustEngine, RobustState
from polyarm.kernels._jit import plain
from polyarm.kernels.robust.common_centre import common_of
from polyarm.kernels.robust.component import COUNT, MEAN, SYY, kept_row, sxx_row, sxy_row
from polyarm.kernels.robust.records import arms_of
from polyarm.models import RobustMixture
from polyarm.policies import make_policy
from polyarm.types import Array
from tests import reference
from tests.statistics.test_robust import distance, exact_answer, small_problem

D = 3  # features: two columns and the intercept


def rewards(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Contexts of two columns and rewards of two lines with outliers."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 2))
    y = np.where(rng.random(n) < 0.5, 3 + x[:, 0], -2 - x[:, 1]) + 0.3 * rng.standard_normal(n)
    return x, y + 20 * rng.standard_normal(n) * (rng.random(n) < 0.1)


def fed(engine: RobustEngine, x: Array, y: Array, seed: int = 1) -> RobustState:
    state, rng = engine.init(), np.random.default_rng(seed)
    for t, (xi, yi) in enumerate(zip(x, y, strict=True)):
        state = engine.update(state, xi, t % engine.n_arms, float(yi), rng)
    return state


def test_enough_memory_changes_nothing() -> None:
    x, y = rewards(120)
    a, b = (fed(RobustEngine(RobustMixture(2, 2), memory=memory), x, y) for memory in (None, 60))
    for with_room, bounded in zip(a[:7], b[:7], strict=True):
        assert np.array_equal(with_room, bounded)


def test_bounded_memory_keeps_every_reward_in_the_sums_and_the_state_small() -> None:
    x, y = rewards(3000)
    engine = RobustEngine(RobustMixture(2, 2), 8, 4, memory=50)
    state = fed(engine, x, y)
    origin = y[0]
    for arm in range(2):
        assert state.data[arm].shape == (50, D + 1)
        assert state.seats[arm].shape == (50,)
        K = state.sizes[arm, 0]
        T = state.tables[arm][:, :K]
        mine, F = y[arm::2] - origin, np.column_stack([x[arm::2], np.ones(1500)])
        assert T[COUNT].sum() == 1500
        assert T[kept_row(D)].sum() == 1450
        assert T[SYY].sum() == pytest.approx(mine @ mine, rel=1e-9)
        np.testing.assert_allclose(T[sxy_row(D) : sxy_row(D) + D].sum(axis=1), F.T @ mine, rtol=1e-9)
        lower = T[sxx_row(D) : sxx_row(D) + D * (D + 1) // 2].sum(axis=1)
        np.testing.assert_allclose(lower, (F.T @ F)[np.tril_indices(D)], rtol=1e-9, atol=1e-9)
        latest = np.roll(state.data[arm], -state.sizes[arm, 2], axis=0)
        assert np.array_equal(latest[:, D], mine[-50:])
        moving = np.bincount(engine.assignments(state, arm), minlength=K)
        np.testing.assert_array_equal(T[COUNT] - T[kept_row(D)], moving)


def test_what_can_move_follows_the_posterior_given_what_is_frozen() -> None:
    model, X, y = small_problem()
    engine, rng = RobustEngine(model.model, 12, 0, fixed_units=True, memory=2), np.random.default_rng(4)
    state, frozen = engine.init(), []
    for t, (x, reward) in enumerate(zip(X, y, strict=True)):
        if t >= 2:
            frozen.append(int(state.seats[0][t % 2]))
        state = engine.update(state, x, 0, float(reward), rng)
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(8000):
        state = engine.refresh(state, rng)
        moving = np.roll(state.seats[0][:2], -state.sizes[0, 2])
        seen[reference.canonical([*frozen, *moving])] += 1
    exact = {z: p for z, p in exact_answer().items() if z[:2] == reference.canonical(frozen)}
    total = sum(exact.values())
    shares = {z: count / 8000 for z, count in seen.items()}
    assert distance(shares, {z: p / total for z, p in exact.items()}) < 0.02
    assert distance(shares, {z: 1 / len(exact) for z in exact}) > 0.1  # planted: the data ignored


def test_fading_is_weighted_regression() -> None:
    x, y = rewards(64)
    model = RobustMixture(1, 2, concentration=1e-12, learned=False)
    state = fed(RobustEngine(model, 4, 0, fixed_units=True, half_life=32.0), x, y)
    age = (64 - np.arange(64) - 1) // 4 + 1  # fades that each reward has seen: one every four steps
    w = 0.5 ** (age * 4 / 32.0)
    F = np.column_stack([x, np.ones(64)])
    T = state.tables[0][:, 0]
    assert state.sizes[0, 0] == 1
    assert T[COUNT] == pytest.approx(w.sum(), rel=1e-10)
    np.testing.assert_allclose(T[sxy_row(D) : sxy_row(D) + D], F.T @ (w * y), rtol=1e-9)
    lower = T[sxx_row(D) : sxx_row(D) + D * (D + 1) // 2]
    np.testing.assert_allclose(lower, ((F.T * w) @ F)[np.tril_indices(D)], rtol=1e-9, atol=1e-12)
    assert T[SYY] == pytest.approx(w @ y**2, rel=1e-9)


def test_an_arm_left_alone_returns_to_its_prior() -> None:
    x, y = rewards(300)
    engine, rng = RobustEngine(RobustMixture(2, 2), half_life=20.0), np.random.default_rng(5)
    state = engine.update(engine.init(), x[0], 0, 50.0, rng)
    for xi, yi in zip(x, y, strict=True):
        state = engine.update(state, xi, 1, float(yi), rng)
    assert engine.n_components(state)[0] == 0
    common = common_of(plain(arms_of)(engine._books(state)))
    centre = (state.features.centre + common.shift) @ np.append(x[0], 1.0) + state.shared.origin
    assert engine.expected_means(state, x[0])[0] == pytest.approx(centre)
    assert state.seats[1].shape[0] <= 16
    assert np.isfinite(state.tables[:, : MEAN + D]).all()


def dynamic_regret(half_life: float | None, seed: int) -> float:
    """Regret of the default policy against the arm that is best now, in the scenario `drift`."""
    world = Drift(abrupt=True).sample(2500, np.random.default_rng(seed))
    policy, rng = make_policy("nonparametric", 4, 2, half_life=half_life), np.random.default_rng(seed)
    state, regret = policy.init(), 0.0
    for x, paid, means in zip(world.contexts, world.rewards, world.means, strict=True):
        arm = policy.choose(state, x, rng).arm
        regret += means.max() - means[arm]
        state = policy.update(state, x, arm, float(paid[arm]), rng)
    return regret


def test_forgetting_at_least_halves_the_regret_of_a_drifting_problem() -> None:
    none, some = (np.mean([dynamic_regret(h, seed) for seed in range(4)]) for h in (None, 60.0))
    assert some < 0.5 * none


@pytest.mark.parametrize(("option", "value"), [("memory", 0), ("memory", 1.5), ("half_life", 0.0), ("half_life", -1)])
def test_bad_settings_are_named(option: str, value: float) -> None:
    with pytest.raises(InvalidArgument, match=option):
        make_policy("nonparametric", 2, 2, **{option: value})
