"""U and V of components, from their sums: U = V (Sxy/s2 + Q w0), V = (Sxx/s2 + Q)^-1 (notation of component.py).

Narrow ones are solved LANES at a time; wide matrices fill the processor's registers with their own rows.
"""

from polyarm.kernels._jit import no_refcount
from polyarm.kernels.lanes import LANES, load, splat, store, within
from polyarm.kernels.linalg.triangle import WIDE, factorise, invert_wide, row_of_square
from polyarm.kernels.linalg.triangles import factorise_all, invert_all
from polyarm.kernels.robust.component import MEAN, VAR, sxx_row, sxy_row
from polyarm.kernels.robust.records import Solver
from polyarm.types import Array


@no_refcount
def information(T: Array, k: int, R: Array, M: Array) -> None:
    """Write the Cholesky factor of Sxx/s2 + Q into M."""
    D = R.shape[0]
    p = sxx_row(D)
    s2 = T[VAR, k]
    for i in range(D):
        for j in range(i + 1):
            M[i, j] = T[p, k] / s2
            p += 1
        M[i, i] += 1.0 / R[i]
    factorise(M, R, D)


@no_refcount
def solve_wide(T: Array, k: int, w0: Array, R: Array, solver: Solver) -> None:
    """Compute U and V of component k; its factor stays in the solver."""
    M, B, v, row = solver.M, solver.B, solver.v, solver.row
    D = R.shape[0]
    information(T, k, R, M)
    invert_wide(M, B, D)
    s = sxy_row(D)
    for i in range(D):
        v[i] = T[s + i, k] / T[VAR, k] + w0[i] / R[i]
        T[MEAN + i, k] = 0.0
    p = MEAN + D
    for i in range(D):
        row_of_square(B, i, D, row)
        for j in range(i + 1):
            t = row[j]
            T[p, k] = t
            p += 1
            T[MEAN + i, k] += t * v[j]
            if j < i:
                T[MEAN + j, k] += t * v[i]


@no_refcount
def solve_some(T: Array, k: int, first: int, last: int, w0: Array, R: Array, solver: Solver) -> None:
    """Compute U and V of components k + first to k + last - 1; the factors of LANES from k on stay in the solver."""
    D, M, B, v, U = R.shape[0], solver.factors, solver.inverses, solver.vectors, solver.means
    s, p = sxy_row(D), sxx_row(D)
    precision = 1.0 / within(first, last, load(T, VAR, k), 1.0)
    for i in range(D):
        store(load(T, s + i, k) * precision + w0[i] / R[i], v, i)
        for j in range(i + 1):
            store(load(T, p, k) * precision, M, i, j)
            p += 1
        store(load(M, i, i) + 1.0 / R[i], M, i, i)
    factorise_all(M, R, D, solver.inverse_diagonal)
    invert_all(M, solver.inverse_diagonal, D, B)
    p = MEAN + D
    for i in range(D):
        vi, here = load(v, i), splat(0.0)
        for j in range(i + 1):
            V = splat(0.0)
            for m in range(i, D):
                V += load(B, i, m) * load(B, j, m)
            store(within(first, last, V, load(T, p, k)), T, p, k)
            p += 1
            here += V * load(v, j)
            if j < i:
                store(load(U, j) + V * vi, U, j)
        store(here, U, i)
    for i in range(D):
        store(within(first, last, load(U, i), load(T, MEAN + i, k)), T, MEAN + i, k)


@no_refcount
def solve(T: Array, k: int, w0: Array, R: Array, solver: Solver) -> None:
    """Compute U and V of component k."""
    if R.shape[0] >= WIDE:
        solve_wide(T, k, w0, R, solver)
    else:
        lane = k % LANES
        solve_some(T, k - lane, lane, lane + 1, w0, R, solver)


@no_refcount
def solve_all(T: Array, K: int, w0: Array, R: Array, solver: Solver) -> None:
    """Compute U and V of an arm's K components."""
    for k in range(0, K, LANES):
        last = min(K - k, LANES)
        if R.shape[0] < WIDE:
            solve_some(T, k, 0, last, w0, R, solver)
        else:
            for lane in range(last):
                solve_wide(T, k + lane, w0, R, solver)
