"""Posterior of an arm's mean reward in one context, given the seating and what the arms share.

Given the noise variances everything is Gaussian: w0 ~ N(mu, (F F')^-1) and, given w0, x'w_k = x'V_k Sxy_k/s2_k + a_k'w0
plus N(0, x'V_k x) with a_k = Q V_k x.  A component nobody has seen has x'w = x'w0 plus N(0, x'Rx).

m  (K+1,)     E[x'w_k]: the last entry is for the unseen
v  (K+1,)     variance of x'w_k given w0: x'V_k x, and x'Rx for one unseen component
G  (K+1, D)   F^-1 a_k, so that G_j G_k' is the covariance that x'w_j and x'w_k owe to w0
c  (K+1,)     n_1, ..., n_K, gamma, each times the component's density at x, scaled to the same sum (robust_places.py)
p             weights ~ Dirichlet(c); the unseen part is a whole Dirichlet process
centres[arm]  (D, D + 2): F (lower triangle), mu, and w0 as last drawn
"""

import math

import numpy as np

from polyarm.kernels._jit import Stream, generator, kernel, step
from polyarm.kernels.means import n_held
from polyarm.kernels.robust_component import MEAN, VAR, sxy_row
from polyarm.kernels.robust_places import local_counts
from polyarm.kernels.robust_scales import ARM_VAR, BASE, CENTRE, GAMMA, ORIGIN, PART_VAR, TAU, TIED_SD
from polyarm.kernels.triangle import factorise, solve_lower, solve_upper
from polyarm.types import Array, IntArray, Rng

TAIL = 1e-3  # stick-breaking stops when less than this mass remains; the remainder is one atom
MAX_STICKS = 1000
LANES = 16  # contexts that go through the matrices together
TIE_INFLATION = 1.4  # the mean of an arm in one context is known less well than over all contexts


@step
def find_centre(T: Array, K: int, centre: Array, columns: Array) -> None:
    """Write factor and mean of w0 with the slopes integrated out: information 1/L + sum_k (Q - Q V_k Q)."""
    D = columns.shape[1]
    for i in range(D):
        for j in range(i):
            centre[i, j] = 0.0
        centre[i, i] = 1.0 / columns[ARM_VAR, i]
        centre[i, D] = columns[CENTRE, i] / columns[ARM_VAR, i]
    s = sxy_row(D)
    for k in range(K):
        p = MEAN + D
        s2 = T[VAR, k]
        for i in range(D):
            Qi = 1.0 / columns[PART_VAR, i]
            for j in range(i):
                V = T[p, k]
                p += 1
                Qj = 1.0 / columns[PART_VAR, j]
                centre[i, j] -= Qi * V * Qj
                centre[i, D] += Qi * V * T[s + j, k] / s2
                centre[j, D] += Qj * V * T[s + i, k] / s2
            centre[i, i] += Qi * (columns[PART_VAR, i] - T[p, k]) * Qi
            centre[i, D] += Qi * T[p, k] * T[s + i, k] / s2
            p += 1
    factorise(centre, columns[ARM_VAR], D)
    mean = centre[:, D]
    solve_lower(centre, mean, D)
    solve_upper(centre, mean, D)


@step
def locate(T: Array, K: int, centre: Array, columns: Array, x: Array, m: Array, v: Array, G: Array) -> None:
    """Write m, v and G of every component in use and of the unseen."""
    D = columns.shape[1]
    for k in range(K):
        g = G[k]
        for i in range(D):
            g[i] = 0.0
        mean = 0.0
        p = MEAN + D
        for i in range(D):
            mean += x[i] * T[MEAN + i, k]
            for j in range(i):
                g[i] += T[p, k] * x[j]
                g[j] += T[p, k] * x[i]
                p += 1
            g[i] += T[p, k] * x[i]
            p += 1
        square = 0.0
        for i in range(D):
            square += g[i] * x[i]
            g[i] /= columns[PART_VAR, i]
            mean += g[i] * (centre[i, D] - centre[i, D + 1])  # U was computed for w0 as last drawn
        m[k] = mean
        v[k] = max(square, 0.0)
        solve_lower(centre, g, D)
    m[K] = 0.0
    v[K] = 0.0
    g = G[K]
    for i in range(D):
        m[K] += x[i] * centre[i, D]
        v[K] += x[i] * x[i] * columns[PART_VAR, i]
        g[i] = x[i]
    solve_lower(centre, g, D)


@step
def squared_length(g: Array) -> float:
    """Sum of squares."""
    total = 0.0
    for i in range(g.shape[0]):
        total += g[i] * g[i]
    return total


@step
def draw_squared_sticks(gamma: float, rng: Rng) -> float:
    """Sum of the squared weights of a Dirichlet process."""
    left, total = 1.0, 0.0
    for _ in range(MAX_STICKS):
        if left < TAIL:
            break
        part = left * rng.beta(1.0, gamma)
        total += part * part
        left -= part
    return total + left * left


@step
def draw_mean(c: Array, K: int, gamma: float, m: Array, v: Array, G: Array, g: Array, rng: Rng) -> float:
    """A draw of the arm's mean reward."""
    D = g.shape[0]
    for i in range(D):
        g[i] = 0.0
    total, mean, own = 0.0, 0.0, 0.0
    for k in range(K + 1):
        p = rng.standard_gamma(c[k])
        total += p
        mean += p * m[k]
        own += p * p * v[k] * (1.0 if k < K else draw_squared_sticks(gamma, rng))
        for i in range(D):
            g[i] += p * G[k, i]
    if total <= 0.0:  # only an empty arm whose concentration is nearly 0
        return m[K] + math.sqrt(v[K] + squared_length(G[K])) * rng.standard_normal()
    return mean / total + math.sqrt(own + squared_length(g)) / total * rng.standard_normal()


@step
def find_moments(c: Array, K: int, gamma: float, m: Array, v: Array, G: Array, g: Array) -> tuple[float, float]:
    """Mean and standard deviation of the arm's mean reward: the moments of `draw_mean`.

    With A = sum c and P = E[p]:  A/(A+1) (sum P^2 v + |sum P G|^2) + (sum P (v + |G|^2 + m^2) - mean^2) / (A+1);
    the unseen part's v is x'Rx / (gamma + 1), the variance of the mean of a Dirichlet process.
    """
    D = g.shape[0]
    for i in range(D):
        g[i] = 0.0
    total = 0.0
    for k in range(K + 1):
        total += c[k]
    mean, square, own, each = 0.0, 0.0, 0.0, 0.0
    for k in range(K + 1):
        p = c[k] / total
        spread = v[k] if k < K else v[k] / (gamma + 1.0)
        mean += p * m[k]
        own += p * p * spread
        each += p * (spread + squared_length(G[k]))
        for i in range(D):
            g[i] += p * G[k, i]
    for k in range(K + 1):
        p = c[k] / total
        square += p * (m[k] - mean) * (m[k] - mean)
    variance = (total * (own + squared_length(g)) + each + square) / (total + 1.0)
    return mean, math.sqrt(variance)


@kernel
def draw_means(
    tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array, x: Array, out: Array, source: Stream
) -> None:
    """Fill out (n_draws, n_arms) with draws of every arm's mean reward."""
    rng = generator(source)
    D = columns.shape[1]
    C = tables.shape[2] + 1
    f = features(x, columns)
    m, v, c, G, g = np.empty(C), np.empty(C), np.empty(C), np.empty((C, D)), np.empty(D)
    for arm in range(tables.shape[0]):
        K = sizes[arm, 0]
        locate(tables[arm], K, centres[arm], columns, f, m, v, G)
        local_counts(tables[arm], K, columns, hyper[GAMMA], hyper[TAU], f, c)
        for draw in range(out.shape[0]):
            out[draw, arm] = hyper[ORIGIN] + draw_mean(c, K, hyper[GAMMA], m, v, G, g, rng)


@kernel
def moments(tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array, x: Array, out: Array) -> None:
    """Fill out (2, n_arms) with mean and standard deviation of every arm's mean reward."""
    D = columns.shape[1]
    C = tables.shape[2] + 1
    f = features(x, columns)
    m, v, c, G, g = np.empty(C), np.empty(C), np.empty(C), np.empty((C, D)), np.empty(D)
    for arm in range(tables.shape[0]):
        K = sizes[arm, 0]
        locate(tables[arm], K, centres[arm], columns, f, m, v, G)
        local_counts(tables[arm], K, columns, hyper[GAMMA], hyper[TAU], f, c)
        mean, sd = find_moments(c, K, hyper[GAMMA], m, v, G, g)
        out[0, arm] = hyper[ORIGIN] + mean
        out[1, arm] = sd


@kernel
def inflate_sd_for_ties(tables: Array, sizes: IntArray, hyper: Array, moments: Array) -> None:
    """Raise standard deviations to TIE_INFLATION sd / sqrt(n) where rewards are tied, which no density expects."""
    if hyper[TIED_SD] > 0.0:
        for arm in range(tables.shape[0]):
            n = n_held(tables[arm], sizes[arm, 0])
            moments[1, arm] = max(moments[1, arm], TIE_INFLATION * hyper[TIED_SD] / math.sqrt(max(n, 1.0)))


@step
def locate_lanes(T: Array, k: int, centre: Array, columns: Array, x: Array, m: Array, v: Array, g: Array) -> None:
    """`locate` of one component in LANES contexts x (D, LANES) at once: m and v (LANES,), g (D, LANES)."""
    D, L = x.shape
    for lane in range(L):
        m[lane], v[lane] = 0.0, 0.0
    for i in range(D):
        for lane in range(L):
            g[i, lane] = 0.0
    p = MEAN + D
    for i in range(D):
        u = T[MEAN + i, k]
        for lane in range(L):
            m[lane] += x[i, lane] * u
        for j in range(i):
            V = T[p, k]
            for lane in range(L):
                g[i, lane] += V * x[j, lane]
                g[j, lane] += V * x[i, lane]
            p += 1
        V = T[p, k]
        for lane in range(L):
            g[i, lane] += V * x[i, lane]
        p += 1
    for i in range(D):
        R, shift = columns[PART_VAR, i], centre[i, D] - centre[i, D + 1]
        for lane in range(L):
            v[lane] += g[i, lane] * x[i, lane]
            g[i, lane] /= R
            m[lane] += g[i, lane] * shift
    for lane in range(L):
        v[lane] = max(v[lane], 0.0)
    solve_lanes(centre, g)


@step
def locate_unseen_lanes(centre: Array, columns: Array, x: Array, m: Array, v: Array, g: Array) -> None:
    """`locate` of the unseen component in LANES contexts."""
    D, L = x.shape
    for lane in range(L):
        m[lane], v[lane] = 0.0, 0.0
    for i in range(D):
        R, mu = columns[PART_VAR, i], centre[i, D]
        for lane in range(L):
            m[lane] += x[i, lane] * mu
            v[lane] += x[i, lane] * x[i, lane] * R
            g[i, lane] = x[i, lane]
    solve_lanes(centre, g)


@step
def solve_lanes(F: Array, g: Array) -> None:
    """Replace every column of g by F^-1 times it."""
    D, L = g.shape
    for i in range(D):
        for j in range(i):
            f = F[i, j]
            for lane in range(L):
                g[i, lane] -= f * g[j, lane]
        f = F[i, i]
        for lane in range(L):
            g[i, lane] /= f


@kernel
def moments_many(
    tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array, contexts: Array, out: Array
) -> None:
    """Fill out (n, 2, n_arms) with moments, raised where rewards are tied, in contexts (n, d).

    LANES contexts go through the matrices together, which is the quicker the wider the processor's registers are; the
    numbers are those of `moments` to the bit.
    """
    n, D = contexts.shape[0], columns.shape[1]
    C = tables.shape[2] + 1
    x, m, v, G = np.empty((D, LANES)), np.empty((C, LANES)), np.empty((C, LANES)), np.empty((C, D, LANES))
    f, c, here, var, g, part = np.ones(D), np.empty(C), np.empty(C), np.empty(C), np.empty(D), np.empty((C, D))
    for start in range(0, n, LANES):
        last = min(LANES, n - start)
        for lane in range(LANES):
            row = contexts[start + min(lane, last - 1)]
            for i in range(D):
                x[i, lane] = row[i] - columns[BASE, i] if i < row.shape[0] else 1.0
        for arm in range(tables.shape[0]):
            K = sizes[arm, 0]
            for k in range(K):
                locate_lanes(tables[arm], k, centres[arm], columns, x, m[k], v[k], G[k])
            locate_unseen_lanes(centres[arm], columns, x, m[K], v[K], G[K])
            for lane in range(last):
                for i in range(D):
                    f[i] = x[i, lane]
                for k in range(K + 1):
                    here[k], var[k] = m[k, lane], v[k, lane]
                    for i in range(D):
                        part[k, i] = G[k, i, lane]
                local_counts(tables[arm], K, columns, hyper[GAMMA], hyper[TAU], f, c)
                mean, sd = find_moments(c, K, hyper[GAMMA], here, var, part, g)
                out[start + lane, 0, arm] = hyper[ORIGIN] + mean
                out[start + lane, 1, arm] = sd
    for i in range(n):
        inflate_sd_for_ties(tables, sizes, hyper, out[i])


@kernel
def features(x: Array, columns: Array) -> Array:
    """The context, its columns counted from their base, with a one after it where there is an intercept."""
    f = np.empty(columns.shape[1])
    f[f.shape[0] - 1] = 1.0
    for j in range(x.shape[0]):
        f[j] = x[j] - columns[BASE, j]
    return f


@kernel
def components(
    tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array, x: Array, arm: int, out: Array
) -> None:
    """Fill out (3, K + 1) with c, and mean and variance of x'w_k, of every component in use and of an unseen one."""
    D = columns.shape[1]
    K = sizes[arm, 0]
    f = features(x, columns)
    m, v, G = np.empty(K + 1), np.empty(K + 1), np.empty((K + 1, D))
    locate(tables[arm], K, centres[arm], columns, f, m, v, G)
    local_counts(tables[arm], K, columns, hyper[GAMMA], hyper[TAU], f, out[0])
    for k in range(K + 1):
        out[1, k] = m[k]
        out[2, k] = v[k] + squared_length(G[k])
