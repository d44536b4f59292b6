"""Pólya-Gamma draws against their moments and their density; wrong draws are told apart."""

import time

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid
from scipy.special import erfcx
from scipy.stats import kstest

from polyarm.kernels import polya_gamma
from polyarm.kernels._jit import plain, rng_handle
from polyarm.types import Array, Rng
from tests.statistics.mutants import mutant

Z = [0.0, 0.3, 1.0, 3.0, 3.2, 10.0, 40.0, 200.0]


def draws(z: float, n: int, seed: int) -> Array:
    out = np.empty(n)
    polya_gamma.fill(np.full(n, z), out, rng_handle(np.random.default_rng(seed)))
    return out


def moments(z: float) -> tuple[float, float]:
    """Mean and variance of PG(1, z)."""
    if z == 0.0:
        return 0.25, 1.0 / 24.0
    decay = np.exp(-z)  # (sinh z - z) / cosh(z / 2)^2 without large numbers
    return np.tanh(z / 2) / (2 * z), 2 * (1 - decay**2 - 2 * z * decay) / (1 + decay) ** 2 / (4 * z**3)


def density(x: Array, z: float) -> Array:
    """The density of PG(1, z) by its series (Polson, Scott & Windle 2013, section 2.2), its tilt taken into each term.

    cosh(z / 2) is written (1 + exp(-z)) exp(z / 2) / 2, so that nothing overflows.
    """
    odd = 2 * np.arange(60)[:, None] + 1.0
    signs = np.where(np.arange(60) % 2 == 0, 1.0, -1.0)[:, None]
    terms = signs * odd * np.exp(z / 2 - odd**2 / (8 * x) - z**2 * x / 2)
    return np.asarray(0.5 * (1 + np.exp(-z)) * terms.sum(axis=0) / np.sqrt(2 * np.pi * x**3))


def ks_pvalue(sample: Array, z: float) -> float:
    """Probability of a sample that differs more from PG(1, z), by the density's integral."""
    mean, variance = moments(z)
    grid = np.geomspace(max(mean - 9 * np.sqrt(variance), mean / 60), mean + 16 * np.sqrt(variance), 40_001)
    below = cumulative_trapezoid(density(grid, z), grid, initial=0.0)
    assert below[-1] == pytest.approx(1.0, abs=1e-5)
    return float(kstest(sample, lambda x: np.interp(x, grid, below)).pvalue)


@pytest.mark.parametrize("z", Z)
def test_draws_have_the_moments(z: float) -> None:
    n = 400_000
    sample = draws(z, n, seed=1)
    mean, variance = moments(z)
    assert abs(sample.mean() - mean) < 4.5 * np.sqrt(variance / n)
    fourth = np.mean((sample - mean) ** 4)
    assert abs(np.mean((sample - mean) ** 2) - variance) < 4.5 * np.sqrt((fourth - variance**2) / n)


@pytest.mark.parametrize("z", Z)
def test_draws_follow_the_density(z: float) -> None:
    assert ks_pvalue(draws(z, 100_000, seed=2), z) > 1e-4


def test_the_sign_of_z_does_not_matter() -> None:
    np.testing.assert_array_equal(draws(2.0, 100, seed=3), draws(-2.0, 100, seed=3))


def test_draws_are_finite_however_large_z_is() -> None:
    for z in (1e3, 1e6, 1e100, 1e-300):
        sample = draws(z, 1000, seed=4)
        assert np.isfinite(sample).all()
        assert (sample >= 0).all()
        assert sample.mean() == pytest.approx(moments(max(z, 1e-3))[0], rel=0.2)


@pytest.mark.parametrize("x", [0.0, 1e-3, 1.0, 5.0, 24.9, 25.0, 100.0, 1e8])
def test_the_scaled_error_function_equals_scipys(x: float) -> None:
    assert polya_gamma.scaled_erfc(x) == pytest.approx(erfcx(x), rel=1e-12)


def test_compiled_draws_equal_plain_ones() -> None:
    z, out = np.linspace(-12, 12, 200), np.empty(200)
    rng = np.random.default_rng(5)
    plain(polya_gamma.fill)(z, out, rng)
    fast, other = np.empty(200), np.random.default_rng(5)
    polya_gamma.fill(z, fast, rng_handle(other))
    np.testing.assert_allclose(fast, out, rtol=1e-13)
    assert rng.random() == other.random()


def one_sided(_c: float) -> float:
    """A share of proposals beyond the cut that is wrong."""
    return 0.4


def without_tilt(_c: float, rng: Rng) -> float:
    """The proposal below the cut as if z were 0."""
    return float(plain(polya_gamma.draw_inverse_normal)(0.0, rng))


@pytest.mark.parametrize("bug", [{"share_beyond": one_sided}, {"draw_inverse_normal": without_tilt}])
def test_planted_bugs_are_found(bug: dict[str, object]) -> None:
    out = np.empty(60_000)
    mutant(polya_gamma.fill, bug)(np.full(len(out), 2.0), out, np.random.default_rng(6))
    assert ks_pvalue(out, 2.0) < 1e-4


def test_a_truncated_sum_of_gammas_is_found() -> None:
    def truncated(z: float, n: int, rng: Rng) -> Array:
        places = np.arange(1, 21) - 0.5
        return np.asarray((rng.standard_gamma(1.0, (n, 20)) / (places**2 + (z / (2 * np.pi)) ** 2)).sum(1)) / (
            2 * np.pi**2
        )

    assert ks_pvalue(truncated(1.0, 100_000, np.random.default_rng(7)), 1.0) < 1e-4


def test_a_draw_takes_about_a_microsecond_at_most() -> None:
    draws(1.0, 10, seed=8)
    start = time.perf_counter()
    draws(1.0, 100_000, seed=8)
    assert time.perf_counter() - start < 0.5
