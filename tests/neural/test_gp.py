"""The Gaussian process against dense NumPy on the rows of the bootstrap as they are, copies and all."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from polyarm.neural import gp
from polyarm.neural.data import Data, take
from polyarm.neural.gp import MultitaskGp
from polyarm.neural.gp_kernel import Hyper, covariance, initial_hyper
from polyarm.neural.inverse import invert

D, A = 3, 4


def softplus(v: Any) -> Any:
    return np.log1p(np.exp(v))


def random_hyper(seed: int) -> Hyper:
    rng = np.random.default_rng(seed)
    sizes = [(), (), (D,), (D,), (), (A,), (A, 5)]
    return Hyper(*(jnp.asarray(0.4 * rng.standard_normal(size)) for size in sizes))


def random_data(seed: int, capacity: int) -> Data:
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.standard_normal((capacity, D)), np.ones(capacity)])
    return Data(
        jnp.asarray(x),
        jnp.asarray(rng.integers(A, size=capacity), jnp.int32),
        jnp.asarray(rng.standard_normal(capacity)),
    )


def dense_covariance(h: Hyper, x: np.ndarray, a: np.ndarray, y: np.ndarray, b: np.ndarray) -> np.ndarray:
    near, flat = (softplus(np.clip(np.asarray(v), -5, 5)) for v in (h.matern_lengths, h.linear_lengths))
    v, left, right = np.asarray(h.tasks), x[:, None], y[None]
    s = np.sqrt(3 * (((left - right) / near) ** 2).sum(axis=2) + 1e-16)
    stationary = softplus(float(h.matern_variance)) * (1 + s) * np.exp(-s)
    linear = softplus(float(h.linear_variance)) * (left * right / flat**2).sum(axis=2)
    return np.asarray((stationary + linear) * np.exp(-((v[a][:, None] - v[b][None]) ** 2).sum(axis=2)))


posterior = jax.jit(MultitaskGp.posterior, static_argnums=0)


def dense_rows(learner: MultitaskGp, n: int, capacity: int, key: jax.Array) -> np.ndarray:
    counts = np.asarray(learner.counts(jnp.int64(n), capacity, key)).astype(int)
    return np.repeat(np.arange(len(counts)), counts)


def dense_scales(arms: np.ndarray, rewards: np.ndarray, zeros: bool) -> np.ndarray:
    scales = np.empty(A)
    for arm in range(A):
        mine = rewards[arms == arm]
        mean, n_played = (mine.mean() if len(mine) else 0.0), max(len(mine), 1)
        scatter = ((mine - mean) ** 2).sum() + (len(arms) - len(mine)) * mean**2 * zeros
        scales[arm] = np.sqrt(1e-4 + scatter / n_played)
    return scales


def dense_objective(h: Hyper, x: np.ndarray, arms: np.ndarray, rewards: np.ndarray, scales: np.ndarray) -> float:
    tau = softplus(float(h.noise)) + 1e-6
    k = dense_covariance(h, x, arms, x, arms) + tau * np.eye(len(x))
    y = (rewards - np.asarray(h.means)[arms]) / scales[arms]
    evidence = -multivariate_normal.logpdf(y, np.zeros(len(y)), k)
    priors = sum(norm.logpdf(v) for v in (float(h.matern_variance), float(h.linear_variance), np.exp(float(h.noise))))
    return 5 * A * (evidence - priors) - norm.logpdf(np.asarray(h.tasks), 0, 10).sum()


def test_diagonal_at_the_start() -> None:
    h = initial_hyper(D, A, 5, jax.random.key(0))
    x = np.random.default_rng(0).standard_normal((6, D))
    batch = gp.Batch(jnp.asarray(x), jnp.eye(A)[np.arange(6) % A], jnp.zeros(6), jnp.ones(6))
    expected = 1.3133 * (1 + (x**2).sum(axis=1) / 0.6931**2) + 0.6931
    np.testing.assert_allclose(jnp.diagonal(gp.gram(h, batch)), expected, rtol=2e-4)


def test_covariance_equals_numpy() -> None:
    h, rng = random_hyper(1), np.random.default_rng(1)
    x, y = rng.standard_normal((5, D)), rng.standard_normal((7, D))
    a, b = rng.integers(A, size=5), rng.integers(A, size=7)
    ours = covariance(h, jnp.asarray(x), jnp.eye(A)[a], jnp.asarray(y), jnp.eye(A)[b])
    np.testing.assert_allclose(ours, dense_covariance(h, x, a, y, b), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("quirk", ["faithful", "fixed"])
def test_objective_and_gradient_equal_the_dense_reference(quirk: str) -> None:
    learner = MultitaskGp(A, D, spread=quirk, resampling=quirk)

    @jax.jit
    def ours(h: Hyper, data: Data, n: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array, Hyper]:
        batch, blocks = learner.batch(data, n, key), learner.n_blocks(n, 128)
        scales = gp.arm_scales(batch, quirk)
        arguments = h, scales, batch, blocks
        return scales, gp.objective(*arguments), gp.objective_gradient(*arguments)

    for n in (3, 40, 90):
        h, data, key = random_hyper(n), random_data(n, 128), jax.random.key(n)
        scales, value, gradient = ours(h, data, jnp.int64(n), key)
        rows = dense_rows(learner, n, 128, key)
        x, arms, rewards = (np.asarray(part)[rows] for part in (data.inputs[:, :-1], data.arms, data.rewards))
        expected = dense_scales(arms, rewards, quirk == "faithful")
        np.testing.assert_allclose(scales, expected, rtol=1e-10)
        assert float(value) == pytest.approx(dense_objective(h, x, arms, rewards, expected), rel=1e-8)
        for field, slope in zip(h._fields, gradient, strict=True):
            start = np.asarray(getattr(h, field))
            step = np.zeros_like(start)
            step[(0,) * start.ndim] = 1e-5
            ends = [
                dense_objective(h._replace(**{field: start + sign * step}), x, arms, rewards, expected)
                for sign in (1, -1)
            ]
            found = float(np.asarray(slope)[(0,) * start.ndim])
            assert found == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("n", [5, 90])
def test_predictive_equals_the_dense_reference(n: int) -> None:
    learner = MultitaskGp(A, D)
    data, key = random_data(n, 128), jax.random.key(n)
    model = learner.init(jax.random.key(0))._replace(
        hyper=random_hyper(1), previous=random_hyper(2), batch_key=jax.random.key_data(key)
    )
    x = np.random.default_rng(5).standard_normal(D)
    mean, cov, scales = posterior(learner, model, data, jnp.int64(n), jnp.asarray(x))
    rows = dense_rows(learner, n, 128, key)
    xs, arms, rewards = np.asarray(data.inputs)[rows, :-1], np.asarray(data.arms)[rows], np.asarray(data.rewards)[rows]
    s = dense_scales(arms, rewards, True)
    before = model.previous
    k = dense_covariance(before, xs, arms, xs, arms) + (softplus(float(before.noise)) + 1e-6) * np.eye(n)
    y = (rewards - np.asarray(before.means)[arms]) / s[arms]
    here, all_arms = np.tile(x, (A, 1)), np.arange(A)
    cross = dense_covariance(model.hyper, here, all_arms, xs, arms)
    prior = dense_covariance(model.hyper, here, all_arms, here, all_arms)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(k, y), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(cov, prior - cross @ np.linalg.solve(k, cross.T), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(scales, s, rtol=1e-10)


@pytest.mark.parametrize(("size", "n"), [(64, 64), (192, 192), (192, 130)])
def test_inverse_by_blocks(size: int, n: int) -> None:
    rng = np.random.default_rng(size + n)
    root = rng.standard_normal((n, n + 5))
    matrix = np.eye(size)
    matrix[:n, :n] = root @ root.T / n + 0.01 * np.eye(n)
    inverse, log_det = jax.jit(invert)(jnp.asarray(matrix), -(-n // 64))
    np.testing.assert_allclose(inverse, np.linalg.inv(matrix), rtol=1e-8, atol=1e-9)
    assert float(log_det) == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-10)


def test_root_of_the_covariance() -> None:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((A, A))
    cov = jnp.asarray(root @ root.T)
    np.testing.assert_allclose(gp.spectral(cov, "faithful"), cov, atol=1e-10)
    np.testing.assert_allclose(gp.spectral(cov, "fixed") @ gp.spectral(cov, "fixed"), cov, atol=1e-10)


def test_first_points_are_kept_for_ever() -> None:
    learner = MultitaskGp(A, D, max_points=20)
    assert [learner.window(n) for n in (1, 19, 20, 500)] == [19, 19, 20, 20]
    data = random_data(0, 64)
    batch = learner.batch(take(data, jnp.arange(20)), jnp.int64(40), jax.random.key(0))
    assert np.asarray(batch.counts)[:20].tolist() == [1.0] * 20
    assert float(batch.counts.sum()) == 20
    np.testing.assert_array_equal(batch.x[:20], data.inputs[:20, :-1])


def test_bootstrap_has_the_size_of_the_data() -> None:
    learner = MultitaskGp(A, D)
    for n in (30, 900):
        data = random_data(0, learner.window(n))
        batch = jax.jit(learner.batch)(data, jnp.int64(n), jax.random.key(n))
        assert float(batch.counts.sum()) == n
        assert len(batch.counts) % 64 == 0
    assert learner.batch_capacity(999) == 704
    assert 0.55 < float((batch.counts > 0).sum()) / 900 < 0.71


def test_before_its_first_training_the_process_holds_dummy_data() -> None:
    learner = MultitaskGp(A, D, every=50)
    model, x = learner.init(jax.random.key(0)), np.array([0.2, -0.1, 0.4])
    here, all_arms = np.tile(x, (A, 1)), np.arange(A)
    cross = dense_covariance(model.hyper, here, all_arms, np.ones((512, D)), np.zeros(512, int))
    expected = dense_covariance(model.hyper, here, all_arms, here, all_arms) - cross @ cross.T
    mean, cov, _ = jax.jit(learner.prior)(model, jnp.asarray(x))
    assert not mean.any()
    np.testing.assert_allclose(cov, expected, rtol=1e-9, atol=1e-9)
