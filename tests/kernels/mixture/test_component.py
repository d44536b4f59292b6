"""The component's formulas against SciPy, fresh computations and their own plain twins."""

import numpy as np
import pytest
from scipy import stats

from polyarm.inference import GibbsEngine
from polyarm.inference.gibbs import prior_of
from polyarm.kernels._jit import kernel, plain
from polyarm.kernels.mixture import component as c
from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.types import Array, IntArray
from tests import reference


def correlated(dim: int, seed: int = 0) -> NormalInverseGamma:
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((dim, dim + 2))
    return NormalInverseGamma(dim, rng.standard_normal(dim), factor @ factor.T / dim, 1.7, 0.8)


def problem(dim: int, n: int, seed: int = 1) -> tuple[NormalInverseGamma, Array, Array]:
    base = correlated(dim)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim))
    return base, X, X @ rng.standard_normal(dim) + rng.standard_normal(n)


def table_of(base: NormalInverseGamma, X: Array, y: Array) -> tuple[Array, Array]:
    """A table whose first component holds all rewards, and the data as kernels take them."""
    prior = prior_of([LinearMixture(base)])
    data = np.column_stack([X, y, np.zeros(len(y))])
    T = np.zeros((prior.columns.shape[1], 8))
    c.reset(T, 0, prior.columns[0])
    for i in range(len(y)):
        c.rank_one(T, 0, data, i, 1.0, np.empty(base.dim))
    c.cache_constants(T, 0, base.shape, 0.0)
    return T, data


def unpacked(T: Array, k: int, dim: int) -> Array:
    M = np.zeros((dim, dim))
    M.T[np.tril_indices(dim)] = T[c.MEAN + dim :, k]
    return np.asarray(M @ M.T)


@pytest.mark.parametrize("a", [0.01, 0.3, 1.0, 7.5, 15.9, 16.0, 20.0, 333.3, 1e6])
def test_log_gamma_step_equals_scipy(a: float) -> None:
    expected = float(reference.log_gamma_step(np.array(a)))
    assert c.log_gamma_step(a) == pytest.approx(expected, rel=1e-12, abs=2e-9 if a > 1e4 else 2e-13)


@pytest.mark.parametrize("dim", [1, 2, 5, 27])
def test_rank_one_adds_equal_the_papers_equations(dim: int) -> None:
    base, X, y = problem(dim, 40)
    T, _ = table_of(base, X, y)
    fresh = reference.fresh_component(base, X, y)
    assert T[c.COUNT, 0] == 40
    np.testing.assert_allclose(T[c.SCALE, 0], fresh["scale"], rtol=1e-10)
    np.testing.assert_allclose(T[c.MEAN : c.MEAN + dim, 0], fresh["mean"], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(unpacked(T, 0, dim), fresh["covariance"], rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(T[c.LOG_DET, 0], np.linalg.slogdet(np.asarray(fresh["covariance"]))[1], rtol=1e-9)


@pytest.mark.parametrize("dim", [1, 2, 3, 10])
def test_log_predictive_equals_scipys_student(dim: int) -> None:
    base, X, y = problem(dim, 30)
    T, data = table_of(base, X[:29], y[:29])
    data = np.column_stack([X, y, np.zeros(30)])
    s, e = np.empty(8), np.empty(8)
    c.residuals(T, 1, data, 29, s, e)
    a, b = base.shape + 29 / 2, T[c.SCALE, 0]
    ours = c.log_predictive(T[c.COEF, 0], a, b, s[0], e[0]) - np.log(29)
    V, U = unpacked(T, 0, dim), T[c.MEAN : c.MEAN + dim, 0]
    scale = np.sqrt(b / a * (1 + X[29] @ V @ X[29]))
    assert ours == pytest.approx(stats.t.logpdf(y[29], 2 * a, X[29] @ U, scale), rel=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_evidence_equals_the_multivariate_student_and_the_product_of_predictives(dim: int) -> None:
    base, X, y = problem(dim, 12)
    prior = prior_of([LinearMixture(base)]).columns[0]
    T, _ = table_of(base, X, y)
    expected = reference.log_evidence(base, X, y)
    assert c.log_evidence(T, 0, prior, base.shape) == pytest.approx(expected, abs=1e-9)
    first = c.prior_log_predictive(prior, base.shape, np.column_stack([X, y, y]), 0)
    assert first == pytest.approx(reference.log_evidence(base, X[:1], y[:1]), abs=1e-11)


@pytest.mark.parametrize("dim", [1, 2, 10])
def test_remove_undoes_add(dim: int) -> None:
    base, X, y = problem(dim, 20)
    T, data = table_of(base, X, y)
    before = T[:, 0].copy()
    c.rank_one(T, 0, data, 3, -1.0, np.empty(dim))
    c.rank_one(T, 0, data, 3, 1.0, np.empty(dim))
    c.cache_constants(T, 0, base.shape, 0.0)
    before[c.MOVES] = T[c.MOVES, 0]
    np.testing.assert_allclose(T[:, 0], before, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dim", [1, 3])
def test_rebuild_equals_rank_one_adds(dim: int) -> None:
    base, X, y = problem(dim, 25)
    T, data = table_of(base, X, y)
    prior = prior_of([LinearMixture(base)])
    z = np.zeros(25, np.int64)
    c.rebuild(T, 1, prior.columns[0], prior.sqrt_information[0, 0], data, z, 0, -1)
    np.testing.assert_allclose(T[c.MEAN :, 1], T[c.MEAN :, 0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(T[: c.COEF, 1], T[: c.COEF, 0], rtol=1e-10)


@kernel
def walk(T: Array, prior: Array, sqrt_information: Array, data: Array, z: IntArray, order: IntArray, v: Array) -> None:
    """Toggle the membership of rewards in component 0, rebuilding as the sampler does."""
    for i in order:
        sign = 1.0 if z[i] == 1 else -1.0
        z[i] = 0 if z[i] == 1 else 1
        if c.rank_one(T, 0, data, i, sign, v):
            c.rebuild(T, 0, prior, sqrt_information, data, z, 0, -1)


@pytest.mark.parametrize(("dim", "size"), [(1, 1.0), (2, 1.0), (10, 1.0), (27, 1.0), (2, 1000.0), (10, 1000.0)])
def test_a_million_moves_leave_the_parameters_right(dim: int, size: float) -> None:
    rng = np.random.default_rng(dim)
    base = NormalInverseGamma(dim)
    n = 4 * dim + 20
    X = rng.standard_normal((n, dim)) * size
    y = X @ rng.standard_normal(dim) + rng.standard_normal(n)
    prior = prior_of([LinearMixture(base)])
    T, data = table_of(base, X[:0], y[:0])
    data = np.column_stack([X, y, np.zeros(n)])
    z = np.ones(n, np.int64)  # label 1: outside
    walk(T, prior.columns[0], prior.sqrt_information[0, 0], data, z, rng.integers(0, n, 10**6), np.empty(dim))
    fresh = reference.fresh_component(base, X[z == 0], y[z == 0])
    V = np.asarray(fresh["covariance"])
    assert T[c.COUNT, 0] == (z == 0).sum()
    np.testing.assert_allclose(T[c.SCALE, 0], fresh["scale"], rtol=1e-8)
    np.testing.assert_allclose(T[c.MEAN : c.MEAN + dim, 0], fresh["mean"], rtol=1e-8, atol=1e-8)
    assert np.abs(unpacked(T, 0, dim) - V).max() < 1e-8 * np.abs(V).max()


def test_an_engine_grows_beyond_its_first_capacity_without_a_cap() -> None:
    rng = np.random.default_rng(0)
    engine = GibbsEngine([LinearMixture(NormalInverseGamma(1), concentration=20_000.0)])
    state = engine.init()
    for reward in 100.0 * rng.standard_normal(300):
        state = engine.update(state, np.ones(1), 0, float(reward), rng)
    assert engine.n_components(state)[0] > 64
    labels, places = state.labels[0]
    np.testing.assert_array_equal(places[labels], np.arange(len(labels)))


@pytest.mark.parametrize(("size", "lost"), [(1e7, False), (1e9, True)])
def test_an_update_whose_terms_nearly_cancel_is_told(size: float, lost: bool) -> None:
    """x'Vx = 2 is summed from terms of that size: under eight digits are left."""
    T = np.zeros((plain(c.n_rows)(2), 4))
    T[c.SCALE, 1], T[c.MEAN + 2 :, 1] = 1.0, [1.0, 1.0 + size, -size]
    data = np.array([[1.0, 1.0, 0.3, 0.0]])
    assert plain(c.rank_one)(T, 1, data, 0, 1.0, np.empty(2)) == lost


@pytest.mark.parametrize(("reward", "lost"), [(3.0, False), (3e3, True)])
def test_a_removal_that_leaves_little_of_the_scale_is_told(reward: float, lost: bool) -> None:
    base = NormalInverseGamma(2, 0.0, 1.0, 1.0, 1e-3)
    T, data = table_of(base, np.array([[0.1, 0.2], [0.3, -0.1]]), np.array([reward, 0.5]))
    assert plain(c.rank_one)(T, 0, data, 0, -1.0, np.empty(2)) == lost


def test_a_component_is_rebuilt_after_many_moves() -> None:
    for moves, count, due in ((c.MOVES_KEPT - 2, 5.0, False), (c.MOVES_KEPT - 1, 5.0, True)):
        T = np.zeros((plain(c.n_rows)(1), 4))
        T[[c.COUNT, c.SCALE, c.MOVES], 0], T[c.MEAN + 1, 0] = [count, 1.0, moves], 1.0
        assert plain(c.rank_one)(T, 0, np.array([[0.1, 0.2, 0.0]]), 0, 1.0, np.empty(1)) == due
    T[[c.COUNT, c.MOVES], 0] = 1e5, c.MOVES_KEPT  # of many rewards so many moves are few
    assert not plain(c.rank_one)(T, 0, np.array([[0.1, 0.2, 0.0]]), 0, 1.0, np.empty(1))


@pytest.mark.parametrize("weight", [0.4, -0.4])
def test_a_reward_counts_by_its_weight(weight: float) -> None:
    """Adding or removing a share of a reward is the same in a regression with weights."""
    base, X, y = problem(3, 6)
    T, data = table_of(base, X, y)
    assert not plain(c.rank_one)(T, 0, data, 2, weight, np.empty(3))
    w = np.ones(6)
    w[2] += weight
    prior = np.linalg.inv(base.covariance_matrix)
    V = np.linalg.inv(prior + (X.T * w) @ X)
    U = V @ (prior @ base.mean_vector + (X.T * w) @ y)
    off = U - base.mean_vector
    assert T[c.COUNT, 0] == pytest.approx(6 + weight)
    assert T[c.SCALE, 0] == pytest.approx(base.scale + 0.5 * (w @ (y - X @ U) ** 2 + off @ prior @ off))
    assert T[c.LOG_DET, 0] == pytest.approx(np.linalg.slogdet(V)[1])
    np.testing.assert_allclose(T[c.MEAN : c.MEAN + 3, 0], U)
    np.testing.assert_allclose(unpacked(T, 0, 3), V)
    assert T[c.MOVES, 0] == 7
