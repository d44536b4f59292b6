"""The normal-inverse-gamma linear-Gaussian component, kept by rank-one add and remove.

A component is one column of an arm's table T (rows, capacity); components stand side by side so that a loop over
them reads contiguous memory.

row         content of column k                                       formula
COUNT       n        rewards in the component
SCALE       b        scale of its inverse gamma                        a = a0 + n/2
LOG_DET     log|V|
COEF        log mass and constant of the predictive density            log(n - d) + g(a) - log(2 pi b)/2
LOO         the same for one of its own rewards                        log(n-1-d) + g(a - 1/2) - log(2 pi)/2 - a log b
MOVES       adds and removes since it was last rebuilt
MEAN ...    U (dim rows)
MEAN + dim  M (dim (dim+1) / 2 rows: upper triangle, by columns)       V = MM'

V itself would lose twice the digits: with a prior wide where the data are narrow, x'Vx is a small difference of large
numbers, while |M'x|^2 only sums squares of them.

g(a) = lgamma(a + 1/2) - lgamma(a);   s = 1 + x'Vx;   e = y - x'U;   d = discount
log predictive of (x, y):  g(a) - log(2 pi b)/2 + a log s - (a + 1/2) log(s + e^2 / (2 b))
"""

import math

import numpy as np

from polyarm.kernels._jit import inlined, kernel
from polyarm.kernels.linalg.sqrt_information import coefficients, inverse, n_absorbed, rotate_in
from polyarm.types import Array, IntArray

COUNT, SCALE, LOG_DET, COEF, LOO, MOVES, MEAN = 0, 1, 2, 3, 4, 5, 6
LANES = 4  # components scored together; a table's capacity is a multiple of it
LOG_2PI = math.log(2.0 * math.pi)
SHAPE, NOISE, GAMMA, DISCOUNT = 0, 1, 2, 3  # entries of a process: a0, b0, concentration, discount
NOTHING = 1e-12  # a seating mass at or below this is none: a finite mixture whose components are all in use
LOSSY = 1e-4  # an add or remove that keeps less than this share of a quantity costs four digits: rebuild
GROSS = 1e8  # so does one whose x'Vx is summed from terms this many times as large: under eight digits are left
MOVES_KEPT = 65536  # rebuild after so many moves: drift stays below 1e-11 (measured on 1e6 moves)


@kernel
def n_rows(dim: int) -> int:
    """Rows of a component's column."""
    return MEAN + dim + dim * (dim + 1) // 2


@inlined
def log_gamma_step(a: float) -> float:
    """g(a) = lgamma(a + 1/2) - lgamma(a), by its asymptotic series above 16 and the recurrence below."""
    ratio = 1.0
    while a < 16.0:
        ratio *= a / (a + 0.5)
        a += 1.0
    t = 1.0 / (a * a)
    series = 0.5 * math.log(a) - (1 / 8 - t * (1 / 192 - t * (1 / 640 - t * (17 / 14336 - t * 31 / 18432)))) / a
    return series if ratio == 1.0 else series + math.log(ratio)


@inlined
def log_mass(mass: float) -> float:
    """Logarithm of a seating mass, minus infinity when there is none."""
    return math.log(mass) if mass > NOTHING else -math.inf


@inlined
def cache_constants(T: Array, k: int, a0: float, discount: float) -> None:
    """Recompute the cached constants of component k from its count and scale."""
    n = T[COUNT, k]
    a = a0 + 0.5 * n
    log_b = math.log(T[SCALE, k])
    T[COEF, k] = log_mass(n - discount) + log_gamma_step(a) - 0.5 * (LOG_2PI + log_b)
    T[LOO, k] = -math.inf
    if n > 1.0:
        T[LOO, k] = log_mass(n - 1.0 - discount) + log_gamma_step(a - 0.5) - 0.5 * LOG_2PI - a * log_b


@inlined
def reset(T: Array, k: int, prior: Array) -> None:
    """Make component k an empty one: the prior."""
    for r in range(T.shape[0]):
        T[r, k] = prior[r]


@inlined
def copy(T: Array, origin: int, target: int) -> None:
    """Copy a component to another slot."""
    for r in range(T.shape[0]):
        T[r, target] = T[r, origin]


@inlined
def residuals(T: Array, n_used: int, data: Array, r: int, s: Array, e: Array) -> None:
    """Write s = 1 + x'Vx and e = y - x'U of reward r for the first n_used components, LANES at a time."""
    d = data.shape[1] - 2
    for k in range(0, n_used, 4):
        s0 = s1 = s2 = s3 = 1.0
        e0 = e1 = e2 = e3 = data[r, d]
        p = MEAN + d
        for j in range(d):
            f0 = f1 = f2 = f3 = 0.0
            for i in range(j + 1):
                xi = data[r, i]
                f0 += xi * T[p, k]
                f1 += xi * T[p, k + 1]
                f2 += xi * T[p, k + 2]
                f3 += xi * T[p, k + 3]
                p += 1
            s0 += f0 * f0
            s1 += f1 * f1
            s2 += f2 * f2
            s3 += f3 * f3
            xj = data[r, j]
            u = MEAN + j
            e0 -= xj * T[u, k]
            e1 -= xj * T[u, k + 1]
            e2 -= xj * T[u, k + 2]
            e3 -= xj * T[u, k + 3]
        s[k] = s0
        s[k + 1] = s1
        s[k + 2] = s2
        s[k + 3] = s3
        e[k] = e0
        e[k + 1] = e1
        e[k + 2] = e2
        e[k + 3] = e3


@inlined
def log_predictive(coef: float, a: float, b: float, s: float, e: float) -> float:
    """Log predictive density, plus what `coef` adds to the constant."""
    return coef + a * math.log(s) - (a + 0.5) * math.log(s + e * e / (2.0 * b))


@kernel
def prior_log_predictive(prior: Array, a0: float, data: Array, r: int) -> float:
    """Log density of reward r under an empty component."""
    d = data.shape[1] - 2
    s = 1.0
    e = data[r, d]
    p = MEAN + d
    for j in range(d):
        e -= data[r, j] * prior[MEAN + j]
        f = 0.0
        for i in range(j + 1):
            f += data[r, i] * prior[p]
            p += 1
        s += f * f
    b = prior[SCALE]
    return log_predictive(log_gamma_step(a0) - 0.5 * (LOG_2PI + math.log(b)), a0, b, s, e)


@kernel
def log_evidence(T: Array, k: int, prior: Array, a0: float) -> float:
    """Log marginal density of the rewards in component k."""
    n = T[COUNT, k]
    a = a0 + 0.5 * n
    return (
        math.lgamma(a)
        - math.lgamma(a0)
        + a0 * math.log(prior[SCALE])
        - a * math.log(T[SCALE, k])
        + 0.5 * (T[LOG_DET, k] - prior[LOG_DET])
        - 0.5 * n * LOG_2PI
    )


@inlined
def rank_one(T: Array, k: int, data: Array, r: int, weight: float, v: Array) -> bool:
    """Add reward r with a weight (1: wholly), or remove it with minus that weight; tell whether digits were lost.

    V -= vv'/t,  U += v e/t,  b += e^2/(2t)  with v = Vx and t = 1/weight + x'Vx; V by its factor M, column by column
    (Carlson 1973).
    """
    d = v.shape[0]
    t = 1.0 / weight
    e = data[r, d]
    rounding = 0.0
    p = MEAN + d
    for j in range(d):
        e -= data[r, j] * T[MEAN + j, k]
        f = 0.0
        size = 0.0
        for i in range(j + 1):
            term = T[p + i, k] * data[r, i]
            f += term
            size += abs(term)
        rounding += abs(f) * size
        old = t
        t += f * f
        if weight * t <= NOTHING:
            return True
        keep = math.sqrt(old / t)
        gain = f / (t * keep)
        v[j] = 0.0
        for i in range(j + 1):
            m = T[p, k]
            T[p, k] = keep * m - gain * v[i]
            v[i] += m * f
            p += 1
    share = weight * t  # |V| falls by this factor when adding, rises by its inverse when removing
    for i in range(d):
        T[MEAN + i, k] += v[i] * e / t
    before = T[SCALE, k]
    T[SCALE, k] += e * e / (2.0 * t)
    T[COUNT, k] += weight
    T[MOVES, k] += 1.0
    T[LOG_DET, k] -= math.log(share)
    kept = min(share, 1.0 / share)
    if rounding > GROSS * share:
        return True
    return not (kept > LOSSY and T[SCALE, k] > LOSSY * before and T[MOVES, k] < max(MOVES_KEPT, 8.0 * T[COUNT, k]))


@kernel
def settle(T: Array, k: int, prior: Array, R: Array, count: float) -> None:
    """Write component k from the square-root information of its rewards and the prior."""
    d = R.shape[0] - 1
    U = np.empty(d)
    coefficients(R, U)
    M = np.empty(d * (d + 1) // 2)
    T[LOG_DET, k] = inverse(R, M)
    for j in range(d):
        T[MEAN + j, k] = U[j]
    for p in range(M.shape[0]):
        T[MEAN + d + p, k] = M[p]
    T[COUNT, k] = count
    T[SCALE, k] = prior[SCALE] + 0.5 * R[d, d] * R[d, d]
    T[MOVES, k] = 0.0


@kernel
def rebuild(T: Array, k: int, prior: Array, R0: Array, data: Array, z: IntArray, label: int, without: int) -> None:
    """Component k afresh from the rewards that carry its label, except the one numbered `without`.

    z (n,) holds the labels of the first n rows of data, each of which is x, y and the prior's log predictive; R0 is
    the square-root information of the prior and of rewards absorbed earlier.
    """
    d = R0.shape[0] - 1
    R = R0.copy()
    row = np.empty(d + 1)
    count = n_absorbed(R)
    for i in range(z.shape[0]):
        if z[i] == label and i != without:
            for j in range(d + 1):
                row[j] = data[i, j]
            rotate_in(R, row)
            count += 1.0
    settle(T, k, prior, R, count)
