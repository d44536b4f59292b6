"""Collapsed Gibbs moves over the seating of one arm's rewards (Neal 2000, algorithm 3).

A row that comes round again is absorbed: its reward stays in its component's statistics and can move no more.
A kernel stops when no slot is free and says how much is left to do; the caller makes room and calls again.
Notation: records.py.
"""

import math

import numpy as np

from polyarm.kernels._jit import RngHandle, inlined, kernel, no_refcount, rng_from
from polyarm.kernels.copying import copy_row
from polyarm.kernels.linalg.sqrt_information import absorb
from polyarm.kernels.mixture.component import (
    COEF,
    COUNT,
    DISCOUNT,
    GAMMA,
    LOO,
    NOISE,
    SCALE,
    SHAPE,
    cache_constants,
    log_evidence,
    log_mass,
    log_predictive,
    log_predictives,
    prior_log_predictive,
    rank_one,
    rebuild,
    residuals,
)
from polyarm.kernels.mixture.finite import finite_columns
from polyarm.kernels.mixture.records import (
    EVER,
    K_USED,
    NEXT,
    ROWS,
    Arm,
    Books,
    Room,
    arm_of,
    close_slot,
    home,
    open_slot,
    room_for,
)
from polyarm.kernels.mixture.seating import draw_index, log_partition, shuffle
from polyarm.types import Array, IntArray, Rng

CAREFUL = 1e-6  # a leverage this close to one, or a scale that falls to this share, leaves under ten digits
ROUNDING = 1.0 - 1e-9  # b >= b0 always; a scale that falls further below has lost digits

NOT_FINITE = -1  # what `learn` returns where a component is not


@inlined
def has_room(arm: Arm) -> bool:
    """Whether there is a slot for a new component and one to spare."""
    return bool(arm.size[K_USED] + 2 <= arm.components.shape[1])


@inlined
def add(arm: Arm, k: int, i: int, label: int, v: Array) -> None:
    """Add reward i, which already carries the label, to component k."""
    if rank_one(arm.components, k, arm.data, i, 1.0, v):
        rebuild(arm.components, k, arm.prior, arm.R0[home(arm.R0, label)], arm.data, arm.z[: arm.size[ROWS]], label, -1)
    cache_constants(arm.components, k, arm.process[SHAPE], arm.process[DISCOUNT])


@inlined
def remove(arm: Arm, k: int, i: int, label: int, v: Array) -> None:
    """Remove reward i, which no longer carries the label, from component k."""
    if rank_one(arm.components, k, arm.data, i, -1.0, v) or arm.components[SCALE, k] < arm.process[NOISE] * ROUNDING:
        rebuild(arm.components, k, arm.prior, arm.R0[home(arm.R0, label)], arm.data, arm.z[: arm.size[ROWS]], label, -1)
    cache_constants(arm.components, k, arm.process[SHAPE], arm.process[DISCOUNT])


@inlined
def score(arm: Arm, i: int, room: Room) -> None:
    """Write the log weight of every component and, last, of a new one, for reward i as if seated nowhere."""
    T, K, process, logw, s, e = arm.components, arm.size[K_USED], arm.process, room.logw, room.s, room.e
    residuals(T, K, arm.data, i, s, e)
    log_predictives(T, K, process[SHAPE], s, e, logw)
    logw[K] = log_mass(process[GAMMA] + K * process[DISCOUNT]) + arm.data[i, arm.data.shape[1] - 1]


@kernel
def log_without(arm: Arm, spare: int, i: int) -> float:
    """Log weight of reward i for its own component, rebuilt without it in a spare slot: slow, exact."""
    T, process, label = arm.components, arm.process, arm.z[i]
    rebuild(T, spare, arm.prior, arm.R0[home(arm.R0, label)], arm.data, arm.z[: arm.size[ROWS]], label, i)
    cache_constants(T, spare, process[SHAPE], process[DISCOUNT])
    s, e = np.empty(T.shape[1]), np.empty(T.shape[1])
    residuals(T, spare + 1, arm.data, i, s, e)
    return log_predictive(T[COEF, spare], process[SHAPE] + 0.5 * T[COUNT, spare], T[SCALE, spare], s[spare], e[spare])


@inlined
def log_leave_one_out(arm: Arm, k: int, i: int, spare: int, s: float, e: float) -> float:
    """Log weight of reward i for its own component k without it; s and e are those with it.

    Without i: V loses one row, so with t = 1 - x'Vx:  b' = b - e^2/(2t)  and  log weight = LOO + log(t)/2 + a' log b'.
    """
    T, process = arm.components, arm.process
    t = 2.0 - s
    b = T[SCALE, k]
    a = process[SHAPE] + 0.5 * (T[COUNT, k] - 1.0)
    left = b - e * e / (2.0 * t) if t > CAREFUL else 0.0
    if left > CAREFUL * b and left >= process[NOISE] * ROUNDING:
        return T[LOO, k] + 0.5 * math.log(t) + a * math.log(left)
    return log_without(arm, spare, i)


@inlined
def move(arm: Arm, i: int, room: Room, rng: Rng) -> None:
    """Draw the seat of reward i again, given all others."""
    process, logw, K = arm.process, room.logw, arm.size[K_USED]
    k0 = arm.slot[arm.z[i]]
    score(arm, i, room)
    alone = arm.components[COUNT, k0] == 1.0
    if alone:  # its component counts as new, and there is one fewer in use
        logw[k0] = log_mass(process[GAMMA] + (K - 1) * process[DISCOUNT]) + arm.data[i, arm.data.shape[1] - 1]
        k = draw_index(logw, K, rng)
    else:
        logw[k0] = log_leave_one_out(arm, k0, i, K, room.s[k0], room.e[k0])
        k = draw_index(logw, K + 1, rng)
    if k == k0:
        return
    if k == K:
        open_slot(arm.components, arm.label, arm.slot, arm.size, arm.prior)
    old = arm.z[i]
    arm.z[i] = arm.label[k]
    add(arm, k, i, arm.label[k], room.v)
    if alone:
        close_slot(arm.components, arm.label, arm.slot, arm.size, k0)
    else:
        remove(arm, k0, i, old, room.v)


@no_refcount
def make_moves(arm: Arm, order: IntArray, n_moves: int, room: Room, rng: Rng) -> int:
    """Move the last n_moves rewards of `order` until no slot is free; return how many are left."""
    last = order.shape[0]
    for left in range(n_moves, 0, -1):
        if not has_room(arm):
            return left
        move(arm, order[last - left], room, rng)
    return 0


@no_refcount
def draw_rewards(order: IntArray, n: int, data: Array, z: IntArray, rng: Rng) -> None:
    """Fill order with uniformly drawn rewards.

    The comparison always holds; it makes the processor fetch all these rewards from memory side by side, instead of one
    after the other when their turn comes: at n = 100 000 that is half of the cost of an update.
    """
    for j in range(order.shape[0]):
        i = int(rng.random() * n)
        order[j] = i if z[i] >= 0 and data[i, 0] < math.inf else 0


@kernel
def make_random_moves(arm: Arm, n_moves: int, room: Room, rng: Rng) -> int:
    """Make moves of uniformly drawn rewards; return how many are left when no slot was free."""
    order = np.empty(n_moves, np.int64)
    draw_rewards(order, arm.size[ROWS], arm.data, arm.z, rng)
    return make_moves(arm, order, n_moves, room, rng)


@kernel
def random_moves(books: Books, arm: int, n_moves: int, handle: RngHandle) -> int:
    """Make moves of an arm's uniformly drawn rewards; return how many are left when no slot was free."""
    one = arm_of(books, arm)
    return make_random_moves(one, n_moves, room_for(one), rng_from(handle))


@kernel
def sweep(books: Books, arm: int, order: IntArray, n_moves: int, handle: RngHandle) -> int:
    """Move every reward once in a fresh random order; return how many are left when no slot was free.

    Call with n_moves equal to the number of rewards to begin a sweep, with what was returned to go on with it.
    """
    rng, one = rng_from(handle), arm_of(books, arm)
    if n_moves == one.size[ROWS]:
        shuffle(order, n_moves, rng)
    return make_moves(one, order, n_moves, room_for(one), rng)


@kernel
def add_reward(arm: Arm, x: Array, y: float, room: Room, rng: Rng) -> None:
    """Write a reward to its row of the arm's data and draw its seat given the others; a slot must be free."""
    size, data = arm.size, arm.data
    d, i = x.shape[0], size[NEXT]
    if i < size[ROWS]:
        absorb(arm.R0[home(arm.R0, arm.z[i])], data[i, : d + 1].copy())
    copy_row(x, data[i])
    data[i, d] = y
    data[i, d + 1] = prior_log_predictive(arm.prior, arm.process[SHAPE], data, i)
    score(arm, i, room)
    k = draw_index(room.logw, size[K_USED] + 1, rng)
    if k == size[K_USED]:
        open_slot(arm.components, arm.label, arm.slot, size, arm.prior)
    arm.z[i] = arm.label[k]
    size[NEXT] = i + 1
    size[ROWS] = max(size[ROWS], i + 1)
    size[EVER] += 1
    add(arm, k, i, arm.label[k], room.v)


@kernel
def seat(books: Books, arm: int, x: Array, y: float, handle: RngHandle) -> None:
    """Write a reward to an arm's data and draw its seat given the others; a slot must be free."""
    one = arm_of(books, arm)
    add_reward(one, x, y, room_for(one), rng_from(handle))


@kernel
def learn(books: Books, arm: int, x: Array, y: float, n_moves: int, handle: RngHandle) -> int:
    """Seat a new reward, then make at most 10 n random moves; return how many are left when no slot was free."""
    rng, one = rng_from(handle), arm_of(books, arm)
    room = room_for(one)
    add_reward(one, x, y, room, rng)
    left = make_random_moves(one, min(n_moves, 10 * one.size[ROWS]), room, rng)
    return left if finite_columns(one.components, one.size[K_USED]) else NOT_FINITE


@kernel
def rebuild_components(books: Books, arm: int) -> None:
    """Compute every component of an arm afresh from what it has absorbed and the rewards that carry its label."""
    one = arm_of(books, arm)
    for k in range(one.size[K_USED]):
        label = one.label[k]
        start = one.R0[home(one.R0, label)]
        rebuild(one.components, k, one.prior, start, one.data, one.z[: one.size[ROWS]], label, -1)
        cache_constants(one.components, k, one.process[SHAPE], one.process[DISCOUNT])


@kernel
def log_joint(tables: Array, sizes: IntArray, priors: Array, processes: Array, arm: int) -> float:
    """Log joint density of the arm's rewards and their seating, p(y | z) p(z)."""
    T, process = tables[arm], processes[arm]
    total = log_partition(T[COUNT], sizes[arm, K_USED], process[GAMMA], process[DISCOUNT])
    for k in range(sizes[arm, K_USED]):
        total += log_evidence(T, k, priors[arm], process[SHAPE])
    return total
