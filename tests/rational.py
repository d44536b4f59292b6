"""A component's posterior in rational arithmetic: no rounding at all."""

from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np

from polyarm.inference import GibbsEngine, GibbsState
from polyarm.models import NormalInverseGamma, StudentMixture
from polyarm.types import Array

Matrix: TypeAlias = list[list[Fraction]]


class Moments(NamedTuple):
    """Mean x'U, leverage x'Vx and scale b of a component in a context."""

    mean: float
    leverage: float
    scale: float


def exact_moments(base: NormalInverseGamma, X: Array, y: Array, x: Array) -> Moments:
    """The moments in context x after these rewards, rounded once."""
    V0 = [[Fraction(v) for v in row] for row in base.covariance_matrix.tolist()]
    U0 = [Fraction(v) for v in base.mean_vector.tolist()]
    information = inverse(V0)
    start = times(information, U0)
    rows = [[Fraction(v) for v in row] for row in X.tolist()]
    rewards = [Fraction(v) for v in y.tolist()]
    d = range(len(U0))
    after = [[information[i][j] + sum(r[i] * r[j] for r in rows) for j in d] for i in d]
    h = [start[i] + sum(r[i] * t for r, t in zip(rows, rewards, strict=True)) for i in d]
    V = inverse(after)
    U = times(V, h)
    squares = sum(t * t for t in rewards) + dot(U0, start) - dot(U, h)
    at = [Fraction(v) for v in x.tolist()]
    return Moments(float(dot(at, U)), float(dot(at, times(V, at))), float(Fraction(base.scale) + squares / 2))


def dot(a: list[Fraction], b: list[Fraction]) -> Fraction:
    return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0))


def times(A: Matrix, b: list[Fraction]) -> list[Fraction]:
    return [dot(row, b) for row in A]


def inverse(A: Matrix) -> Matrix:
    """The inverse by Gauss and Jordan."""
    n = len(A)
    rows = [row + [Fraction(int(i == j)) for j in range(n)] for i, row in enumerate(A)]
    for i in range(n):
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for k in range(n):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[n:] for row in rows]


def assert_component(
    found: StudentMixture, k: int, base: NormalInverseGamma, n: int, exact: Moments, rtol: float
) -> None:
    """Check that component k of a predictive distribution is the exact one."""
    shape = base.shape + 0.5 * n
    spread = np.sqrt(exact.scale / shape * (1 + exact.leverage))
    assert found.dof[k] == 2 * shape
    np.testing.assert_allclose(found.scale[k], spread, rtol=rtol)
    np.testing.assert_allclose(found.location[k], exact.mean, rtol=rtol, atol=rtol * spread)


def assert_exact(engine: GibbsEngine, state: GibbsState, context: Array, rtol: float = 1e-9) -> None:
    """Check every component of every arm against its own rewards, in this context and in the last one it saw."""
    for arm, model in enumerate(engine.arms):
        n = int(state.sizes[arm, 1])
        data, labels = state.data[arm][:n], engine.assignments(state, arm)
        X, y = data[:, :-2], data[:, -2]
        for k in range(int(state.sizes[arm, 0])):
            mine = labels == k
            for x in (context, X[mine][-1]):
                exact = exact_moments(model.base, X[mine], y[mine], x)
                assert_component(engine.predictive(state, x, arm), k, model.base, int(mine.sum()), exact, rtol)
