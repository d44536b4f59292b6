"""Student mixtures against SciPy."""

import numpy as np
import pytest
from scipy import stats

from polyarm.kernels._jit import plain
from polyarm.kernels.student import mixture_density
from polyarm.models import StudentMixture

MIXED = StudentMixture(
    weights=np.array([0.2, 0.5, 0.3, 0.0]),
    dof=np.array([0.7, 4.0, np.inf, 9.0]),
    location=np.array([-3.0, 0.5, 2.0, 1e9]),
    scale=np.array([0.5, 1.0, 2.0, 1.0]),
)
GRID = np.concatenate([np.linspace(-20, 20, 81), [-1e6, 1e6]])


def frozen(k: int) -> "stats.rv_frozen":
    if np.isinf(MIXED.dof[k]):
        return stats.norm(MIXED.location[k], MIXED.scale[k])
    return stats.t(MIXED.dof[k], MIXED.location[k], MIXED.scale[k])


def test_density_and_distribution_equal_scipy() -> None:
    pdf = sum(w * frozen(k).pdf(GRID) for k, w in enumerate(MIXED.weights))
    cdf = sum(w * frozen(k).cdf(GRID) for k, w in enumerate(MIXED.weights))
    np.testing.assert_allclose(MIXED.pdf(GRID), pdf, rtol=1e-12)
    np.testing.assert_allclose(MIXED.cdf(GRID), cdf, rtol=1e-12)


@pytest.mark.parametrize("dof", [0.01, 1.0, 31.5, 1e4, 1e8])
def test_one_component_equals_scipy(dof: float) -> None:
    one = StudentMixture(np.ones(1), np.array([dof]), np.array([1.0]), np.array([2.0]))
    np.testing.assert_allclose(one.pdf(GRID), stats.t.pdf(GRID, dof, 1.0, 2.0), rtol=1e-7 if dof > 1e3 else 1e-11)


def test_compiled_density_equals_plain() -> None:
    arguments = (MIXED.weights, MIXED.dof, MIXED.location, MIXED.scale, GRID)
    fast, slow = np.empty_like(GRID), np.empty_like(GRID)
    mixture_density(*arguments, fast)
    plain(mixture_density)(*arguments, slow)
    np.testing.assert_allclose(fast, slow, rtol=1e-14)


def test_quantiles_invert_the_distribution() -> None:
    p = np.array([[1e-10, 0.01, 0.3], [0.5, 0.99, 1 - 1e-10]])
    np.testing.assert_allclose(MIXED.cdf(MIXED.quantile(p)), p, rtol=1e-11)
    assert MIXED.quantile(p).shape == p.shape
    assert MIXED.quantile(0.0) == -np.inf
    assert MIXED.quantile(1.0) == np.inf
    assert np.isnan(MIXED.quantile(1.1))


def test_quantiles_across_a_gap() -> None:
    gap = StudentMixture(np.array([0.5, 0.5]), np.array([50.0, 50.0]), np.array([-1e6, 1e6]), np.ones(2))
    np.testing.assert_allclose(gap.quantile(np.array([0.25, 0.75])), [-1e6, 1e6], rtol=1e-12)
    np.testing.assert_allclose(gap.cdf(gap.quantile(0.5)), 0.5, rtol=1e-12)


def test_quantiles_of_one_component_equal_scipy() -> None:
    p = np.linspace(0.001, 0.999, 21)
    narrow = StudentMixture(np.ones(1), np.array([5.0]), np.array([1e6]), np.array([1e-3]))
    np.testing.assert_allclose(narrow.quantile(p), stats.t.ppf(p, 5, 1e6, 1e-3), rtol=1e-15)


def test_mean_and_samples() -> None:
    mixture = StudentMixture(MIXED.weights[1:3] / 0.8, MIXED.dof[1:3], MIXED.location[1:3], MIXED.scale[1:3])
    assert mixture.mean() == pytest.approx((0.5 * 0.5 + 0.3 * 2.0) / 0.8)
    draws = mixture.sample(20_000, np.random.default_rng(0))
    assert stats.kstest(draws, mixture.cdf).pvalue > 1e-4


def test_empty_questions_get_empty_answers() -> None:
    assert MIXED.pdf(np.empty((0, 3))).shape == (0, 3)
    assert MIXED.cdf(np.empty(0)).shape == (0,)
    assert MIXED.quantile(np.empty(0)).shape == (0,)
