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
from polyarm.kernels.elementary import log
from polyarm.kernels.lanes import LANES, load, splat, store, within
from polyarm.kernels.linalg.sqrt_information import coefficients, inverse, n_absorbed, rotate_in
from polyarm.types import Array, IntArray

COUNT, SCALE, LOG_DET, COEF, LOO, MOVES, MEAN = 0, 1, 2, 3, 4, 5, 6
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
def gamma_step(a: float) -> tuple[float, float]:
    """The pair q, c with lgamma(a + 1/2) - lgamma(a) = log q - c, by its asymptotic series above 16.

    Below, by the recurrence: the step from a to a + 1 divides it by (a + 1/2) / a.
    """
    above, below = 1.0, 1.0
    while a < 16.0:
        above *= a
        below *= a + 0.5
        a += 1.0
    t = 1.0 / (a * a)
    series = (1 / 8 - t * (1 / 192 - t * (1 / 640 - t * (17 / 14336 - t * 31 / 18432)))) / a
    return math.sqrt(a) * above / below, series


@inlined
def log_gamma_step(a: float) -> float:
    """g(a) = lgamma(a + 1/2) - lgamma(a)."""
    q, c = gamma_step(a)
    return math.log(q) - c


@inlined
def log_product(mass: float, factor: float) -> float:
    """Logarithm of a seating mass times a factor, minus infinity where there is no mass."""
    return math.log(mass * factor) if mass > NOTHING else -math.inf


@inlined
def log_mass(mass: float) -> float:
    """Logarithm of a seating mass, minus infinity when there is none."""
    return log_product(mass, 1.0)


@inlined
def cache_constants(T: Array, k: int, a0: float, discount: float) -> None:
    """Recompute the cached constants of component k from its count and scale."""
    n = T[COUNT, k]
    a = a0 + 0.5 * n
    log_b = math.log(T[SCALE, k])
    q, c = gamma_step(a)
    T[COEF, k] = log_product(n - discount, q) - c - 0.5 * (LOG_2PI + log_b)
    T[LOO, k] = -math.inf
    if n > 1.0:  # g(a - 1/2) = log(a - 1/2) - g(a)
        T[LOO, k] = log_product(n - 1.0 - discount, (a - 0.5) / q) + c - 0.5 * LOG_2PI - a * log_b


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
    for k in range(0, n_used, LANES):
        square = splat(1.0)
        residual = splat(data[r, d])
        p = MEAN + d
        for j in range(d):
            f = splat(0.0)
            for i in range(j + 1):
                f += data[r, i] * load(T, p, k)
                p += 1
            square += f * f
            residual -= data[r, j] * load(T, MEAN + j, k)
        store(square, s, k)
        store(residual, e, k)


@inlined
def log_predictives(T: Array, n_used: int, a0: float, s: Array, e: Array, out: Array) -> None:
    """Write the log predictive density, plus what COEF adds, of the first n_used components, LANES at a time."""
    for k in range(0, n_used, LANES):
        a, square, residual = a0 + 0.5 * load(T, COUNT, k), load(s, k), load(e, k)
        spread = square + residual * residual / (2.0 * within(0, n_used - k, load(T, SCALE, k), 1.0))
        store(load(T, COEF, k) + a * log(square) - (a + 0.5) * log(spread), out, k)


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
