"""Scores of arms from their rewards, for policies that keep all of them.

y     (n,)        rewards of one arm
rows  (n, d+1)    the same with their contexts in front
"""

import math

import numpy as np

from polyarm.kernels._jit import RngHandle, kernel, rng_from
from polyarm.kernels.linalg.sqrt_information import coefficients, leverage, rotate_in
from polyarm.types import Array


@kernel
def dirichlet_mean(y: Array, anchor: float, handle: RngHandle) -> float:
    """Mean of the rewards and the anchor under weights ~ Dirichlet(1, ..., 1)."""
    rng = rng_from(handle)
    mass = rng.standard_exponential()
    total = mass * anchor
    for i in range(y.shape[0]):
        weight = rng.standard_exponential()
        mass += weight
        total += weight * y[i]
    return total / mass


@kernel
def block_mean(y: Array, start: int, length: int) -> float:
    """Mean of `length` consecutive rewards."""
    total = 0.0
    for i in range(start, start + length):
        total += y[i]
    return total / length


@kernel
def median_of_means(y: Array, n_blocks: int) -> float:
    """Median of the means of that many blocks of consecutive rewards, as equal in size as possible."""
    n = y.shape[0]
    means = np.empty(n_blocks)
    for k in range(n_blocks):
        start = k * n // n_blocks
        means[k] = block_mean(y, start, (k + 1) * n // n_blocks - start)
    return np.median(means)


@kernel
def central_moment(y: Array, centre: float, power: float) -> float:
    """Mean of abs(y - centre)^power."""
    total = 0.0
    for i in range(y.shape[0]):
        total += abs(y[i] - centre) ** power
    return total / y.shape[0]


@kernel
def upper_bounds(R: Array, x: Array, widths: Array, out: Array) -> None:
    """Fill out (A,) with x'U + width sqrt(x'Vx) of every arm."""
    u = np.empty(x.shape[0])
    for arm in range(R.shape[0]):
        mean, square = leverage(R[arm], x, u)
        out[arm] = mean + widths[arm] * math.sqrt(square)


@kernel
def perturbed_mean(rows: Array, x: Array, ridge: float, n_pseudo: int, size: float, handle: RngHandle) -> float:
    """The value x'w of least squares fitted to rewards that each carry n_pseudo pseudo-rewards of +- size."""
    rng = rng_from(handle)
    d = x.shape[0]
    R = np.zeros((d + 1, d + 1))
    row = np.empty(d + 1)
    for j in range(d):
        R[j, j] = math.sqrt(ridge)
    for i in range(rows.shape[0]):
        noise = 0.0
        for _ in range(n_pseudo):
            noise += size if rng.random() < 0.5 else -size
        for j in range(d):
            row[j] = rows[i, j]
        row[d] = (rows[i, d] + noise) / (n_pseudo + 1.0)
        rotate_in(R, row)
    w = np.empty(d)
    coefficients(R, w)
    total = 0.0
    for j in range(d):
        total += w[j] * x[j]
    return total
