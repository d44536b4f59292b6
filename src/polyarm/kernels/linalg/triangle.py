"""Small symmetric matrices by their Cholesky factor, in place and without allocating.

M  (d, d)  diag(1/variance) plus a positive semidefinite matrix, then its lower factor F with F F' = M
           (the upper part is room to work in); its pivots are at least 1/variance, whatever rounding says

Sums of products have their terms in one order, whatever the width: wide matrices only work on many sums at a time.
"""

import math

from polyarm.kernels._jit import inlined, no_refcount
from polyarm.types import Array

WIDE = 24  # columns from which rows are worked on as vectors


@no_refcount
def factorise_wide(M: Array, variance: Array, d: int) -> None:
    """As `factorise`, a column of F at a time from what is left of M; above the diagonal stands F'."""
    for j in range(d):
        M[j, j] = math.sqrt(max(M[j, j], 1.0 / variance[j]))
        column = M[j, j + 1 : d]
        for i in range(d - j - 1):
            M[j + 1 + i, j] /= M[j, j]
            column[i] = M[j + 1 + i, j]
        for i in range(d - j - 1):
            f, row = column[i], M[j + 1 + i, j + 1 : j + 2 + i]
            for k in range(i + 1):
                row[k] -= f * column[k]


@no_refcount
def factorise(M: Array, variance: Array, d: int) -> None:
    """Replace the lower triangle of M by its Cholesky factor."""
    if d >= WIDE:
        factorise_wide(M, variance, d)
        return
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
def invert_wide(F: Array, B: Array, d: int) -> None:
    """Write B = F^-T, upper triangular, and B' below it, a row at a time, four columns of F off it at once.

    Where `factorise` was wide, F' stands above F.
    """
    for i in range(d):
        row = B[i]
        row[:] = 0.0
        row[i] = 1.0 / F[i, i]
        k = i
        while k < d:
            last = min(k + 4, d)
            for m in range(k, last):
                if m > i:
                    row[m] /= F[m, m]
                for j in range(m + 1, last):
                    row[j] -= F[m, j] * row[m]
            if last < d:
                b0, b1, b2, b3 = row[k], row[k + 1], row[k + 2], row[k + 3]
                f0, f1, f2, f3 = F[k, last:d], F[k + 1, last:d], F[k + 2, last:d], F[k + 3, last:d]
                rest = row[last:d]
                for j in range(d - last):
                    rest[j] = (((rest[j] - f0[j] * b0) - f1[j] * b1) - f2[j] * b2) - f3[j] * b3
            k = last
    for i in range(d):
        for j in range(i):
            B[i, j] = B[j, i]


@no_refcount
def row_of_square(B: Array, i: int, d: int, out: Array) -> None:
    """Write row i of B B', up to its diagonal, where B is upper triangular and B' stands below it."""
    row = out[: i + 1]
    row[:] = 0.0
    m = i
    while m + 4 <= d:  # as many at a time as there are registers for
        b0, b1, b2, b3 = B[m, i], B[m + 1, i], B[m + 2, i], B[m + 3, i]
        c0, c1, c2, c3 = B[m, : i + 1], B[m + 1, : i + 1], B[m + 2, : i + 1], B[m + 3, : i + 1]
        for j in range(i + 1):
            row[j] = (((row[j] + b0 * c0[j]) + b1 * c1[j]) + b2 * c2[j]) + b3 * c3[j]
        m += 4
    for n in range(m, d):
        b, c = B[n, i], B[n, : i + 1]
        for j in range(i + 1):
            row[j] += b * c[j]
