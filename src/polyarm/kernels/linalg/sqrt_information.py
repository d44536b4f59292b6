"""A linear-Gaussian posterior in square-root information form: exact to rounding whatever the scale of the data.

x    (d,)        context            y   reward
R    (d+1, d+1)  upper triangular factor of the information about (w, y):  the rows r of [prior; data] are kept as
                 R'R = sum r r',  r = (x, y);  R[:d, :d]'R[:d, :d] = V^-1,  R[:d, d] = R[:d, :d] U,
                 and R[d, d]^2 is what remains of sum (y - x'U)^2 + (U - U0)'V0^-1(U - U0), twice the growth of b
                 R[d, 0], below the diagonal and no part of the factor, is the number of rewards whose rows it has
                 absorbed for good: 0 for a prior
row  (d+1,)      the row being rotated in; it is used up
"""

import math

import numpy as np

from polyarm.kernels._jit import inlined, kernel
from polyarm.types import Array


@kernel
def rotate_in(R: Array, row: Array) -> None:
    """Add the information of one row by Givens rotations."""
    m = row.shape[0]
    for i in range(m):
        if row[i] != 0.0:
            r = math.hypot(R[i, i], row[i])
            c = R[i, i] / r
            s = row[i] / r
            R[i, i] = r
            row[i] = 0.0
            for j in range(i + 1, m):
                old = R[i, j]
                R[i, j] = c * old + s * row[j]
                row[j] = c * row[j] - s * old


@inlined
def n_absorbed(R: Array) -> float:
    """Rewards, perhaps faded to a soft count, that were absorbed for good."""
    return R[R.shape[0] - 1, 0]


@kernel
def absorb(R: Array, row: Array) -> None:
    """Add the information of one reward for good."""
    rotate_in(R, row)
    R[R.shape[0] - 1, 0] += 1.0


@kernel
def fade(R: Array, R0: Array, share: float) -> None:
    """Let only a share of the rewards' information remain: R'R becomes share R'R + (1 - share) R0'R0."""
    m = R.shape[0]
    left = share * n_absorbed(R)
    for i in range(m):
        for j in range(i, m):
            R[i, j] *= math.sqrt(share)
    for i in range(m):
        row = np.zeros(m)
        for j in range(i, m):
            row[j] = math.sqrt(1.0 - share) * R0[i, j]
        rotate_in(R, row)
    R[m - 1, 0] = left


@kernel
def leverage(R: Array, x: Array, u: Array) -> tuple[float, float]:
    """The pair x'U and x'Vx, by one triangular solve u = R^-T x."""
    d = x.shape[0]
    mean = 0.0
    square = 0.0
    for i in range(d):
        t = x[i]
        for j in range(i):
            t -= R[j, i] * u[j]
        u[i] = t / R[i, i]
        mean += u[i] * R[i, d]
        square += u[i] * u[i]
    return mean, square


@kernel
def inverse(R: Array, M: Array) -> float:
    """Write M = R[:d, :d]^-1, so that V = MM', packed by columns of its upper triangle; return log|V|."""
    d = R.shape[0] - 1
    log_det = 0.0
    for j in range(d):
        start = j * (j + 1) // 2
        log_det -= 2.0 * math.log(abs(R[j, j]))
        M[start + j] = 1.0 / R[j, j]
        for i in range(j - 1, -1, -1):
            t = 0.0
            for k in range(i + 1, j + 1):
                t -= R[i, k] * M[start + k]
            M[start + i] = t / R[i, i]
    return log_det


@kernel
def coefficients(R: Array, U: Array) -> None:
    """Write U, the solution of R[:d, :d] U = R[:d, d]."""
    d = R.shape[0] - 1
    for i in range(d - 1, -1, -1):
        t = R[i, d]
        for j in range(i + 1, d):
            t -= R[i, j] * U[j]
        U[i] = t / R[i, i]
