"""The Student-t sampler against quadrature, and its kernels against their plain twins."""

import numpy as np
import pytest
from scipy import stats

from polyarm.inference import ConjugateEngine, StudentEngine
from polyarm.kernels import student_regression
from polyarm.kernels._jit import plain, rng_handle
from polyarm.models import LinearGaussian, NormalInverseGamma
from polyarm.types import Array

CONTEXTS = np.array([0.8, -1.1, 0.5, 1.4, -0.3, 0.9])
REWARDS = np.array([1.1, -1.2, 0.2, 9.0, -0.5, 1.3])  # the fourth is an outlier


def posterior_by_quadrature(dof: float) -> tuple[float, float]:
    """Mean and sd of w for d = 1 under w ~ N(0, s2), s2 ~ IG(2, 0.5), y ~ xw + s t(dof), on a grid."""
    w = np.linspace(-8, 12, 2001)[:, None]
    log_s2 = np.linspace(-7, 7, 701)[None, :]
    s = np.exp(0.5 * log_s2)
    log_density = stats.norm.logpdf(w, 0, s) + stats.invgamma.logpdf(s**2, 2, scale=0.5) + log_s2
    for x, y in zip(CONTEXTS, REWARDS, strict=True):
        log_density = log_density + stats.t.logpdf((y - x * w) / s, dof) - np.log(s)
    mass = np.exp(log_density - log_density.max()).sum(axis=1)
    mass /= mass.sum()
    mean = float(mass @ w[:, 0])
    return mean, float(np.sqrt(mass @ (w[:, 0] - mean) ** 2))


def chain(dof: float, n: int) -> Array:
    """Draws of w, one after each Gibbs sweep."""
    engine = StudentEngine([LinearGaussian(NormalInverseGamma(1, 0.0, 1.0, 2.0, 0.5))], dof)
    state, rng = engine.init(), np.random.default_rng(0)
    for x, y in zip(CONTEXTS, REWARDS, strict=True):
        state = engine.update(state, np.array([x]), 0, float(y), rng)
    rows, draws = state.rows[0][:6], np.empty(n)
    for i in range(n):
        student_regression.draw_precisions(rows, 0, 6, state.roots[0], engine._noise_priors[0], dof, rng_handle(rng))
        student_regression.weigh(rows, engine._priors[0], state.roots[0])
        draws[i] = engine.draw_means(state, np.ones(1), 1, rng)[0, 0]
    return draws


@pytest.mark.parametrize("dof", [1.0, 3.0])
def test_sampler_agrees_with_quadrature(dof: float) -> None:
    draws = chain(dof, 60_000)
    batches = draws.reshape(60, -1)
    mean, sd = posterior_by_quadrature(dof)
    for values, expected in ((batches.mean(axis=1), mean), (((batches - mean) ** 2).mean(axis=1), sd**2)):
        assert abs(values.mean() - expected) < 4.5 * values.std() / np.sqrt(len(values))
    wrong, _ = posterior_by_quadrature(30.0)  # a planted bug, nearly Gaussian noise, is seen
    assert abs(draws.mean() - wrong) > 4.5 * batches.mean(axis=1).std() / np.sqrt(60)


def test_many_degrees_of_freedom_are_gaussian() -> None:
    arm = LinearGaussian(NormalInverseGamma(2))
    student, exact = StudentEngine([arm], dof=1e8), ConjugateEngine([arm])
    one, other, rng = student.init(), exact.init(), np.random.default_rng(1)
    for _ in range(30):
        x = rng.standard_normal(2)
        y = float(x[0] + 0.3 * rng.standard_normal())
        one, other = student.update(one, x, 0, y, rng), exact.update(other, x, 0, y, rng)
    np.testing.assert_allclose(one.roots, other.roots, atol=1e-2)


def test_an_outlier_hardly_moves_the_mean() -> None:
    arm = LinearGaussian(NormalInverseGamma(1))
    rng = np.random.default_rng(2)
    data = [*(1.0 + 0.1 * rng.standard_normal(40)), 1000.0]
    means = []
    for engine in (StudentEngine([arm]), ConjugateEngine([arm])):
        state = engine.init()
        for y in data:
            state = engine.update(state, np.ones(1), 0, float(y), rng)  # type: ignore[arg-type]
        means.append(engine.expected_means(state, np.ones(1))[0])  # type: ignore[arg-type]
    assert abs(means[0] - 1.0) < 0.2
    assert means[1] > 10


def test_compiled_equals_plain() -> None:
    engine = StudentEngine([LinearGaussian(NormalInverseGamma(3))])
    states = []
    for compiled in (True, False):
        learn = student_regression.learn if compiled else plain(student_regression.learn)
        rng, data = np.random.default_rng(3), np.random.default_rng(4).standard_normal((8, 4))
        state = engine.init()
        for n, row in enumerate(data):
            state.rows[0][n, :4] = row
            handle = rng_handle(rng) if compiled else rng
            learn(state.rows[0][: n + 1], engine._priors[0], state.roots[0], engine._noise_priors[0], 3.0, 2, handle)
        states.append(state)
    np.testing.assert_allclose(states[0].rows[0], states[1].rows[0], rtol=1e-10)
    np.testing.assert_allclose(states[0].roots, states[1].roots, rtol=1e-10, atol=1e-12)
