"""Factors and inverses of four matrices at a time are those of each alone."""

import numpy as np
import pytest

from polyarm.kernels._jit import kernel, plain
from polyarm.kernels.lanes import LANES
from polyarm.kernels.linalg import triangle, triangles
from polyarm.types import Array
from tests.kernels.linalg.test_triangle import factor, spread


@kernel
def both(M: Array, variance: Array, inverse_diagonal: Array, B: Array) -> None:
    triangles.factorise_all(M, variance, M.shape[0], inverse_diagonal)
    triangles.invert_all(M, inverse_diagonal, M.shape[0], B)


@pytest.mark.parametrize("d", [1, 2, 5, 11, 23])
def test_four_matrices_are_factorised_and_inverted_as_each_alone(d: int) -> None:
    A, variance = spread(d)
    several = [A * scale for scale in (1.0, 7.0, 1e6)]
    M = np.full((d, d, LANES), np.nan)  # the last lane stands for no matrix
    for lane, each in enumerate(several):
        M[:, :, lane] = each
    for run in (both, plain(both)):
        F, inverse_diagonal, B = M.copy(), np.empty((d, LANES)), np.empty((d, d, LANES))
        run(F, variance, inverse_diagonal, B)
        for lane, each in enumerate(several):
            expected = factor(each, variance)
            np.testing.assert_allclose(np.tril(F[:, :, lane]), expected, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(inverse_diagonal[:, lane], 1 / np.diag(expected), rtol=1e-12)
            upper = np.triu(B[:, :, lane])
            np.testing.assert_allclose(upper.T @ expected, np.eye(d), atol=1e-9)


@pytest.mark.parametrize("d", [2, 9])
def test_pivots_are_at_least_those_of_the_prior(d: int) -> None:
    _, variance = spread(d)
    M = np.repeat((np.ones((d, d)) - 1e-3 * np.eye(d))[:, :, None], LANES, axis=2)  # not positive definite
    plain(triangles.factorise_all)(M, variance, d, np.empty((d, LANES)))
    assert (np.einsum("iil->il", M) >= np.sqrt(1 / variance)[:, None] * (1 - 1e-15)).all()


@kernel
def alike(M: Array, v: Array, variance: Array) -> None:
    triangles.factorise_alike(M, variance, M.shape[0])
    triangles.solve_alike(M, v, M.shape[0])


@kernel
def alone(M: Array, v: Array, variance: Array) -> None:
    triangle.factorise(M, variance, M.shape[0])
    triangle.solve_lower(M, v, M.shape[0])
    triangle.solve_upper(M, v, M.shape[0])


@pytest.mark.parametrize("d", [1, 2, 5, 11, 23])
def test_four_matrices_have_the_digits_of_each_alone(d: int) -> None:
    A, variance = spread(d)
    several = [A, A * 7.0, np.ones((d, d)) - 1e-3 * np.eye(d)]  # the last is not positive definite
    M, v = np.full((d, d, LANES), np.nan), np.random.default_rng(0).standard_normal((d, LANES))
    for lane, each in enumerate(several):
        M[:, :, lane] = each
    for run in (alike, plain(alike)):
        F, solved = M.copy(), v.copy()
        run(F, solved, variance)
        for lane, each in enumerate(several):
            mine, right = each.copy(), v[:, lane].copy()
            alone(mine, right, variance)
            np.testing.assert_array_equal(np.tril(F[:, :, lane]), np.tril(mine))
            np.testing.assert_array_equal(solved[:, lane], right)
