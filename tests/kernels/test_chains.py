"""Moments by several chains: kernels equal NumPy and their plain twins."""

import numpy as np
import pytest

from polyarm.kernels import chains
from polyarm.kernels._jit import plain
from polyarm.types import Array


def moments(n: int, seed: int) -> Array:
    """Means and standard deviations of four arms by n chains."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.standard_normal((n, 4)), rng.gamma(2.0, size=(n, 4))], axis=1)


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("weight", [0.0, 1.0, 2.0])
def test_chains_are_pooled_as_a_mixture(n: int, weight: float) -> None:
    each = moments(n, n)
    variance = (each[:, 1] ** 2).mean(axis=0) + weight * each[:, 0].var(axis=0, ddof=1)
    out, twin = np.empty((2, 4)), np.empty((2, 4))
    chains.pool(each, weight, out)
    plain(chains.pool)(each, weight, twin)
    np.testing.assert_array_equal(out, twin)
    np.testing.assert_allclose(out, [each[:, 0].mean(axis=0), np.sqrt(variance)])


def test_many_contexts_are_pooled_one_by_one() -> None:
    each = np.stack([moments(3, seed) for seed in range(5)])
    out, twin, one = np.empty((5, 2, 4)), np.empty((5, 2, 4)), np.empty((2, 4))
    chains.pool_many(each, 2.0, out)
    plain(chains.pool_many)(each, 2.0, twin)
    for i in range(5):
        chains.pool(each[i], 2.0, one)
        np.testing.assert_array_equal(out[i], one)
        np.testing.assert_array_equal(twin[i], one)


def test_noise_is_pooled_on_the_scale_of_logarithms() -> None:
    each = np.random.default_rng(1).gamma(1.0, size=(4, 3))
    out, twin = np.empty(3), np.empty(3)
    chains.pool_noise(each, out)
    plain(chains.pool_noise)(each, twin)
    np.testing.assert_allclose(out, np.exp(np.log(each).mean(axis=0)))
    np.testing.assert_allclose(twin, out, rtol=1e-15)
