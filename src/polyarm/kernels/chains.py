"""What several chains of one sampler say together: a mixture of what each of them says.

each  (n_chains, 2, A)  mean and standard deviation of every arm's mean by each chain
weight                 of the variance between chains
The variance of the mixture is the mean of the chains' variances and the variance between their means, the latter
unbiased: chains are draws from the posterior, and few of them.
"""

import math

import numpy as np

from polyarm.kernels import information
from polyarm.kernels._jit import RngHandle, inlined, kernel
from polyarm.kernels.robust.units import REFUSED, is_usable
from polyarm.types import Array

TWICE = 2.0  # how often the exploration rule counts the variance between chains, which so few of them hardly tell


@inlined
def pool_arm(each: Array, weight: float, arm: int, out: Array) -> None:
    """Write an arm's mean and standard deviation."""
    n, mean, square, between = each.shape[0], 0.0, 0.0, 0.0
    for c in range(n):
        mean += each[c, 0, arm] / n
        square += each[c, 1, arm] * each[c, 1, arm] / n
    for c in range(n):
        away = each[c, 0, arm] - mean
        between += away * away / (n - 1)
    out[0, arm] = mean
    out[1, arm] = math.sqrt(square + weight * between)


@kernel
def pool(each: Array, weight: float, out: Array) -> None:
    """Fill out (2, A) with the moments by all chains, of which there are two or more."""
    for arm in range(out.shape[1]):
        pool_arm(each, weight, arm, out)


@kernel
def pool_many(each: Array, weight: float, out: Array) -> None:
    """The same in many contexts: each (n, n_chains, 2, A), out (n, 2, A)."""
    for i in range(out.shape[0]):
        for arm in range(out.shape[2]):
            pool_arm(each[i], weight, arm, out[i])


@kernel
def pool_noise(each: Array, out: Array) -> None:
    """Fill out (A,) with the geometric mean over chains of noise beside a typical arm's, (n_chains, A)."""
    n = each.shape[0]
    for arm in range(out.shape[0]):
        total = 0.0
        for c in range(n):
            total += math.log(each[c, arm]) / n
        out[arm] = math.exp(total)


@kernel
def choose(
    each: Array, noise: Array, x: Array, n_draws: int, power: float, mix: Array, scores: Array, handle: RngHandle
) -> int:
    """Draw an arm from the mix for what the chains see in context x, with noise (n_chains, A); or answer REFUSED."""
    if not is_usable(x):
        return REFUSED
    moments, together = np.empty(each.shape[1:]), np.empty(noise.shape[1])
    pool(each, TWICE, moments)
    pool_noise(noise, together)
    return information.choose(moments, together, n_draws, power, mix, scores, handle)
