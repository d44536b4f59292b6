"""Small symmetric matrices by their Cholesky factor, in place and without allocating.

M  (d, d)  diag(1/variance) plus a positive semidefinite matrix, then its lower factor F with F F' = M
           (the upper part is not read); its pivots are at least 1/variance, whatever rounding says
"""

import math

from polyarm.kernels._jit import inlined, no_refcount
from polyarm.types import Array


@no_refcount
def factorise(M: Array, variance: Array, d: int) -> None:
    """Replace the lower triangle of M by its Cholesky factor."""
    for i in range(d):
        for j in range(i):
            t = M[i, j]
            for k in range(j):
                t -= M[i, k] * M[j, k]
            M[i, j] = t / M[j, j]
        t = M[i, i]
        for k in range(i):
            t -= M[i, k] * M[i, k]
        M[i, i] = math.sqrt(max(t, 1.0 / variance[i]))


@inlined
def solve_lower(F: Array, v: Array, d: int) -> None:
    """Replace v by F^-1 v."""
    for i in range(d):
        t = v[i]
        for j in range(i):
            t -= F[i, j] * v[j]
        v[i] = t / F[i, i]


@inlined
def solve_upper(F: Array, v: Array, d: int) -> None:
    """Replace v by F^-T v."""
    for i in range(d - 1, -1, -1):
        t = v[i]
        for j in range(i + 1, d):
            t -= F[j, i] * v[j]
        v[i] = t / F[i, i]


@no_refcount
def invert_lower(F: Array, B: Array, d: int) -> None:
    """Write B = F^-T: upper triangular, its row i is column i of F^-1."""
    for i in range(d):
        B[i, i] = 1.0 / F[i, i]
        for j in range(i + 1, d):
            t = 0.0
            for k in range(i, j):
                t -= F[j, k] * B[i, k]
            B[i, j] = t / F[j, j]
