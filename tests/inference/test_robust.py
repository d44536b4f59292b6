"""The robust engine: bookkeeping, draws against dense algebra, units, growth, and what it refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from polyarm.errors import InvalidArgument
from polyarm.inference import RobustEngine, RobustState, load_state, save_state
from polyarm.inference.door import copied
from polyarm.kernels._jit import plain, rng_handle
from polyarm.kernels.linalg.triangle import WIDE
from polyarm.kernels.robust import predict, update
from polyarm.kernels.robust.component import COUNT, MEAN, SYY, VAR, sxx_row, sxy_row
from polyarm.kernels.robust.records import arms_of
from polyarm.kernels.robust.shared import RATIO_HIGH, RATIO_LOW
from polyarm.kernels.robust.update import ADD, DEEP, DONE, MANY, UNITS, Reward
from polyarm.models import RobustMixture
from polyarm.policies import InformationDirected, OptimisticSampling
from polyarm.types import Array, Rng


def played(
    engine: RobustEngine, n: int, seed: int = 3, scale: float = 1.0, columns: Array | float = 1.0
) -> RobustState:
    """A state after n rewards of a two-part mixture with outliers."""
    rng, noise = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    state = engine.init()
    for t in range(n):
        x = noise.standard_normal(engine.context_dim)
        y = x[0] * (t % engine.n_arms) + (3.0 if noise.random() < 0.4 else -1.0) + noise.standard_normal()
        y += 20 * noise.standard_normal() * (noise.random() < 0.1)
        state = engine.update(state, x * columns, t % engine.n_arms, y * scale, rng)
    return state


def packed(column: Array, first: int, d: int) -> Array:
    """The symmetric matrix whose lower triangle starts at that row of a component."""
    matrix = np.zeros((d, d))
    matrix[np.tril_indices(d)] = column[first : first + d * (d + 1) // 2]
    return matrix + np.tril(matrix, -1).T


def dense_posterior(model: RobustMixture, state: RobustState) -> tuple[Array, Array, list[int]]:
    """Mean and covariance of c and w0, w_1, ..., w_K of every arm given seating, variances and scales, from the
    definition, and where each arm begins; arms without a centre of their own are given c.
    """
    d, at, starts = state.features.unit.shape[0], state.features.unit.shape[0], []
    L, Q = np.diag(1 / state.features.arm_var), np.diag(1 / state.features.part_var)
    size = d * (1 + len(state.sizes) + int(state.sizes[:, 0].sum()))
    information, pull = np.zeros((size, size)), np.zeros(size)
    means, precisions = state.features.mean, state.features.precision
    level = np.ones(d)  # of a column's mean square: how much is its mean's
    level[precisions > 0] = (means**2 / (means**2 + 1 / np.maximum(precisions, 1e-300)))[precisions > 0]
    ratio = state.centre_ratio.item(0) * (1 - level) + model.centre_var * level
    W = ratio * state.shared.reward_square * state.features.unit
    information[:d, :d] = np.diag(1 / W) if model.shared_centre else 1e14 * L
    pull[d - 1] = state.shared.median / W[-1]
    if not model.shared_centre:
        pull[:d] = 1e14 * L @ state.features.centre
    for arm, (K, n, _) in enumerate(state.sizes):
        own = slice(at, at + d)
        starts.append(at)
        information[:d, :d] += L
        information[own, own] = L + K * Q
        information[own, :d] = information[:d, own] = -L
        seats = state.labels[arm, 1][state.seats[arm][:n]]
        X, y = state.data[arm][:n, :d], state.data[arm][:n, d]
        for k in range(K):
            part = slice(at + d * (k + 1), at + d * (k + 2))
            s2 = state.tables[arm, VAR, k]
            information[part, part] = Q + X[seats == k].T @ X[seats == k] / s2
            information[part, own] = information[own, part] = -Q
            pull[part] = X[seats == k].T @ y[seats == k] / s2
        at += d * (K + 1)
    covariance = np.linalg.inv(information)
    return covariance @ pull, covariance, starts


@pytest.mark.parametrize(("n_arms", "dim"), [(1, 1), (3, 2), (2, 5)])
def test_components_equal_a_fresh_computation(n_arms: int, dim: int) -> None:
    engine = RobustEngine(RobustMixture(n_arms, dim))
    state = played(engine, 300)
    d = dim + 1
    for arm in range(n_arms):
        n = state.sizes[arm, 1]
        seats = engine.assignments(state, arm)
        X, y = state.data[arm][:n, :d], state.data[arm][:n, d]
        assert set(seats) == set(range(state.sizes[arm, 0]))
        w0, Q = state.centres[arm, :, d + 1], np.diag(1 / state.features.part_var)
        for k in range(state.sizes[arm, 0]):
            column, here = state.tables[arm, :, k], seats == k
            V = np.linalg.inv(X[here].T @ X[here] / column[VAR] + Q)
            U = V @ (X[here].T @ y[here] / column[VAR] + Q @ w0)
            assert column[COUNT] == here.sum()
            np.testing.assert_allclose(packed(column, sxx_row(d), d), X[here].T @ X[here], atol=1e-9)
            np.testing.assert_allclose(column[sxy_row(d) :][:d], X[here].T @ y[here], atol=1e-8)
            np.testing.assert_allclose(column[SYY], y[here] @ y[here], atol=1e-7)
            np.testing.assert_allclose(packed(column, MEAN + d, d), V, rtol=1e-8, atol=1e-12)
            np.testing.assert_allclose(column[MEAN : MEAN + d], U, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("shared_centre", [True, False])
def test_components_in_a_context_equal_dense_algebra(shared_centre: bool) -> None:
    engine = RobustEngine(RobustMixture(2, 2, shared_centre=shared_centre))
    state = played(engine, 80)
    x = np.array([0.4, -1.2])
    f = np.append(x, 1.0)
    for arm in range(2):
        K = state.sizes[arm, 0]
        out = np.empty((3, K + 1))
        predict.describe_components(engine._books(state), x, arm, out)
        mean, covariance, starts = dense_posterior(engine.model, state)
        for k in range(K):
            part = slice(starts[arm] + 3 * (k + 1), starts[arm] + 3 * (k + 2))
            np.testing.assert_allclose(out[1, k], f @ mean[part], rtol=1e-6)
            np.testing.assert_allclose(out[2, k], f @ covariance[part, part] @ f, rtol=1e-6)
        np.testing.assert_allclose(out[1, K], f @ mean[starts[arm] :][:3], rtol=1e-6)


def shares_at(state: RobustState, arm: int, x: Array) -> Array:
    """Shares of the components and the unseen in a context by definition: contexts of a component are N(m, v)."""
    K, n, d, tau = state.sizes[arm, 0], state.sizes[arm, 1], len(x), state.shared.location_var
    seats, X = state.labels[arm, 1][state.seats[arm][:n]], state.data[arm][:n, :d]
    centre, variance = state.features.mean[:d], 1 / state.features.precision[:d]
    counts = np.array([*np.bincount(seats, minlength=K), state.shared.concentration])
    for k in range(K + 1):
        mine = X[seats == k]
        precision = 1 + tau * len(mine)
        place = (centre + tau * mine.sum(axis=0)) / precision
        counts[k] *= stats.norm.pdf(x, place, np.sqrt(variance * (1 + tau / precision))).prod()
    return np.asarray(counts / counts.sum())


@pytest.mark.parametrize("place_scale", [0.0, 0.03, 2.0])
def test_counts_in_a_context_are_those_of_the_definition(place_scale: float) -> None:
    engine = RobustEngine(RobustMixture(2, 2, place_shape=0.0, place_scale=place_scale))
    state = played(engine, 90)
    for x in (np.array([0.4, -1.2]), np.array([3.0, 2.0]), np.zeros(2)):
        for arm in range(2):
            out = np.empty((3, state.sizes[arm, 0] + 1))
            predict.describe_components(engine._books(state), x, arm, out)
            np.testing.assert_allclose(out[0] / out[0].sum(), shares_at(state, arm, x), rtol=1e-8)
            if place_scale == 0:
                assert out[0].sum() == state.sizes[arm, 1] + state.shared.concentration


def test_the_size_of_the_weights_answers_for_places_that_are_not_known() -> None:
    """The variance of the weights over draws of the rewards' weights and of the places, to first order."""
    engine, rng = RobustEngine(RobustMixture(1, 2, place_shape=0.0, place_scale=0.05)), np.random.default_rng(2)
    state = played(engine, 400)
    x, tau, K = np.array([0.8, -0.5]), 0.05, int(state.sizes[0, 0])
    out = np.empty((3, K + 1))
    predict.describe_components(engine._books(state), x, 0, out)
    seats, X = state.labels[0, 1][state.seats[0][:400]], state.data[0][:400, :2]
    centre, variance = state.features.mean[:2], 1 / state.features.precision[:2]
    weights = rng.dirichlet([*np.bincount(seats, minlength=K), state.shared.concentration], 40_000)
    for k in range(K + 1):
        precision = 1 + tau * (seats == k).sum()
        place = (centre + tau * X[seats == k].sum(axis=0)) / precision
        places = place + np.sqrt(variance * tau / precision) * rng.standard_normal((40_000, 2))
        weights[:, k] *= stats.norm.pdf(x, places, np.sqrt(variance)).prod(axis=1)
    weights /= weights.sum(axis=1, keepdims=True)
    P, size = out[0] / out[0].sum(), out[0].sum()
    assert size < 400
    assert weights.var(axis=0).sum() == pytest.approx((P * (1 - P)).sum() / (size + 1), rel=0.1)


def test_a_context_far_from_all_components_and_a_constant_column_do_no_harm() -> None:
    engine, rng = RobustEngine(RobustMixture(2, 3)), np.random.default_rng(0)
    state = engine.init()
    for t in range(60):
        x = np.array([rng.standard_normal(), 7.0, 1e3 + rng.random()])
        state = engine.update(state, x, t % 2, float(x[0] + rng.standard_normal()), rng)
    assert (state.features.precision > 0).tolist() == [True, False, True, False]
    for x in (np.array([1e5, 7.0, 0.0]), np.array([0.0, -1e5, 1e6])):
        assert np.isfinite(engine.moments(state, x)).all()
        assert np.isfinite(engine.draw_means(state, x, 20, rng)).all()
        assert engine.predictive(state, x, 0).cdf(np.array([1e12]))[0] == pytest.approx(1, abs=1e-3)


def test_equal_rewards_are_no_certainty() -> None:
    engine, rng = RobustEngine(RobustMixture(2, 1)), np.random.default_rng(0)
    state, rewards = engine.init(), rng.lognormal(1, 1, 40)
    for t in range(40):
        state = engine.update(state, rng.random(1), 0, float(rewards[t]), rng)
    assert state.shared.tied_sd == 0
    for _ in range(9):
        state = engine.update(state, rng.random(1), 1, 0.0, rng)
    spread = np.std([*rewards, *np.zeros(9)])
    assert engine.moments(state, np.ones(1))[1, 1] >= 1.39 * spread / 3


def test_draws_of_the_mean_are_those_of_a_brute_force_reference() -> None:
    engine = RobustEngine(RobustMixture(1, 2, concentration=2.0, place_shape=0.0, place_scale=0.3))
    state = played(engine, 12)
    rng = np.random.default_rng(0)
    x, n_draws = np.array([0.4, -1.2]), 80_000
    f, K = np.append(x, 1.0), int(state.sizes[0, 0])
    mean, covariance, (first,) = dense_posterior(engine.model, state)
    joint = rng.multivariate_normal(mean[first:], covariance[first:, first:], n_draws) @ np.kron(
        np.eye(K + 1), f[:, None]
    )
    gamma = state.shared.concentration
    out = np.empty((3, K + 1))
    predict.describe_components(engine._books(state), x, 0, out)
    weights = rng.dirichlet(out[0], n_draws)
    sticks = rng.beta(1, gamma, (n_draws, 60))
    parts = sticks * np.cumprod(np.column_stack([np.ones(n_draws), 1 - sticks[:, :-1]]), axis=1)
    spread = np.sqrt(f**2 @ state.features.part_var)
    tail = joint[:, 0] + spread * (parts * rng.standard_normal(parts.shape)).sum(1)
    brute = (weights[:, :K] * joint[:, 1:]).sum(1) + weights[:, K] * tail + state.shared.origin
    drawn = engine.draw_means(state, x, n_draws, rng)[:, 0]
    moments = engine.moments(state, x)[:, 0]
    se = brute.std() / np.sqrt(n_draws)
    assert abs(brute.mean() - drawn.mean()) < 6 * se
    assert abs(brute.mean() - moments[0]) < 4 * se
    assert brute.std() == pytest.approx(moments[1], rel=0.02)
    assert drawn.std() == pytest.approx(moments[1], rel=0.02)
    grid = np.linspace(0.05, 0.95, 7)
    np.testing.assert_allclose(np.quantile(drawn, grid), np.quantile(brute, grid), atol=0.05 * brute.std())
    assert engine.expected_means(state, x)[0] == moments[0]


def test_an_arm_without_rewards_is_drawn_around_the_common_centre() -> None:
    engine = RobustEngine(RobustMixture(3, 2))
    state, rng = engine.init(), np.random.default_rng(1)
    for _ in range(30):
        state = engine.update(state, rng.random(2), 0, float(rng.normal(5, 1)), rng)
    mean, sd = engine.moments(state, np.array([0.5, 0.5]))
    assert mean[1] == mean[2]
    assert sd[1] == sd[2] > 2 * sd[0]


def test_predictive_and_densities_agree() -> None:
    engine = RobustEngine(RobustMixture(2, 2))
    state, rng = played(engine, 200), np.random.default_rng(2)
    x, grid = np.array([0.3, 0.1]), np.linspace(-8, 10, 41)
    densities = engine.draw_densities(state, x, 1, grid, 4000, rng)
    predictive = engine.predictive(state, x, 1)
    assert predictive.weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(densities.mean(0), predictive.pdf(grid), atol=0.01)


def compiled(kernel: Any) -> Any:
    return kernel


@pytest.mark.parametrize("dim", [1, 3])
def test_compiled_equals_plain(dim: int) -> None:
    model = RobustMixture(2, dim, concentration_prior=(1.0, 1.0), part_shape=(1.0, 1.0), part_scale=(0.3, 0.1))
    engine = RobustEngine(model)
    fast, slow = engine.init(), engine.init()
    a, b = np.random.default_rng(5), np.random.default_rng(5)
    noise = np.random.default_rng(6)
    twins: list[tuple[RobustState, Callable[[Any], Any], Any]] = [(fast, compiled, rng_handle(a)), (slow, plain, b)]
    for t in range(12):
        arm, other = t % 2, 1 - t % 2
        x, y = noise.standard_normal(dim), float(noise.standard_normal() + 4 * (t % 3))
        for state, twin, source in twins:
            here, there = ((state.data[a], state.seats[a]) for a in (arm, other))
            stage, given = UNITS, Reward(arm, other, x, y, *here, *there)
            while stage != DONE:
                stage, _ = twin(update.update)(engine._books(state), given, stage, (6, 3), source)
                assert stage in (DONE, ADD)
                if stage == ADD:
                    engine._move_origin(state)
            if t == 7:
                twin(update.forget)(engine._books(state), 0.8)
    for quick, readable in zip(fast[:7], slow[:7], strict=True):
        np.testing.assert_allclose(quick, readable, rtol=1e-9, atol=1e-12)
    x = np.ones(dim)
    quick, readable = np.empty((5, 2)), np.empty((5, 2))
    predict.draw_means(engine._books(fast), x, quick, rng_handle(a))
    plain(predict.draw_means)(engine._books(fast), x, readable, b)
    np.testing.assert_allclose(quick, readable, rtol=1e-9)


def choices(scale: float, shift: float, columns: Array | float, n: int = 150) -> list[int]:
    """Arms a policy plays when rewards and columns are measured in other units."""
    policy = InformationDirected(RobustEngine(RobustMixture(3, 2), 12, 4), 32)
    state, rng, world = policy.init(), np.random.default_rng(8), np.random.default_rng(9)
    arms = []
    for _ in range(n):
        x, y = world.random(2), world.standard_normal(3)
        arm = policy.choose(state, x * columns, rng).arm
        reward = (y[arm] + (1 + arm) * x.sum() * 0.3) * scale + shift
        state = policy.update(state, x * columns, arm, float(reward), rng)
        arms.append(arm)
    return arms


def test_powers_of_two_leave_every_choice_as_it_is() -> None:
    usual = choices(1.0, 0.0, 1.0)
    assert choices(2.0**-7, 0.0, 1.0) == usual
    assert choices(2.0**-290, 0.0, 1.0) == usual  # squares of variances are beyond all numbers
    assert choices(2.0**20, 0.0, np.array([2.0**-9, 2.0**12])) == usual


def test_a_large_offset_does_not_cost_digits() -> None:
    usual, shifted = choices(1.0, 0.0, 1.0, 30), choices(1.0, 2.0**20, 1.0, 30)
    assert usual == shifted  # rewards are kept as differences from the first, exact here up to 2^-32


@pytest.mark.parametrize("reward", [0.0, 7.0])
def test_constant_rewards_are_learnt(reward: float) -> None:
    engine = RobustEngine(RobustMixture(2, 1))
    state, rng = engine.init(), np.random.default_rng(0)
    for t in range(60):
        state = engine.update(state, np.ones(1), t % 2, reward, rng)
    mean, sd = engine.moments(state, np.ones(1))
    np.testing.assert_allclose(mean, reward, atol=0.5)
    assert np.isfinite(sd).all()


def test_huge_and_tiny_rewards_and_zero_contexts() -> None:
    engine = RobustEngine(RobustMixture(2, 3))
    state, rng = engine.init(), np.random.default_rng(0)
    for t in range(80):
        x = np.array([0.0, 1e6 * rng.random(), 1e-6 * rng.random()])
        state = engine.update(state, x, t % 2, float(rng.standard_normal() * (1e12 if t % 7 == 0 else 1e-3)), rng)
    assert np.isfinite(engine.moments(state, np.zeros(3))).all()
    assert np.isfinite(engine.draw_means(state, x, 50, rng)).all()


def test_components_grow_beyond_the_first_capacity() -> None:
    engine = RobustEngine(RobustMixture(1, 1, concentration=30.0))
    state, rng = engine.init(), np.random.default_rng(0)
    for k in range(120):
        state = engine.update(state, np.ones(1), 0, float(100 * (k % 30) + 0.01 * rng.standard_normal()), rng)
    assert engine.n_components(state)[0] > 16
    assert state.tables.shape[2] > 16


def test_a_constant_context_is_a_bandit_without_context() -> None:
    engine = RobustEngine(RobustMixture(2, 1))
    state, rng = engine.init(), np.random.default_rng(0)
    for t in range(400):
        state = engine.update(state, np.ones(1), t % 2, float(rng.normal(t % 2, 1)), rng)
    mean, sd = engine.moments(state, np.ones(1))
    np.testing.assert_allclose(mean, [0, 1], atol=0.3)
    np.testing.assert_allclose(sd, 1 / np.sqrt(200), rtol=0.35)


@pytest.mark.parametrize(
    ("dim", "n_arms", "n"),
    [(2, 3, 65), (MANY - 2, 3, 65), (MANY - 1, 3, 65), (MANY - 1, 3, 125), (WIDE, 3, 125), (MANY - 1, 20, 70)],
)
def test_every_arm_is_up_to_date_and_arms_of_many_features_take_turns_at_what_they_share(
    dim: int, n_arms: int, n: int
) -> None:
    """From 64 rewards on arms of many features draw scales and the common centre once in a round, at least every eight
    steps, and when units are new (after 128): no arm lags behind."""
    engine, rng = RobustEngine(RobustMixture(n_arms, dim)), np.random.default_rng(4)
    state, changed = played(engine, n - 1), []
    for t in range(11):
        before = state.shared.noise_scale, *state.shared.arm_var, *state.features.centre
        state = engine.update(state, rng.standard_normal(dim), t % 3, rng.standard_normal(), rng)
        changed.append(before != (state.shared.noise_scale, *state.shared.arm_var, *state.features.centre))
        tables, centres = state.tables.copy(), state.centres.copy()
        update.rebuild(engine._books(state))
        used = [arm[:, :K] for arm, K in zip(tables, state.sizes[:, 0], strict=True)]
        for arm, K in enumerate(state.sizes[:, 0]):
            np.testing.assert_allclose(state.tables[arm, :, :K], used[arm], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(np.tril(state.centres[..., : dim + 1]), np.tril(centres[..., : dim + 1]), rtol=1e-6)
    steps = np.arange(n, n + 11)
    deep = steps % max(2, n_arms * (dim + 1) // DEEP) == 0
    turns = deep | (steps % min(n_arms, 8) == 0) | (steps == 128)
    assert changed == ([True] * 11 if dim + 1 < MANY else turns.tolist())
    again = engine.refresh(copied(state), rng)
    assert again.shared.noise_scale != state.shared.noise_scale  # whatever the step


def test_sixty_four_columns() -> None:
    engine = RobustEngine(RobustMixture(1, 64), 4, 0)
    state = played(engine, 60)
    assert np.isfinite(engine.moments(state, np.ones(64))).all()


def test_saved_states_go_on_bit_for_bit(tmp_path: Path) -> None:
    engine = RobustEngine(RobustMixture(2, 2))
    state = played(engine, 50)
    other = load_state(save_state(tmp_path / "s.zip", state), engine.init())
    a, b = np.random.default_rng(4), np.random.default_rng(4)
    for t in range(20):
        state = engine.update(state, np.array([0.1, t / 20]), t % 2, float(t), a)
        other = engine.update(other, np.array([0.1, t / 20]), t % 2, float(t), b)
    np.testing.assert_array_equal(
        engine.draw_means(state, np.ones(2), 5, a), engine.draw_means(other, np.ones(2), 5, b)
    )


@pytest.mark.parametrize(
    ("context", "arm", "reward"),
    [
        ([np.nan, 1.0], 0, 1.0),
        ([1.0], 0, 1.0),
        ([1e9, 1.0], 0, 1.0),
        ([1.0, 1.0], 2, 1.0),
        ([1.0, 1.0], -1, 1.0),
        ([1.0, 1.0], 0, np.inf),
        ([1.0, 1.0], 0, 1e101),
        ([1.0, 1.0], 0, "much"),
    ],
)
def test_bad_input_leaves_the_state_as_it_was(context: list[float], arm: int, reward: float) -> None:
    engine = RobustEngine(RobustMixture(2, 2))
    state = played(engine, 20)
    before = [np.copy(array) for array in (*state[:8], *state.data, *state.seats)]
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidArgument):
        engine.update(state, np.array(context), arm, reward, rng)
    for array, kept in zip((*state[:8], *state.data, *state.seats), before, strict=True):
        np.testing.assert_array_equal(array, kept)
    assert rng.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize(
    "settings",
    [
        {"arm_shape": (0.0, 1.0)},
        {"concentration": 0.0},
        {"part_scale": (0.0, 1.0)},
        {"centre_var": -1.0},
        {"n_arms": 0},
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        RobustMixture(**{"n_arms": 2, "context_dim": 2, **settings})  # type: ignore[arg-type]


def test_optimistic_sampling_plays_rare_arms_when_they_are_due() -> None:
    policy = OptimisticSampling(RobustEngine(RobustMixture(2, 1), 4, 4), floor=5)
    state, rng = policy.init(), np.random.default_rng(0)
    for _ in range(60):
        choice = policy.choose(state, np.ones(1), rng)
        state = policy.update(state, np.ones(1), choice.arm, 1.0 - choice.arm + 0.01 * rng.standard_normal(), rng)
    assert state.pulls.sum() == 60
    assert state.pulls.min() >= 5


def test_a_first_context_near_zero_does_not_spoil_the_scales() -> None:
    engine = RobustEngine(RobustMixture(4, 10))
    rng = np.random.default_rng(0)
    slopes = rng.standard_normal((4, 10)) / 3
    for run in range(10):
        state = engine.init()
        for t in range(60):
            x = rng.standard_normal(10) * (1e-4 if t == 0 else 1.0)
            state = engine.update(state, x, t % 4, float(slopes[t % 4] @ x + 0.01 * rng.standard_normal()), rng)
        assert state.shared.arm_var[0] < 50 * state.shared.reward_square, run


def twins(rng: Rng) -> Array:
    return np.asarray(rng.standard_normal() + 1e-7 * rng.standard_normal(16))


def one_of_many(rng: Rng) -> Array:
    return np.asarray(np.eye(16)[rng.integers(16)])


@pytest.mark.parametrize("memory", [None, 15])
@pytest.mark.parametrize("context", [lambda rng: rng.standard_normal(16), twins, one_of_many])
def test_components_and_centres_are_exact_between_whole_steps(context: Any, memory: int | None) -> None:
    """In wide contexts arms are solved once in a round; between, every move keeps them as if they were."""
    engine, rng = RobustEngine(RobustMixture(5, 16), memory=memory), np.random.default_rng(3)
    state = engine.init()
    for step in range(110):
        x, outlier = context(rng), 1e4 if step % 17 == 0 else 1.0
        state = engine.update(state, x, int(rng.integers(5)), float(x[0] + outlier * rng.standard_normal()), rng)
        if step < 66:
            continue
        solved = copied(state)
        update.rebuild(engine._books(solved))
        np.testing.assert_allclose(state.centres, solved.centres, rtol=1e-8, atol=1e-11 * np.abs(solved.centres).max())
        for arm, (K, _, _) in enumerate(state.sizes):
            rows = slice(MEAN, plain(sxx_row)(17))
            moved, exact = state.tables[arm, rows, :K], solved.tables[arm, rows, :K]
            np.testing.assert_allclose(moved, exact, rtol=1e-8, atol=1e-11 * np.abs(exact).max())


@pytest.mark.parametrize("dim", [2, 16])
def test_another_round_draws_what_the_arms_share_for_every_arm(dim: int) -> None:
    """However many columns there are, and though updates draw it now and then only where these are many."""
    engine = RobustEngine(RobustMixture(4, dim), 4, 2)
    state = played(engine, 101)
    assert dim == 2 or not plain(update.is_whole)(plain(arms_of)(engine._books(state)))
    rng, alone = np.random.default_rng(0), copied(state)
    for arm in range(4):
        before = alone.hyper.copy(), alone.features.centre.copy()
        alone, finite = engine._move(alone, (arm, arm), np.zeros(dim), 0.0, update.MOVE_HERE, rng_handle(rng))
        assert finite
        assert alone.n_rewards == state.n_rewards
        assert (alone.hyper != before[0]).any()
        assert (alone.features.centre != before[1]).all()
    again = engine.refresh(copied(state), np.random.default_rng(0))
    np.testing.assert_array_equal(again.hyper, alone.hyper)
    np.testing.assert_array_equal(again.tables, alone.tables)


@pytest.mark.parametrize(("shape", "scale"), [(0.5, 1e300), (1e-300, 1e300), (0.5, 5e-324), (1e300, 0.5)])
def test_any_prior_of_the_common_centre_leaves_every_number_finite(shape: float, scale: float) -> None:
    """A spread that begins beyond its bounds would stay there."""
    engine = RobustEngine(RobustMixture(2, 2, centre_shape=shape, centre_scale=scale))
    assert RATIO_LOW <= engine.init().centre_ratio.item() <= RATIO_HIGH
    state = played(engine, 60)
    state.require_sound()
    assert RATIO_LOW <= state.centre_ratio.item() <= RATIO_HIGH
    assert np.isfinite(engine.moments(state, np.ones(2))).all()
