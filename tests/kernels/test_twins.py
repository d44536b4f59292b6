"""Compiled equals plain Python on the same seed, bit for bit."""

import numpy as np
import pytest

from polyarm.inference import Budget, ConjugateEngine, GibbsEngine, HierarchicalEngine, Sweeps
from polyarm.inference.gibbs import GibbsState
from polyarm.kernels import conjugate
from polyarm.kernels._jit import plain, rng_from, rng_handle
from polyarm.kernels.franchise import draws
from polyarm.kernels.linalg import sqrt_information
from polyarm.kernels.mixture import gibbs, hyperparameters, means
from polyarm.models import HierarchicalMixture, LinearGaussian, LinearMixture, NormalInverseGamma
from polyarm.types import Array


def rewards(dim: int, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(5)
    X = rng.random((n, dim))
    return X, np.where(rng.random(n) < 0.4, 0.0, 4.0) * X[:, 0] + rng.standard_normal(n)


def learnt(engine: GibbsEngine, X: Array, y: Array, compiled: bool) -> tuple[GibbsState, float]:
    rng = np.random.default_rng(11)
    learn = gibbs.learn if compiled else plain(gibbs.learn)
    sweep = gibbs.sweep if compiled else plain(gibbs.sweep)
    joint = gibbs.log_joint if compiled else plain(gibbs.log_joint)
    state = engine.init()._replace(data=(np.zeros((64, X.shape[1] + 2)),), seats=(np.zeros(64, np.int64),))
    handle = rng_handle(rng) if compiled else rng
    for x, reward in zip(X, y, strict=True):
        learn(engine._books(state, 0), 0, x, float(reward), 5, handle)
    order = np.empty(len(y), np.int64)
    sweep(engine._books(state, 0), 0, order, len(y), handle)
    return state, joint(state.tables, state.sizes, engine._prior.columns, engine._prior.processes, 0)


@pytest.mark.parametrize(("dim", "discount"), [(1, 0.0), (2, 0.3), (5, 0.0)])
def test_gibbs_kernels_equal_their_plain_twins(dim: int, discount: float) -> None:
    engine = GibbsEngine([LinearMixture(NormalInverseGamma(dim), 0.7, discount)])
    X, y = rewards(dim, 40)
    fast, fast_joint = learnt(engine, X, y, compiled=True)
    slow, slow_joint = learnt(engine, X, y, compiled=False)
    for a, b in zip(fast[:3], slow[:3], strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(fast.seats[0], slow.seats[0])
    assert fast_joint == pytest.approx(slow_joint, rel=1e-14)


@pytest.mark.parametrize("tail", [means.WHOLE, means.PAPER, means.ONE_ATOM])
@pytest.mark.parametrize("discount", [0.0, 0.4, -0.5])
def test_draws_of_the_mean_equal_their_plain_twin(tail: int, discount: float) -> None:
    concentration = 3 * 0.5 if discount < 0 else 0.8
    engine = GibbsEngine([LinearMixture(NormalInverseGamma(2), concentration, discount)] * 2)
    X, y = rewards(2, 30)
    state, rng = engine.init(), np.random.default_rng(2)
    for i in range(30):
        state = engine.update(state, X[i], i % 2, float(y[i]), rng)
    a, b = np.random.default_rng(3), np.random.default_rng(3)
    fast, slow = np.empty((20, 2)), np.empty((20, 2))
    given = (state.tables, state.sizes, engine._prior.columns, engine._prior.processes, X[0], tail)
    means.draw_means(*given, fast, rng_handle(a))
    plain(means.draw_means)(*given, slow, b)
    np.testing.assert_allclose(fast, slow, rtol=1e-14)
    assert a.random() == b.random()


@pytest.mark.parametrize("discount", [0.0, 0.3])
def test_draws_of_hyperparameters_equal_their_plain_twins(discount: float) -> None:
    engine = GibbsEngine([LinearMixture(NormalInverseGamma(2), 0.7, discount)] * 2)
    X, y = rewards(2, 30)
    state, rng = engine.init(), np.random.default_rng(2)
    for i in range(30):
        state = engine.update(state, X[i], i % 2, float(y[i]), rng)
    a, b = np.random.default_rng(3), np.random.default_rng(3)
    fast, slow = ((state.tables.copy(), state.sizes.copy(), state.laws.copy()) for _ in range(2))
    beliefs = np.array([2.0, 1.0, 1.0, 3.0, 2.0, 2.0])
    for _ in range(10):
        hyperparameters.redraw(*fast, beliefs, True, discount > 0, rng_handle(a))
        hyperparameters.redraw_scale(*fast, beliefs, rng_handle(a))
        plain(hyperparameters.redraw)(*slow, beliefs, True, discount > 0, b)
        plain(hyperparameters.redraw_scale)(*slow, beliefs, b)
    assert (fast[2] != state.laws).any()
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)
    assert a.random() == b.random()


def test_franchise_draws_equal_their_plain_twins() -> None:
    engine = HierarchicalEngine(HierarchicalMixture(NormalInverseGamma(2), 0.7, 0.3, 1.0, 0.2), 2)
    X, y = rewards(2, 30)
    state, rng = engine.init(), np.random.default_rng(2)
    for i in range(30):
        state = engine.update(state, X[i], i % 2, float(y[i]), rng)
    given = (engine.books(state), X[0])
    a, b = np.random.default_rng(3), np.random.default_rng(3)
    means_of, densities_of = (np.empty((20, 2)), np.empty((20, 2))), (np.zeros((20, 5)), np.zeros((20, 5)))
    grid = np.linspace(-2, 6, 5)
    draws.draw_means(*given, means_of[0], rng_handle(a))
    draws.draw_densities(*given, 1, grid, densities_of[0], rng_handle(a))
    plain(draws.draw_means)(*given, means_of[1], b)
    plain(draws.draw_densities)(*given, 1, grid, densities_of[1], b)
    np.testing.assert_allclose(*means_of, rtol=1e-12)
    np.testing.assert_allclose(*densities_of, rtol=1e-10, atol=1e-14)
    assert a.random() == b.random()


def test_conjugate_kernels_equal_their_plain_twins() -> None:
    engine = ConjugateEngine([LinearGaussian(NormalInverseGamma(3))] * 2)
    X, y = rewards(3, 30)
    fast, slow = engine.init(), engine.init()
    for i in range(30):
        conjugate.learn(*fast[:2], i % 2, X[i], float(y[i]))
        plain(conjugate.learn)(*slow[:2], i % 2, X[i], float(y[i]))
    np.testing.assert_allclose(fast.roots, slow.roots, rtol=1e-13, atol=1e-15)


def test_a_stream_draws_what_its_generator_would() -> None:
    a, b = np.random.default_rng(9), np.random.default_rng(9)
    out, expected = np.empty((50, 1)), np.empty((50, 1))
    engine = ConjugateEngine([LinearGaussian(NormalInverseGamma(1))])
    conjugate.draw_means(*engine.init()[:2], engine._noise_priors, np.ones(1), out, rng_handle(a))
    conjugate.draw_means(*engine.init()[:2], engine._noise_priors, np.ones(1), expected, b)  # Numba's own unboxing
    np.testing.assert_array_equal(out, expected)
    assert a.random() == b.random()
    assert rng_from(a) is a


def test_handles_of_many_generators_do_not_mix() -> None:
    rngs = [np.random.default_rng(i) for i in range(600)]
    engine = ConjugateEngine([LinearGaussian(NormalInverseGamma(1))])
    first = [engine.draw_means(engine.init(), np.ones(1), 1, rng)[0, 0] for rng in rngs]
    again = [engine.draw_means(engine.init(), np.ones(1), 1, np.random.default_rng(i))[0, 0] for i in range(600)]
    assert first == again


def test_plain_of_a_plain_function_is_itself() -> None:
    assert plain(plain(sqrt_information.rotate_in)) is plain(sqrt_information.rotate_in)


@pytest.mark.parametrize("rule", [Budget(3), Sweeps(2, 0.0)])
def test_an_update_is_reproducible(rule: Budget | Sweeps) -> None:
    engine = GibbsEngine([LinearMixture(NormalInverseGamma(2))], rule)
    X, y = rewards(2, 25)

    def run() -> GibbsState:
        state, rng = engine.init(), np.random.default_rng(1)
        for x, reward in zip(X, y, strict=True):
            state = engine.update(state, x, 0, float(reward), rng)
        return state

    a, b = run(), run()
    np.testing.assert_array_equal(a.tables, b.tables)
    np.testing.assert_array_equal(a.seats[0], b.seats[0])
