"""The centre w0 of an arm's components, and their slopes around it.

Given the noise variances everything is Gaussian: w0 ~ N(mu, (F F')^-1) with slopes integrated out, and w_k given w0.

centre  (D, D + 2): F (lower triangle), mu, and w0 as last drawn
"""

from polyarm.kernels._jit import inlined, no_refcount
from polyarm.kernels.lanes import LANES, load, splat, store, sum_of, within
from polyarm.kernels.linalg.triangle import factorise, solve_lower, solve_upper
from polyarm.kernels.linalg.triangles import factorise_alike, solve_alike
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.robust.component import MEAN, VAR, sxy_row, w_row
from polyarm.kernels.robust.records import Arms, Features, Solver
from polyarm.kernels.robust.solving import information
from polyarm.types import Array, Rng


@inlined
def add_components(T: Array, k: int, n: int, R: Array, centre: Array, solver: Solver) -> None:
    """Add the sums of R - V and of V Sxy/s2 over n components from k on, at most LANES, to those in `centre`."""
    D, t, Vt = R.shape[0], solver.vectors, solver.means
    s, p = sxy_row(D), MEAN + D
    precision = 1.0 / within(0, n, load(T, VAR, k), 1.0)
    for i in range(D):
        store(load(T, s + i, k) * precision, t, i)
    for i in range(D):
        ti, here = load(t, i), splat(0.0)
        for j in range(i):
            V = load(T, p, k)
            centre[i, j] -= sum_of(within(0, n, V, 0.0))
            here += V * load(t, j)
            store(load(Vt, j) + V * ti, Vt, j)
            p += 1
        V = load(T, p, k)
        centre[i, i] += sum_of(within(0, n, R[i] - V, 0.0))
        store(here + V * ti, Vt, i)
        p += 1
    for i in range(D):
        centre[i, D] += sum_of(within(0, n, load(Vt, i), 0.0))


@no_refcount
def sum_up(T: Array, K: int, R: Array, centre: Array, solver: Solver) -> None:
    """Write the sums of R - V and of V Sxy/s2 over an arm's components into `centre`."""
    D = R.shape[0]
    for i in range(D):
        for j in range(i + 1):
            centre[i, j] = 0.0
        centre[i, D] = 0.0
    for k in range(0, K, LANES):
        add_components(T, k, K - k, R, centre, solver)


@no_refcount
def find_centre(T: Array, K: int, centre: Array, features: Features, solver: Solver) -> None:
    """Write factor and mean of w0 with the slopes integrated out: information 1/L + sum_k (Q - Q V_k Q)."""
    R, L = features.part_var, features.arm_var
    D = R.shape[0]
    sum_up(T, K, R, centre, solver)
    Q = solver.v
    for i in range(D):
        Q[i] = 1.0 / R[i]
        for j in range(i + 1):
            centre[i, j] = Q[i] * centre[i, j] * Q[j]
        centre[i, i] += 1.0 / L[i]
        centre[i, D] = Q[i] * centre[i, D] + features.centre[i] / L[i]
    factorise(centre, L, D)
    mean = centre[:, D]
    solve_lower(centre, mean, D)
    solve_upper(centre, mean, D)


@no_refcount
def find_centres(arms: Arms, solver: Solver) -> None:
    """`find_centre` of every arm, LANES at a time: the same to the last bit."""
    R, L, c = arms.features.part_var, arms.features.arm_var, arms.features.centre
    D, A, Q, M, v = R.shape[0], arms.sizes.shape[0], solver.v, solver.factors, solver.vectors
    for i in range(D):
        Q[i] = 1.0 / R[i]
    for first in range(0, A, LANES):
        n = min(A - first, LANES)
        for arm in range(first, first + n):
            sum_up(arms.components[arm], arms.sizes[arm, K_USED], R, arms.centres[arm], solver)
        for arm in range(first, first + n):
            centre, lane = arms.centres[arm], arm - first
            for i in range(D):
                for j in range(i + 1):
                    M[i, j, lane] = Q[i] * centre[i, j] * Q[j]
                M[i, i, lane] += 1.0 / L[i]
                v[i, lane] = Q[i] * centre[i, D] + c[i] / L[i]
        factorise_alike(M, L, D)
        solve_alike(M, v, D)
        for arm in range(first, first + n):
            centre, lane = arms.centres[arm], arm - first
            for i in range(D):
                for j in range(i + 1):
                    centre[i, j] = M[i, j, lane]
                centre[i, D] = v[i, lane]


@inlined
def draw_centre(centre: Array, v: Array, rng: Rng) -> None:
    """Draw w0 from its posterior, mu + F^-T N(0, I)."""
    D = v.shape[0]
    for i in range(D):
        v[i] = rng.standard_normal()
    solve_upper(centre, v, D)
    for i in range(D):
        centre[i, D + 1] = centre[i, D] + v[i]


@inlined
def draw_slopes(T: Array, k: int, w0: Array, R: Array, solver: Solver, rng: Rng) -> None:
    """Draw w_k given w0 and its noise variance."""
    M, v = solver.M, solver.v
    D = v.shape[0]
    information(T, k, R, M)
    for i in range(D):
        v[i] = T[sxy_row(D) + i, k] / T[VAR, k] + w0[i] / R[i]
    solve_lower(M, v, D)
    for i in range(D):
        v[i] += rng.standard_normal()
    solve_upper(M, v, D)
    for i in range(D):
        T[w_row(D) + i, k] = v[i]
