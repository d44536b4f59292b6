"""The single linear-Gaussian posterior of every arm, in square-root information form (linalg/sqrt_information.py).

R             (A, d+1, d+1)  what each arm has learned
noise_priors  (A, 3)         a0, b0 and the known noise variance, or 0 when it is unknown
counts        (A,)           rewards of each arm
"""

import math

import numpy as np

from polyarm.kernels._jit import RngHandle, kernel, rng_from
from polyarm.kernels.copying import copy_row
from polyarm.kernels.linalg.sqrt_information import leverage, rotate_in
from polyarm.kernels.objectives import Functional, Parts, worth
from polyarm.types import Array, IntArray, Mask

SHAPE, SCALE, KNOWN = 0, 1, 2  # entries of a noise prior


@kernel
def learn(R: Array, counts: IntArray, arm: int, x: Array, y: float) -> None:
    """Add one reward to an arm."""
    d = x.shape[0]
    row = np.empty(d + 1)
    copy_row(x, row)
    row[d] = y
    rotate_in(R[arm], row)
    counts[arm] += 1


@kernel
def draw_means(R: Array, counts: IntArray, noise_priors: Array, x: Array, out: Array, handle: RngHandle) -> None:
    """Fill out (n_draws, n_arms) with draws of x'w, w ~ N(U, s2 V) and s2 known or IG(a, b)."""
    rng = rng_from(handle)
    d = x.shape[0]
    u = np.empty(d)
    for arm in range(R.shape[0]):
        m, q = leverage(R[arm], x, u)
        a = noise_priors[arm, SHAPE] + 0.5 * counts[arm]
        b = noise_priors[arm, SCALE] + 0.5 * R[arm, d, d] * R[arm, d, d]
        for draw in range(out.shape[0]):
            variance = noise_priors[arm, KNOWN] if noise_priors[arm, KNOWN] > 0.0 else b / rng.standard_gamma(a)
            out[draw, arm] = m + math.sqrt(variance * q) * rng.standard_normal()


@kernel
def draw_worths(
    R: Array, counts: IntArray, noise_priors: Array, x: Array, functional: Functional, out: Array, handle: RngHandle
) -> None:
    """Fill out (n_draws, n_arms) with draws of what N(x'w, s2) is worth."""
    rng = rng_from(handle)
    d = x.shape[0]
    u, parts = np.empty(d), Parts(np.ones(1), np.empty(1), np.empty(1))
    for arm in range(R.shape[0]):
        m, q = leverage(R[arm], x, u)
        a = noise_priors[arm, SHAPE] + 0.5 * counts[arm]
        b = noise_priors[arm, SCALE] + 0.5 * R[arm, d, d] * R[arm, d, d]
        for draw in range(out.shape[0]):
            parts.variance[0] = (
                noise_priors[arm, KNOWN] if noise_priors[arm, KNOWN] > 0.0 else b / rng.standard_gamma(a)
            )
            parts.mean[0] = m + math.sqrt(parts.variance[0] * q) * rng.standard_normal()
            out[draw, arm] = worth(parts, 1, functional)


@kernel
def expected_means(R: Array, x: Array, out: Array) -> None:
    """Fill out (n_arms,) with x'U of every arm."""
    u = np.empty(x.shape[0])
    for arm in range(R.shape[0]):
        out[arm] = leverage(R[arm], x, u)[0]


@kernel
def count_wins(
    R: Array,
    counts: IntArray,
    noise_priors: Array,
    contexts: Array,
    among: Mask,
    n_draws: int,
    out: Array,
    handle: RngHandle,
) -> None:
    """Fill out (n, n_arms) with the share of draws in which each arm is best among some; ties go to the lowest number.

    x'w = m + sqrt(q) e with e ~ N(0, s2): all contexts share the same draws of e.
    """
    rng = rng_from(handle)
    A, d = R.shape[0], contexts.shape[1]
    u, e = np.empty(d), np.empty((A, n_draws))
    top, best = np.empty(n_draws), np.empty(n_draws, np.int64)
    for arm in range(A):
        a = noise_priors[arm, SHAPE] + 0.5 * counts[arm]
        b = noise_priors[arm, SCALE] + 0.5 * R[arm, d, d] * R[arm, d, d]
        for draw in range(n_draws):
            variance = noise_priors[arm, KNOWN] if noise_priors[arm, KNOWN] > 0.0 else b / rng.standard_gamma(a)
            e[arm, draw] = math.sqrt(variance) * rng.standard_normal()
    for i in range(contexts.shape[0]):
        for draw in range(n_draws):
            top[draw] = -math.inf
        for arm in range(A):
            out[i, arm] = 0.0
            if among[arm]:
                m, q = leverage(R[arm], contexts[i], u)
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
def predictors(R: Array, x: Array, out: Array) -> None:
    """Fill out (2, n_arms) with x'U and x'Vx of every arm."""
    u = np.empty(x.shape[0])
    for arm in range(R.shape[0]):
        out[0, arm], out[1, arm] = leverage(R[arm], x, u)
