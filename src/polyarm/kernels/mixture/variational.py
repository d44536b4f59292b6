"""Soft seating of one arm's rewards: zero-order collapsed variational Bayes (Asuncion et al. 2009), streamed.

T     (rows, C)   components, side by side (component.py); counts n_k are soft; a slot is free below EMPTY;
                  the first `most` may be used
r     (N, C)      responsibility of each component for each reward; rows sum to one
size  (2,)        rewards n, and the reward that is refreshed next
data  (N, d + 2)  x, y and the prior's log predictive of each reward
process (4,)      a0, b0, concentration c, discount d

r_k is proportional to (n_k - d) times the predictive density, the reward's own share removed; a slot that nobody
else uses counts as new, with mass c + K d.  A component opens only when a reward arrives and its new one would get
more than `threshold`: with creation in refreshes all components drift to one symmetric fixed point.
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm.kernels._jit import RngHandle, kernel, rng_from
from polyarm.kernels.copying import copy_row
from polyarm.kernels.linalg.sqrt_information import rotate_in
from polyarm.kernels.mixture.component import (
    COEF,
    COUNT,
    DISCOUNT,
    GAMMA,
    SCALE,
    SHAPE,
    cache_constants,
    log_mass,
    log_predictive,
    prior_log_predictive,
    rank_one,
    reset,
    residuals,
    settle,
)
from polyarm.kernels.mixture.means import draw_exact, located
from polyarm.kernels.mixture.records import Prior
from polyarm.types import Array, IntArray

EMPTY = 1e-6  # a component with less than this is a free slot
NEGLIGIBLE = 1e-4  # responsibilities below this are none
REWARDS, TURN = 0, 1


class Seating(NamedTuple):
    """The soft seating of one arm."""

    components: Array
    r: Array
    size: IntArray
    data: Array


@kernel
def rebuild_soft(T: Array, k: int, prior: Prior, data: Array, r: Array, n: int) -> None:
    """Component k afresh from the responsibilities."""
    m = prior.R0.shape[0]
    R = prior.R0.copy()
    count = 0.0
    for i in range(n):
        if r[i, k] > 0.0:
            count += r[i, k]
            rotate_in(R, math.sqrt(r[i, k]) * data[i, :m])
    settle(T, k, prior.column, R, count)


@kernel
def share_out(T: Array, prior: Prior, data: Array, r: Array, n: int, i: int, sign: float) -> None:
    """Add reward i to every component by its responsibilities (sign 1), or take it out again (sign -1, r is zeroed)."""
    v = np.empty(data.shape[1] - 2)
    for k in range(T.shape[1]):
        w = sign * r[i, k]
        if w != 0.0:
            if sign < 0.0:
                r[i, k] = 0.0
            if rank_one(T, k, data, i, w, v) or T[SCALE, k] < prior.column[SCALE]:
                rebuild_soft(T, k, prior, data, r, n)
            if T[COUNT, k] < EMPTY:
                reset(T, k, prior.column)
            else:
                cache_constants(T, k, prior.process[SHAPE], prior.process[DISCOUNT])


@kernel
def responsibilities(
    T: Array, process: Array, data: Array, i: int, own: Array, most: int, threshold: float, out: Array
) -> None:
    """Write the responsibilities for reward i, which is in no component; `own` are those it had before, or zeros."""
    C = T.shape[1]
    s, e = np.empty(C), np.empty(C)
    residuals(T, C, data, i, s, e)
    K = 0
    free = -1
    for k in range(most - 1, -1, -1):
        if T[COUNT, k] >= EMPTY:
            K += 1
        elif free < 0 or own[k] >= own[free]:
            free = k
    arriving = own.sum() == 0.0
    new = log_mass(process[GAMMA] + K * process[DISCOUNT]) + data[i, data.shape[1] - 1] if K > 0 else 0.0
    top = -math.inf
    for k in range(C):
        out[k] = -math.inf
        if T[COUNT, k] >= EMPTY:
            out[k] = log_predictive(T[COEF, k], process[SHAPE] + 0.5 * T[COUNT, k], T[SCALE, k], s[k], e[k])
        elif k == free and (arriving or own[k] > 0.0):
            out[k] = new
        top = max(top, out[k])
    total = 0.0
    for k in range(C):
        out[k] = math.exp(out[k] - top) if out[k] > -math.inf else 0.0
        total += out[k]
    if arriving and free >= 0 and out[free] < total and out[free] <= threshold * total:
        out[free] = 0.0
    cut_off(out)


@kernel
def cut_off(out: Array) -> None:
    """Make the entries sum to one, without the negligible ones."""
    total = out.sum()
    for k in range(out.shape[0]):
        if out[k] < NEGLIGIBLE * total:
            out[k] = 0.0
    out /= out.sum()


@kernel
def learn(seating: Seating, prior: Prior, x: Array, y: float, most: int, threshold: float, n_refreshes: int) -> None:
    """Share out a new reward, then the next ones in turn again; data and r must have room."""
    T, r, size, data, process = seating.components, seating.r, seating.size, seating.data, prior.process
    d = x.shape[0]
    i = size[REWARDS]
    copy_row(x, data[i])
    data[i, d] = y
    data[i, d + 1] = prior_log_predictive(prior.column, process[SHAPE], data, i)
    r[i] = 0.0
    own = np.zeros(T.shape[1])
    responsibilities(T, process, data, i, own, most, threshold, r[i])
    size[REWARDS] = n = i + 1
    share_out(T, prior, data, r, n, i, 1.0)
    for _ in range(min(n_refreshes, n)):
        j = size[TURN] % n
        copy_row(r[j], own)
        share_out(T, prior, data, r, n, j, -1.0)
        responsibilities(T, process, data, j, own, most, threshold, r[j])
        share_out(T, prior, data, r, n, j, 1.0)
        size[TURN] = j + 1


@kernel
def gather(T: Array, discount: float, held: Array) -> int:
    """Copy the components that have a positive mass to `held`, side by side; return how many."""
    K = 0
    for k in range(T.shape[1]):
        if T[COUNT, k] - discount > EMPTY:
            copy_row(T[:, k], held[:, K])
            K += 1
    return K


@kernel
def draw_means(T: Array, prior: Array, process: Array, x: Array, out: Array, handle: RngHandle) -> None:
    """Fill out (n_draws,) with draws of the mean reward given the soft seating."""
    rng = rng_from(handle)
    held = np.empty(T.shape)
    K = gather(T, process[DISCOUNT], held)
    at = located(held, K, prior, x)
    for draw in range(out.shape[0]):
        out[draw] = draw_exact(held, K, process, at, True, rng)


@kernel
def expected_mean(T: Array, prior: Array, process: Array, x: Array) -> float:
    """Expectation of the mean reward given the soft seating."""
    held = np.empty(T.shape)
    K = gather(T, process[DISCOUNT], held)
    m = located(held, K, prior, x).m
    mass = process[GAMMA] + K * process[DISCOUNT]
    value = mass * m[K]
    for k in range(K):
        value += (held[COUNT, k] - process[DISCOUNT]) * m[k]
        mass += held[COUNT, k] - process[DISCOUNT]
    return value / mass
