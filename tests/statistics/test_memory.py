"""Bounded memory freezes old rewards in place; forgetting fades them."""

from collections import Counter

import numpy as np
import pytest

from polyarm.inference import Budget, GibbsEngine
from polyarm.inference.gibbs import GibbsState
from polyarm.kernels.mixture.component import COUNT, MEAN, MOVES, SCALE, rebuild
from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.policies import ThompsonSampling
from polyarm.types import AnyPolicy, Array, Rng
from tests.reference import canonical
from tests.statistics.exact import Partition, excess_tv, posterior, small_problem


def stream_of(n: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.normal(size=n)])
    return x, np.where(rng.random(n) < 0.6, 2.0, -1.0) * x[:, 1] + 0.3 * rng.normal(size=n)


def fed(engine: GibbsEngine, x: Array, y: Array, rng: Rng) -> GibbsState:
    state = engine.init()
    for xi, yi in zip(x, y, strict=True):
        state = engine.update(state, xi, 0, yi, rng)
    return state


def rebuilt(engine: GibbsEngine, state: GibbsState) -> Array:
    """Every component from what it has absorbed and from the rewards that can move."""
    n_components, n = state.sizes[0, :2]
    table: Array = state.tables[0].copy()
    for k in range(n_components):
        label = int(state.labels[0, 0, k])
        column, sqrt_information = engine._prior.columns[0], state.roots[0, label]
        rebuild(table, k, column, sqrt_information, state.data[0], state.seats[0][:n], label, -1)
    return table


def test_enough_memory_changes_nothing() -> None:
    x, y = stream_of(60)
    arms = [small_problem(2)[2]]
    a = fed(GibbsEngine(arms), x, y, np.random.default_rng(1))
    b = fed(GibbsEngine(arms, memory=60), x, y, np.random.default_rng(1))
    assert np.array_equal(a.tables[0][:, : a.sizes[0, 0]], b.tables[0][:, : b.sizes[0, 0]])


def test_the_state_stops_growing_and_keeps_every_reward() -> None:
    x, y = stream_of(3000)
    engine = GibbsEngine([small_problem(2)[2]], Budget(16, split_merge=1), memory=50)
    state = fed(engine, x, y, np.random.default_rng(2))
    k = state.sizes[0, 0]
    assert state.seats[0].shape == (50,)
    assert state.data[0].shape[0] == 50
    assert state.tables[0, COUNT, :k].sum() == 3000
    fresh = rebuilt(engine, state)
    used = [r for r in range(len(fresh)) if r != MOVES]
    assert np.allclose(state.tables[0][used, :k], fresh[used, :k], rtol=1e-7, atol=1e-9)
    latest = np.roll(state.data[0], -state.sizes[0, 2], axis=0)
    assert np.array_equal(latest[:, 2], y[-50:])


def frozen_and_moving(memory: int, n_moves: int) -> tuple[Counter[Partition], dict[Partition, float]]:
    """Visits of a chain whose first rewards are frozen, and the posterior given their seats."""
    x, y, model = small_problem(6, seed=3, slope=2.0)
    engine, rng = GibbsEngine([model], Budget(5), memory=memory), np.random.default_rng(4)
    state, frozen = engine.init(), []
    for t, (xi, yi) in enumerate(zip(x, y, strict=True)):
        if t >= memory:
            frozen.append(int(state.seats[0][t % memory]))
        state = engine.update(state, xi, 0, yi, rng)
    seen: Counter[Partition] = Counter()
    for _ in range(20_000):
        state = engine.random_moves(state, 0, n_moves, rng)
        moving = np.roll(state.seats[0][: state.sizes[0, 1]], -state.sizes[0, 2])
        seen[canonical([*frozen, *moving])] += 1
    exact = {z: p for z, p in posterior(x, y, model).items() if z[: len(frozen)] == canonical(frozen)}
    total = sum(exact.values())
    return seen, {z: p / total for z, p in exact.items()}


def test_what_can_move_follows_the_posterior_given_what_is_frozen() -> None:
    seen, exact = frozen_and_moving(memory=3, n_moves=9)
    assert set(seen) <= set(exact)
    assert excess_tv(exact, seen) < 1.35
    wrong = {z: 1 / len(exact) for z in exact}  # planted: the data ignored
    assert excess_tv(wrong, seen) > 5


def test_fading_is_weighted_regression() -> None:
    x, y = stream_of(64)
    base = NormalInverseGamma(2, [0.5, 0.0], [[2.0, 0.5], [0.5, 1.0]], 2.0, 0.5)
    engine = GibbsEngine([LinearMixture(base, 1e-9)], Budget(4), half_life=32.0)
    state = fed(engine, x, y, np.random.default_rng(3))
    age = (64 - np.arange(64) - 1) // 4 + 1  # fades that each reward has seen: one every four steps
    w = 0.5 ** (age * 4 / 32.0)
    precision = np.linalg.inv(base.covariance_matrix)
    total = precision + (x * w[:, None]).T @ x
    mean = np.linalg.solve(total, precision @ base.mean_vector + (x * w[:, None]).T @ y)
    gap = mean - base.mean_vector
    scale = base.scale + 0.5 * (w @ (y - x @ mean) ** 2 + gap @ precision @ gap)
    assert state.sizes[0, 0] == 1
    assert state.tables[0, COUNT, 0] == pytest.approx(w.sum(), rel=1e-10)
    assert np.allclose(state.tables[0, MEAN : MEAN + 2, 0], mean, rtol=1e-9)
    assert state.tables[0, SCALE, 0] == pytest.approx(scale, rel=1e-9)


def test_an_arm_left_alone_returns_to_its_prior() -> None:
    model = small_problem(2)[2]
    engine, rng = GibbsEngine([model, model], half_life=20.0), np.random.default_rng(5)
    x, y = stream_of(300)
    state = engine.update(engine.init(), x[0], 0, 50.0, rng)
    for xi, yi in zip(x, y, strict=True):
        state = engine.update(state, xi, 1, yi, rng)
    assert engine.n_components(state)[0] == 0
    assert engine.expected_means(state, x[0])[0] == pytest.approx(x[0] @ model.base.mean_vector)
    assert state.seats[1].shape[0] <= 16


def dynamic_regret(policy: AnyPolicy, horizon: int, seed: int) -> float:
    """Regret against the arm that is best now; the arms swap places every 400 steps."""
    rng = np.random.default_rng(seed)
    state, regret = policy.init(), 0.0
    for t in range(horizon):
        x = np.array([1.0, rng.normal()])
        means = np.roll([1.0, 0.0, -1.0], t // 400) + 0.2 * x[1]
        arm = policy.choose(state, x, rng).arm
        regret += means.max() - means[arm]
        state = policy.update(state, x, arm, means[arm] + 0.5 * rng.normal(), rng)
    return regret


def test_forgetting_at_least_halves_the_regret_of_a_drifting_problem() -> None:
    arms = [LinearMixture(NormalInverseGamma(2), 0.1)] * 3
    none, some = (
        np.mean(
            [dynamic_regret(ThompsonSampling(GibbsEngine(arms, Budget(16), half_life=h)), 2400, s) for s in range(3)]
        )
        for h in (None, 60.0)
    )
    assert some < 0.5 * none
