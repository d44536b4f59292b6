"""Split-merge proposals with sequential allocation (Dahl & Newcomb 2022), in the notation of records.py.

i, j     two rewards; if they share a component a split is proposed, else a merge
H        (rows, 4)  scratch components: 0 holds i, 1 holds j, 2 holds both; the last only fills the lanes
side     (n,)       0 or 1 for rewards allocated to either, -1 for the others
order    (M,)       the other rewards of the component(s), in random order
log q    log probability of the allocation
log A    log(c + K d) + lgamma(n_0 - d) + lgamma(n_1 - d) - lgamma(1 - d) - lgamma(n_0 + n_1 - d)
         + log m(H_0) + log m(H_1) - log m(H_2) - log q,  K = components after the merge; a merge has -log A
"""

import math

import numpy as np

from polyarm.kernels._jit import RngHandle, kernel, rng_from
from polyarm.kernels.copying import copy_row
from polyarm.kernels.linalg.sqrt_information import n_absorbed
from polyarm.kernels.mixture.component import (
    COEF,
    COUNT,
    DISCOUNT,
    GAMMA,
    SCALE,
    SHAPE,
    cache_constants,
    log_evidence,
    log_mass,
    log_predictive,
    reset,
    residuals,
)
from polyarm.kernels.mixture.component import rebuild as rebuild_component
from polyarm.kernels.mixture.gibbs import add, has_room
from polyarm.kernels.mixture.records import K_USED, ROWS, Arm, Books, arm_of, close_slot, home, open_slot
from polyarm.types import Array, IntArray, Rng


@kernel
def others_of(z: IntArray, n: int, i: int, j: int, whole: IntArray, order: IntArray, rng: Rng) -> int:
    """Mark the rewards seated with i or j in `whole`; write all but i and j, shuffled, to `order`; return how many."""
    M = 0
    for t in range(n):
        if z[t] == z[i] or z[t] == z[j]:
            whole[t] = 1
            if t not in (i, j):
                other = int(rng.random() * (M + 1))
                order[M] = order[other]
                order[other] = t
                M += 1
    return M


@kernel
def allocate(arm: Arm, z: IntArray, order: IntArray, splitting: bool, i: int, j: int, rng: Rng) -> float:
    """Send the rewards of `order` to i's side or j's one by one, as z seats them unless splitting; return log q.

    arm: the two sides as components of their own, arm.z telling the side of each reward.
    """
    H, process, data, side = arm.components, arm.process, arm.data, arm.z
    v = np.empty(data.shape[1] - 2)
    s, e = np.empty(4), np.empty(4)
    log_q = 0.0
    for m in range(-2, order.shape[0]):
        t = order[m] if m >= 0 else (i if m == -2 else j)
        if m >= 0:
            residuals(H, 4, data, t, s, e)
            w0 = log_predictive(H[COEF, 0], process[SHAPE] + 0.5 * H[COUNT, 0], H[SCALE, 0], s[0], e[0])
            w1 = log_predictive(H[COEF, 1], process[SHAPE] + 0.5 * H[COUNT, 1], H[SCALE, 1], s[1], e[1])
            log_p0 = -np.logaddexp(0.0, w1 - w0)
            first = math.log(rng.random()) < log_p0 if splitting else z[t] == z[i]
            log_q += log_p0 if first else log_p0 + w1 - w0
        else:
            first = t == i
        side[t] = 0 if first else 1
        add(arm, side[t], t, side[t], v)
    return log_q


@kernel
def log_ratio(H: Array, K: int, prior: Array, process: Array, log_q: float) -> float:
    """Log acceptance ratio of the split; K components stand in the merged state."""
    c, d = process[GAMMA], process[DISCOUNT]
    n0, n1 = H[COUNT, 0], H[COUNT, 1]
    seating = log_mass(c + K * d) + math.lgamma(n0 - d) + math.lgamma(n1 - d)
    seating -= math.lgamma(1.0 - d) + math.lgamma(n0 + n1 - d)
    a0 = process[SHAPE]
    fit = log_evidence(H, 0, prior, a0) + log_evidence(H, 1, prior, a0) - log_evidence(H, 2, prior, a0)
    return seating + fit - log_q


@kernel
def split(arm: Arm, k: int, H: Array, side: IntArray) -> None:
    """Let j's side leave component k for a new one."""
    new = open_slot(arm.components, arm.label, arm.slot, arm.size, arm.prior)
    copy_row(H[:, 0], arm.components[:, k])
    copy_row(H[:, 1], arm.components[:, new])
    for t in range(side.shape[0]):
        if side[t] == 1:
            arm.z[t] = arm.label[new]


@kernel
def merge(arm: Arm, i: int, j: int, H: Array, side: IntArray) -> None:
    """Let the component of j join that of i."""
    kept, gone = arm.z[i], arm.z[j]
    copy_row(H[:, 2], arm.components[:, arm.slot[kept]])
    for t in range(side.shape[0]):
        if side[t] == 1:
            arm.z[t] = kept
    close_slot(arm.components, arm.label, arm.slot, arm.size, arm.slot[gone])


@kernel
def propose(arm: Arm, rng: Rng) -> None:
    """One proposal; components with absorbed rewards are left alone, in both directions."""
    z, prior, process, data = arm.z, arm.prior, arm.process, arm.data
    n, K = arm.size[ROWS], arm.size[K_USED]
    i = int(rng.random() * n)
    j = int(rng.random() * (n - 1))
    j += 1 if j >= i else 0
    R0 = arm.R0[home(arm.R0, z[i])]
    if n_absorbed(R0) > 0.0 or n_absorbed(arm.R0[home(arm.R0, z[j])]) > 0.0:
        return
    side, whole, order = np.full(n, -1), np.zeros(n, np.int64), np.empty(n, np.int64)
    M = others_of(z, n, i, j, whole, order, rng)
    H = np.empty((arm.components.shape[0], 4))
    for h in range(4):
        reset(H, h, prior)
    splitting = z[i] == z[j]
    sides = Arm(H, arm.label, arm.slot, arm.size, prior, R0.reshape(1, *R0.shape), process, data, side)
    log_q = allocate(sides, z, order[:M], splitting, i, j, rng)
    rebuild_component(H, 2, prior, R0, data, whole, 1, -1)
    cache_constants(H, 2, process[SHAPE], process[DISCOUNT])
    A = log_ratio(H, K if splitting else K - 1, prior, process, log_q)
    if math.log(rng.random()) < (A if splitting else -A):
        if splitting:
            split(arm, arm.slot[z[i]], H, side)
        else:
            merge(arm, i, j, H, side)


@kernel
def split_merge(books: Books, arm: int, n_proposals: int, handle: RngHandle) -> int:
    """Make proposals for one arm; return how many are left when no slot was free."""
    rng, one = rng_from(handle), arm_of(books, arm)
    for left in range(n_proposals, 0, -1):
        if not has_room(one):
            return left
        if one.size[ROWS] > 1:
            propose(one, rng)
    return 0
