"""Factors of narrow and of wide matrices: what they are by definition, and the same digits both ways."""

import math

import numpy as np
import pytest

from polyarm.kernels.linalg import triangle
from polyarm.types import Array

SIZES = [1, 2, 5, triangle.WIDE - 1, triangle.WIDE, triangle.WIDE + 1, 27, 65]


def spread(d: int) -> tuple[Array, Array]:
    """diag(1/variance) plus a matrix of rank d / 2."""
    rng = np.random.default_rng(d)
    X, variance = rng.standard_normal((d // 2, d)), rng.gamma(2.0, size=d)
    return np.diag(1 / variance) + X.T @ X, variance


def factor(A: Array, variance: Array) -> Array:
    """The textbook's loops, one sum after the other."""
    F = np.tril(A)
    for i in range(len(F)):
        for j in range(i + 1):
            t = F[i, j]
            for k in range(j):
                t -= F[i, k] * F[j, k]
            F[i, j] = t / F[j, j] if j < i else math.sqrt(max(t, 1.0 / variance[i]))
    return F


@pytest.mark.parametrize("d", SIZES)
def test_factors_have_the_digits_of_the_textbooks_loops_at_any_width(d: int) -> None:
    A, variance = spread(d)
    M = A.copy()
    triangle.factorise(M, variance, d)
    np.testing.assert_array_equal(np.tril(M), factor(A, variance))
    np.testing.assert_allclose(np.tril(M) @ np.tril(M).T, A, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("d", SIZES)
def test_pivots_are_at_least_those_of_the_prior(d: int) -> None:
    _, variance = spread(d)
    M = np.ones((d, d)) - 1e-3 * np.eye(d)  # not positive definite
    triangle.factorise(M, variance, d)
    assert (np.diag(M) >= np.sqrt(1 / variance) * (1 - 1e-15)).all()


@pytest.mark.parametrize("d", [d for d in SIZES if d >= triangle.WIDE])
def test_rows_of_the_inverse_are_sums_in_one_order(d: int) -> None:
    A, variance = spread(d)
    F, M, B, row = factor(A, variance), A.copy(), np.empty((d, d)), np.empty(d)
    triangle.factorise(M, variance, d)
    triangle.invert_wide(M, B, d)
    whole = np.triu(B)
    for i in range(d):
        for j in range(i + 1, d):
            assert whole[i, j] == -sum((F[j, k] * whole[i, k] for k in range(i, j)), 0.0) / F[j, j]
    np.testing.assert_allclose(whole.T @ F, np.eye(d), atol=1e-9)
    for i in range(d):
        triangle.row_of_square(B, i, d, row)
        expected = [sum((whole[i, m] * whole[j, m] for m in range(i, d)), 0.0) for j in range(i + 1)]
        np.testing.assert_array_equal(row[: i + 1], expected)
        np.testing.assert_allclose(row[: i + 1], np.linalg.inv(A)[i, : i + 1], rtol=1e-7, atol=1e-9)
