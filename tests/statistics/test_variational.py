"""The variational engine: books that balance, no randomness, and a spread a little below the posterior's."""

import numpy as np
import pytest

from polyarm.inference import Budget, GibbsEngine, VariationalEngine
from polyarm.inference.variational import SoftSeating
from polyarm.kernels.mixture.component import COUNT, MEAN, SCALE
from polyarm.kernels.mixture.variational import EMPTY
from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.types import Array


def crossing_lines(n: int, seed: int) -> tuple[Array, Array, LinearMixture]:
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.uniform(-1, 1, n)])
    y = np.where(rng.random(n) < 0.6, 2.0, -1.5) * x[:, 1] + 0.3 * rng.normal(size=n)
    return x, y, LinearMixture(NormalInverseGamma(2, 0.0, 4.0, 2.0, 0.5))


def fed(engine: VariationalEngine, x: Array, y: Array, seed: int = 0) -> SoftSeating:
    state, rng = engine.init(), np.random.default_rng(seed)
    for xi, yi in zip(x, y, strict=True):
        state = engine.update(state, xi, 0, yi, rng)
    return state.seatings[0]


@pytest.mark.parametrize("discount", [0.0, 0.3])
def test_statistics_are_those_of_the_responsibilities(discount: float) -> None:
    x, y, model = crossing_lines(400, 1)
    y[::37] += 20.0  # outliers open and close components
    seating = fed(VariationalEngine([LinearMixture(model.base, 1.0, discount)]), x, y)
    r = seating.responsibilities[:400]
    assert np.allclose(r.sum(axis=1), 1, atol=1e-12)
    assert (r >= 0).all()
    assert (seating.table[COUNT] >= EMPTY).sum() > 1
    for k in np.flatnonzero(seating.table[COUNT] >= EMPTY):
        w = r[:, k]
        precision = np.linalg.inv(model.base.covariance_matrix)
        total = precision + (x * w[:, None]).T @ x
        mean = np.linalg.solve(total, (x * w[:, None]).T @ y)
        scale = model.base.scale + 0.5 * (w @ (y - x @ mean) ** 2 + mean @ precision @ mean)
        assert seating.table[COUNT, k] == pytest.approx(w.sum(), rel=1e-9, abs=1e-9)
        assert np.allclose(seating.table[MEAN : MEAN + 2, k], mean, rtol=1e-9, atol=1e-9)
        assert seating.table[SCALE, k] == pytest.approx(scale, rel=1e-9)
        m00, m01, m11 = seating.table[MEAN + 2 :, k]  # V = MM'
        factor = np.array([[m00, m01], [0.0, m11]])
        assert np.allclose(factor @ factor.T, np.linalg.inv(total), rtol=1e-9, atol=1e-12)


def test_the_generator_is_not_used() -> None:
    x, y, model = crossing_lines(100, 2)
    a, b = (fed(VariationalEngine([model]), x, y, seed) for seed in (0, 1))
    assert all(np.array_equal(u, v) for u, v in zip(a, b, strict=True))


def test_no_more_components_than_asked_for() -> None:
    rng = np.random.default_rng(3)
    x, y, model = crossing_lines(200, 3)
    engine = VariationalEngine([model], max_components=3)
    seating = fed(engine, x, y + 10 * rng.integers(0, 6, 200))
    assert (seating.table[COUNT] >= EMPTY).sum() == 3
    assert seating.responsibilities[:, 3:].sum() == 0


def test_close_to_the_gibbs_sampler_on_crossing_lines() -> None:
    x, y, model = crossing_lines(300, 4)
    at, rng = np.array([1.0, 0.8]), np.random.default_rng(5)
    soft = VariationalEngine([model])
    state = soft.init()
    for xi, yi in zip(x, y, strict=True):
        state = soft.update(state, xi, 0, yi, rng)
    ours = soft.draw_means(state, at, 4_000, rng)[:, 0]
    engine = GibbsEngine([model], Budget(32))
    chain = engine.init()
    for xi, yi in zip(x, y, strict=True):
        chain = engine.update(chain, xi, 0, yi, rng)
    draws = []
    for _ in range(2_000):
        chain = engine.sweep(chain, 0, rng)
        draws.append(engine.draw_means(chain, at, 1, rng)[0, 0])
    spread = np.std(draws)
    assert abs(ours.mean() - np.mean(draws)) < 0.5 * spread
    assert 0.75 < ours.std() / spread < 1.05
