"""U and V of components, from their sums: U = V (Sxy/s2 + Q w0), V = (Sxx/s2 + Q)^-1 (notation of component.py).

Narrow ones are solved LANES at a time; wide matrices fill the processor's registers with their own rows.
"""

from polyarm.kernels._jit import inlined, no_refcount
from polyarm.kernels.lanes import LANES, load, splat, store, within
from polyarm.kernels.linalg.triangle import WIDE, factorise, invert_wide, row_of_square
from polyarm.kernels.linalg.triangles import factorise_all, invert_all
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.robust.component import MEAN, VAR, sxx_row, sxy_row
from polyarm.kernels.robust.records import Arms, Solver, n_features
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
def solve_lanes(T: Array, k: int, first: int, last: int, R: Array, solver: Solver) -> None:
    """Write U and V of LANES components, from their Sxx/s2 + Q in the factors and Sxy/s2 + Q w0 in the vectors, to
    columns k + first to k + last - 1 of T; the factors stay in the solver.
    """
    D, M, B, v, U = R.shape[0], solver.factors, solver.inverses, solver.vectors, solver.means
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
def solve_some(T: Array, k: int, first: int, last: int, w0: Array, R: Array, solver: Solver) -> None:
    """Compute U and V of components k + first to k + last - 1; the factors of LANES from k on stay in the solver."""
    D, M, v = R.shape[0], solver.factors, solver.vectors
    s, p = sxy_row(D), sxx_row(D)
    precision = 1.0 / within(first, last, load(T, VAR, k), 1.0)
    for i in range(D):
        store(load(T, s + i, k) * precision + w0[i] / R[i], v, i)
        for j in range(i + 1):
            store(load(T, p, k) * precision, M, i, j)
            p += 1
        store(load(M, i, i) + 1.0 / R[i], M, i, i)
    solve_lanes(T, k, first, last, R, solver)


@inlined
def lay_out(T: Array, k: int, w0: Array, R: Array, solver: Solver, lane: int) -> None:
    """Write the equations of component k into a lane."""
    D, M, v = R.shape[0], solver.factors, solver.vectors
    s, p = sxy_row(D), sxx_row(D)
    precision = 1.0 / T[VAR, k]
    for i in range(D):
        v[i, lane] = T[s + i, k] * precision + w0[i] / R[i]
        for j in range(i + 1):
            M[i, j, lane] = T[p, k] * precision
            p += 1
        M[i, i, lane] += 1.0 / R[i]


@no_refcount
def solve_arms(arms: Arms, solver: Solver) -> None:
    """Compute U and V of every arm's components, LANES at a time whichever arms they are of."""
    T, K, R, D, solved = arms.components, arms.sizes[:, K_USED], arms.features.part_var, n_features(arms), solver.solved
    arm, k, A = 0, 0, K.shape[0]
    while arm < A:
        to, slot, n = arm, k, 0  # where the first of them is
        while n < LANES and arm < A:
            if k < K[arm]:
                lay_out(T[arm], k, arms.centres[arm, :, D + 1], R, solver, n)
                k, n = k + 1, n + 1
            else:
                arm, k = arm + 1, 0
        if n > 0:
            solve_lanes(solved, 0, 0, LANES, R, solver)
        for lane in range(n):
            while slot == K[to]:
                to, slot = to + 1, 0
            for row in range(MEAN, solved.shape[0]):
                T[to, row, slot] = solved[row, lane]
            slot += 1


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
