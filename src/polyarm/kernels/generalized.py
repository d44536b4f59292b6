"""Generalised linear rewards: the normal that is nearest to the posterior of the coefficients.

f      (D,)     features of a context         y   reward (for marks: their number, 0, 1, ...)
U      (D,)     centre of the coefficients    V   (D, D) their covariance, both by coefficients N(U, V)
prior  (2, D)   prior mean and precision of every coefficient
m, v            mean and variance of the predictor eta = f'beta:  f'U and f'Vf
s, w            expected slope and expected negative curvature of log p(y | eta) over eta ~ N(m, v)
extra           cut points of marks, or the shape of gamma amounts
n, data         (n, D + 1) rows (f, y)

U and V minimise the Kullback-Leibler divergence from N(U, V) to the posterior (Opper & Archambeau 2009):
    V^-1 = diag(prior[1]) + sum w_i f_i f_i',      0 = sum s_i f_i - prior[1] (U - prior[0]),
found by Newton's method, with w_i and s_i at the U and V of before.  With v = 0 it would be Laplace's approximation.

MARKS   P(y > k) = sigmoid(eta - c_k); two marks are logistic regression.  With A and B the probabilities to be above
        the mark's lower and upper cut, the slope is 1 - A - B and the negative curvature A(1 - A) + B(1 - B).
POISSON y ~ Poisson(e^eta)        GAMMA  y ~ gamma of shape `extra[0]` and mean e^eta
"""

import math

import numpy as np

from polyarm.kernels._jit import RngHandle, kernel, rng_from
from polyarm.types import Array, IntArray

MARKS, POISSON, GAMMA = 0, 1, 2
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
NARROW = 0.3  # up to this variance three nodes see a sigmoid to 1e-4
MOST_STEPS = 40
CLOSE = 0.1  # a Newton step of so many posterior sds leaves an error of about its square
LARGEST = 80.0  # of the exponent of a mean: its square is still a number
EDGE = 30.0  # cut points stay within -30 and 30: beyond, a probability is 0 or 1 to all digits that matter


@kernel
def sigmoid(t: float) -> float:
    """The logistic function."""
    return 1.0 / (1.0 + math.exp(-t)) if t > -700.0 else 0.0


@kernel
def mark_slope(extra: Array, eta: float, y: float) -> tuple[float, float]:
    """Slope and negative curvature of a mark's log probability."""
    k = int(y)
    above = sigmoid(eta - extra[k - 1]) if k > 0 else 1.0
    beyond = sigmoid(eta - extra[k]) if k < extra.shape[0] else 0.0
    return 1.0 - above - beyond, above * (1.0 - above) + beyond * (1.0 - beyond)


@kernel
def expected_slope(family: int, extra: Array, m: float, v: float, y: float) -> tuple[float, float]:
    """The pair s and w."""
    if family == POISSON:
        rate = math.exp(min(m + 0.5 * v, LARGEST))
        return y - rate, rate
    if family == GAMMA:
        ratio = y * math.exp(min(0.5 * v - m, LARGEST))
        return extra[0] * (ratio - 1.0), extra[0] * ratio
    sd = math.sqrt(v)
    if v < NARROW:
        s, w = mark_slope(extra, m, y)
        low_s, low_w = mark_slope(extra, m - 1.7320508075688772 * sd, y)
        high_s, high_w = mark_slope(extra, m + 1.7320508075688772 * sd, y)
        return (4.0 * s + low_s + high_s) / 6.0, (4.0 * w + low_w + high_w) / 6.0
    s, w = 0.0, 0.0
    for i in range(NODES.shape[0]):
        slope, bend = mark_slope(extra, m + sd * NODES[i], y)
        s += WEIGHTS[i] * slope
        w += WEIGHTS[i] * bend
    return s, w


@kernel
def predictor(U: Array, V: Array, f: Array) -> tuple[float, float]:
    """The pair m and v."""
    m, v = 0.0, 0.0
    for j in range(U.shape[0]):
        if f[j] != 0.0:
            m += U[j] * f[j]
            t = 0.5 * V[j, j] * f[j]
            for k in range(j):
                t += V[j, k] * f[k]
            v += 2.0 * f[j] * t
    return m, max(v, 0.0)


@kernel
def invert(H: Array, V: Array) -> None:
    """Write V = H^-1 for a positive definite H, of which the lower triangle is read and used up.

    A pivot that rounding has eaten up is put back to 1e-14 of its diagonal element: V stays finite.
    """
    D = H.shape[0]
    for j in range(D):  # H = LL'
        floor = 1e-14 * H[j, j]
        for k in range(j):
            for i in range(j, D):
                H[i, j] -= H[i, k] * H[j, k]
        H[j, j] = max(H[j, j], floor)
        root = math.sqrt(H[j, j])
        for i in range(j, D):
            H[i, j] /= root
    for j in range(D):  # L becomes its inverse
        H[j, j] = 1.0 / H[j, j]
        for i in range(j + 1, D):
            t = 0.0
            for k in range(j, i):
                t -= H[i, k] * H[k, j]
            H[i, j] = t / H[i, i]
    for i in range(D):
        for j in range(i + 1):
            t = 0.0
            for k in range(i, D):
                t += H[k, i] * H[k, j]
            V[i, j] = t
            V[j, i] = t


@kernel
def newton_step(family: int, extra: Array, prior: Array, data: Array, n: int, U: Array, V: Array) -> float:
    """One step of U and V towards the nearest normal; returns its length in posterior standard deviations."""
    D = U.shape[0]
    H, g, f = np.zeros((D, D)), np.empty(D), np.empty(D)
    for j in range(D):
        H[j, j] = prior[1, j]
        g[j] = prior[1, j] * (prior[0, j] - U[j])
    for i in range(n):
        for j in range(D):
            f[j] = data[i, j]
        m, v = predictor(U, V, f)
        s, w = expected_slope(family, extra, m, v, data[i, D])
        for j in range(D):
            if f[j] != 0.0:
                g[j] += s * f[j]
                for k in range(j + 1):
                    H[j, k] += w * f[j] * f[k]
    invert(H, V)
    step, length = np.zeros(D), 0.0
    for j in range(D):
        for k in range(D):
            step[j] += V[j, k] * g[k]
        length += step[j] * g[j]
    length = math.sqrt(max(length, 0.0))
    share = 1.0 if length < 1.0 else 1.0 / length
    for j in range(D):
        U[j] += share * step[j]
    return length


@kernel
def fit(family: int, extra: Array, prior: Array, data: Array, n: int, U: Array, V: Array) -> None:
    """Bring U and V to the nearest normal, from where they are."""
    for _ in range(MOST_STEPS):
        if newton_step(family, extra, prior, data, n, U, V) < CLOSE:
            break


@kernel
def add(family: int, extra: Array, row: Array, U: Array, V: Array) -> None:
    """Take in one reward at the cost of D^2: s and w at the predictor of before (assumed density filtering)."""
    D = U.shape[0]
    c = np.zeros(D)
    for j in range(D):
        for k in range(D):
            c[j] += V[j, k] * row[k]
    m, v = predictor(U, V, row[:D])
    s, w = expected_slope(family, extra, m, v, float(row[D]))
    for j in range(D):
        U[j] += c[j] * s / (1.0 + w * v)
        for k in range(D):
            V[j, k] -= c[j] * c[k] * w / (1.0 + w * v)


@kernel
def mean_at(family: int, extra: Array, eta: float) -> float:
    """Mean reward given the predictor; marks are numbered from 0."""
    if family != MARKS:
        return math.exp(min(eta, LARGEST))
    mean = 0.0
    for k in range(extra.shape[0]):
        mean += sigmoid(eta - extra[k])
    return mean


@kernel
def draw_means(family: int, extra: Array, U: Array, V: Array, f: Array, out: Array, handle: RngHandle) -> None:
    """Fill out (n_draws, n_arms) with draws of every arm's mean reward; U (n_arms, D), V (n_arms, D, D)."""
    rng = rng_from(handle)
    for arm in range(U.shape[0]):
        m, v = predictor(U[arm], V[arm], f)
        for draw in range(out.shape[0]):
            out[draw, arm] = mean_at(family, extra, m + math.sqrt(v) * rng.standard_normal())


@kernel
def moments(family: int, extra: Array, U: Array, V: Array, f: Array, out: Array) -> None:
    """Fill out (2, n_arms) with mean and standard deviation of every arm's mean reward."""
    for arm in range(U.shape[0]):
        m, v = predictor(U[arm], V[arm], f)
        if family != MARKS:
            v = min(v, LARGEST)
            out[0, arm] = math.exp(min(m + 0.5 * v, LARGEST))
            out[1, arm] = out[0, arm] * math.sqrt(math.expm1(v))
            continue
        first, second = 0.0, 0.0
        centre = mean_at(family, extra, m)
        for i in range(NODES.shape[0]):
            gap = mean_at(family, extra, m + math.sqrt(v) * NODES[i]) - centre
            first += WEIGHTS[i] * gap
            second += WEIGHTS[i] * gap * gap
        out[0, arm] = centre + first
        out[1, arm] = math.sqrt(max(second - first * first, 0.0))


@kernel
def add_mark(extra: Array, eta: float, k: int, weight: float, g: Array, H: Array) -> None:
    """Add one mark's gradient and negative Hessian of log(A - B) in the cut points."""
    K = extra.shape[0]
    above = sigmoid(eta - extra[k - 1]) if k > 0 else 1.0
    beyond = sigmoid(eta - extra[k]) if k < K else 0.0
    p = max(above - beyond, 1e-100)
    a, b = above * (1.0 - above) / p, beyond * (1.0 - beyond) / p
    if k > 0:
        g[k - 1] -= weight * a
        H[k - 1, k - 1] += weight * (a * a - a * (1.0 - 2.0 * above))
    if k < K:
        g[k] += weight * b
        H[k, k] += weight * (b * b + b * (1.0 - 2.0 * beyond))
    if 0 < k < K:
        H[k, k - 1] -= weight * a * b


@kernel
def cut_step(extra: Array, guess: float, eta: Array, y: IntArray) -> float:
    """One Newton step of the cut points to the mode of their posterior given the predictors; returns its size.

    Their prior is as good as `guess` rewards of every mark at a predictor of 0: it keeps the cuts apart.  The log
    posterior is concave, its Hessian tridiagonal; far out it is a plane, where Newton's steps have no bounds.
    """
    K = extra.shape[0]
    H, g = np.zeros((K, K)), np.zeros(K)
    for k in range(K + 1):
        add_mark(extra, 0.0, k, guess, g, H)
    for i in range(eta.shape[0]):
        add_mark(extra, eta[i], y[i], 1.0, g, H)
    inverse = np.empty((K, K))
    invert(H, inverse)
    step, size = np.zeros(K), 0.0
    for k in range(K):
        for j in range(K):
            step[k] += inverse[k, j] * g[j]
        size = max(size, abs(step[k]))
    share = 1.0
    if step[0] < 0.0:  # no cut goes more than half of the way to its neighbour, or to the edge
        share = min(share, 0.5 * (EDGE + extra[0]) / -step[0])
    if step[K - 1] > 0.0:
        share = min(share, 0.5 * (EDGE - extra[K - 1]) / step[K - 1])
    for k in range(1, K):
        closing = step[k - 1] - step[k]
        if closing > 0.0:
            share = min(share, 0.5 * (extra[k] - extra[k - 1]) / closing)
    for k in range(K):
        extra[k] += share * step[k]
    return share * size
