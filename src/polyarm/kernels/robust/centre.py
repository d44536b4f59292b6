"""The centre w0 of an arm's components, and their slopes around it.

Given the noise variances everything is Gaussian: w0 ~ N(mu, (F F')^-1) with slopes integrated out, and w_k given w0.

centre  (D, D + 2): F (lower triangle), mu, and w0 as last drawn
"""

from polyarm.kernels._jit import inlined, no_refcount
from polyarm.kernels.linalg.triangle import factorise, solve_lower, solve_upper
from polyarm.kernels.robust.component import MEAN, VAR, information, solve, sxy_row, w_row
from polyarm.kernels.robust.records import Features, Solver
from polyarm.types import Array, Rng


@inlined
def find_centre(T: Array, K: int, centre: Array, features: Features) -> None:
    """Write factor and mean of w0 with the slopes integrated out: information 1/L + sum_k (Q - Q V_k Q)."""
    D = features.unit.shape[0]
    for i in range(D):
        for j in range(i):
            centre[i, j] = 0.0
        centre[i, i] = 1.0 / features.arm_var[i]
        centre[i, D] = features.centre[i] / features.arm_var[i]
    s = sxy_row(D)
    for k in range(K):
        p = MEAN + D
        s2 = T[VAR, k]
        for i in range(D):
            Qi = 1.0 / features.part_var[i]
            for j in range(i):
                V = T[p, k]
                p += 1
                Qj = 1.0 / features.part_var[j]
                centre[i, j] -= Qi * V * Qj
                centre[i, D] += Qi * V * T[s + j, k] / s2
                centre[j, D] += Qj * V * T[s + i, k] / s2
            centre[i, i] += Qi * (features.part_var[i] - T[p, k]) * Qi
            centre[i, D] += Qi * T[p, k] * T[s + i, k] / s2
            p += 1
    factorise(centre, features.arm_var, D)
    mean = centre[:, D]
    solve_lower(centre, mean, D)
    solve_upper(centre, mean, D)


@no_refcount
def rebuild_arm(T: Array, K: int, centre: Array, features: Features, solver: Solver) -> None:
    """Compute U and V of an arm's components and the posterior of its centre for the shared values of now."""
    w0 = centre[:, features.unit.shape[0] + 1]
    for k in range(K):
        solve(T, k, w0, features.part_var, solver)
    find_centre(T, K, centre, features)


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
