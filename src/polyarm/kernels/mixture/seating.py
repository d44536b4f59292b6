"""Seating by the Pitman-Yor process, whose special cases are the Dirichlet process and the finite Dirichlet mixture.

n_k  rewards at table k        n  rewards in all        K  tables in use
d    discount                  c  concentration
mass of a table in use: n_k - d;  mass of a new one: c + K d

d = 0 is the Dirichlet process.  d = -alpha with c = M alpha is the mixture of M components whose weights are
Dirichlet(alpha, ..., alpha): a table in use has mass n_k + alpha, all the M - K empty ones (M - K) alpha.
"""

import math

import numpy as np
from numpy.typing import NDArray

from polyarm.kernels._jit import inlined, kernel
from polyarm.kernels.elementary import exp
from polyarm.kernels.lanes import LANES, load, store, where_less, within
from polyarm.kernels.mixture.component import log_mass
from polyarm.types import Array, IntArray, Rng

NEVER = -37.0  # a log share: exp(-37) is below half an ulp of the total


@inlined
def draw_index(logw: Array, size: int, rng: Rng) -> int:
    """Index k < size drawn with probability proportional to exp(logw[k]); logw, of `whole` lanes, is used up."""
    top = logw[0]
    for k in range(1, size):
        top = max(top, logw[k])
    for k in range(0, size, LANES):
        gap = within(0, size - k, load(logw, k) - top, -math.inf)
        share = exp(where_less(NEVER, gap, gap, NEVER))
        store(where_less(NEVER, gap, share, 0.0), logw, k)
    total = 0.0
    for k in range(size):
        total += logw[k]
        logw[k] = total
    u = rng.random() * total
    k = 0
    while k < size - 1 and logw[k] <= u:
        k += 1
    return k


@kernel
def log_partition(counts: Array, n_tables: int, concentration: float, discount: float) -> float:
    """Log probability of a partition into tables of these sizes (the EPPF; Pitman 1995)."""
    n = 0.0
    total = 0.0
    for k in range(n_tables):
        n += counts[k]
        total += math.lgamma(counts[k] - discount) - math.lgamma(1.0 - discount)
        if k > 0:
            total += log_mass(concentration + k * discount)
    return total + math.lgamma(concentration + 1.0) - math.lgamma(concentration + n)


@kernel
def shuffle(order: IntArray, n: int, rng: Rng) -> None:
    """Make order[:n] a uniformly random permutation of 0..n-1."""
    for i in range(n):
        j = int(rng.random() * (i + 1))
        order[i] = order[j]
        order[j] = i


@kernel
def number_by_appearance(labels: IntArray, out: NDArray[np.int32], seen: IntArray) -> None:
    """Write the labels renumbered 0, 1, ... in order of first appearance; seen (largest label + 1,) is scratch."""
    seen[:] = -1
    n_seen = 0
    for i in range(labels.shape[0]):
        if seen[labels[i]] < 0:
            seen[labels[i]] = n_seen
            n_seen += 1
        out[i] = seen[labels[i]]
