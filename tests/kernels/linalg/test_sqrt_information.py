"""Square-root information against dense linear algebra."""

import numpy as np
import pytest

from polyarm.kernels.linalg import sqrt_information
from polyarm.models import NormalInverseGamma
from tests import reference


@pytest.mark.parametrize("dim", [1, 2, 8, 64])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_rotating_rows_in_equals_least_squares(dim: int, size: float) -> None:
    rng = np.random.default_rng(dim)
    base = NormalInverseGamma(dim, 0.5, 2.0, 1.3, 0.7)
    X = size * rng.standard_normal((3 * dim, dim))
    y = X @ rng.standard_normal(dim) + rng.standard_normal(3 * dim)
    R = base.sqrt_information
    for x, reward in zip(X, y, strict=True):
        sqrt_information.rotate_in(R, np.append(x, reward))
    fresh = reference.fresh_component(base, X, y)
    U, packed, M = np.empty(dim), np.empty(dim * (dim + 1) // 2), np.zeros((dim, dim))
    sqrt_information.coefficients(R, U)
    log_det = sqrt_information.inverse(R, packed)
    M.T[np.tril_indices(dim)] = packed
    expected = np.asarray(fresh["covariance"])
    np.testing.assert_allclose(U, fresh["mean"], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(M @ M.T, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(base.scale + 0.5 * R[dim, dim] ** 2, fresh["scale"], rtol=1e-8)
    assert log_det == pytest.approx(np.linalg.slogdet(expected)[1], rel=1e-8, abs=1e-8)
    mean, square = sqrt_information.leverage(R, X[0], np.empty(dim))
    assert mean == pytest.approx(X[0] @ np.asarray(fresh["mean"]), rel=1e-8, abs=1e-8)
    assert square == pytest.approx(X[0] @ expected @ X[0], rel=1e-6)
