"""The single linear-Gaussian posterior of every arm, in square-root information form (root.py).

roots  (A, d+1, d+1)   laws  (A, 3): a0, b0 and the known noise variance, or 0 when it is unknown
counts (A,)            rewards of each arm
"""

import math

import numpy as np

from polyarm.kernels._jit import Stream, generator, kernel
from polyarm.kernels.linalg.root import leverage, rotate_in
from polyarm.kernels.objectives import Functional, Parts, worth
from polyarm.types import Array, IntArray, Mask

SHAPE, SCALE, KNOWN = 0, 1, 2  # entries of a law


@kernel
def learn(roots: Array, counts: IntArray, arm: int, x: Array, y: float) -> None:
    """Add one reward to an arm."""
    d = x.shape[0]
    row = np.empty(d + 1)
    row[:d] = x
    row[d] = y
    rotate_in(roots[arm], row)
    counts[arm] += 1


@kernel
def draw_means(roots: Array, counts: IntArray, laws: Array, x: Array, out: Array, source: Stream) -> None:
    """Fill out (n_draws, n_arms) with draws of x'w, w ~ N(U, s2 V) and s2 known or IG(a, b)."""
    rng = generator(source)
    d = x.shape[0]
    u = np.empty(d)
    for arm in range(roots.shape[0]):
        m, q = leverage(roots[arm], x, u)
        a = laws[arm, SHAPE] + 0.5 * counts[arm]
        b = laws[arm, SCALE] + 0.5 * roots[arm, d, d] * roots[arm, d, d]
        for draw in range(out.shape[0]):
            variance = laws[arm, KNOWN] if laws[arm, KNOWN] > 0.0 else b / rng.standard_gamma(a)
            out[draw, arm] = m + math.sqrt(variance * q) * rng.standard_normal()


@kernel
def draw_worths(
    roots: Array, counts: IntArray, laws: Array, x: Array, functional: Functional, out: Array, source: Stream
) -> None:
    """Fill out (n_draws, n_arms) with draws of what N(x'w, s2) is worth."""
    rng = generator(source)
    d = x.shape[0]
    u, parts = np.empty(d), Parts(np.ones(1), np.empty(1), np.empty(1))
    for arm in range(roots.shape[0]):
        m, q = leverage(roots[arm], x, u)
        a = laws[arm, SHAPE] + 0.5 * counts[arm]
        b = laws[arm, SCALE] + 0.5 * roots[arm, d, d] * roots[arm, d, d]
        for draw in range(out.shape[0]):
            parts.variance[0] = laws[arm, KNOWN] if laws[arm, KNOWN] > 0.0 else b / rng.standard_gamma(a)
            parts.mean[0] = m + math.sqrt(parts.variance[0] * q) * rng.standard_normal()
            out[draw, arm] = worth(parts, 1, functional)


@kernel
def expected_means(roots: Array, x: Array, out: Array) -> None:
    """Fill out (n_arms,) with x'U of every arm."""
    u = np.empty(x.shape[0])
    for arm in range(roots.shape[0]):
        out[arm] = leverage(roots[arm], x, u)[0]


@kernel
def count_wins(
    roots: Array, counts: IntArray, laws: Array, contexts: Array, among: Mask, n_draws: int, out: Array, source: Stream
) -> None:
    """Fill out (n, n_arms) with the share of draws in which each arm is best among some; ties go to the lowest number.

    x'w = m + sqrt(q) e with e ~ N(0, s2): all contexts share the same draws of e.
    """
    rng = generator(source)
    A, d = roots.shape[0], contexts.shape[1]
    u, e = np.empty(d), np.empty((A, n_draws))
    top, best = np.empty(n_draws), np.empty(n_draws, np.int64)
    for arm in range(A):
        a = laws[arm, SHAPE] + 0.5 * counts[arm]
        b = laws[arm, SCALE] + 0.5 * roots[arm, d, d] * roots[arm, d, d]
        for draw in range(n_draws):
            variance = laws[arm, KNOWN] if laws[arm, KNOWN] > 0.0 else b / rng.standard_gamma(a)
            e[arm, draw] = math.sqrt(variance) * rng.standard_normal()
    for i in range(contexts.shape[0]):
        for draw in range(n_draws):
            top[draw] = -math.inf
        for arm in range(A):
            out[i, arm] = 0.0
            if among[arm]:
                m, q = leverage(roots[arm], contexts[i], u)
                sd = math.sqrt(q)
                for draw in range(n_draws):
                    value = m + sd * e[arm, draw]
                    best[draw] = arm if value > top[draw] else best[draw]
                    top[draw] = max(value, top[draw])
        for draw in range(n_draws):
            out[i, best[draw]] += 1.0
        for arm in range(A):
            out[i, arm] /= n_draws


@kernel
def predictors(roots: Array, x: Array, out: Array) -> None:
    """Fill out (2, n_arms) with x'U and x'Vx of every arm."""
    u = np.empty(x.shape[0])
    for arm in range(roots.shape[0]):
        out[0, arm], out[1, arm] = leverage(roots[arm], x, u)
