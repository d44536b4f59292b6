"""Collapsed Gibbs moves over the seating of one arm's rewards (Neal 2000, algorithm 3).

T        (rows, C)    the arm's components, side by side (component.py)
label    (C,)         label of the component at each place; the first K places are in use
place    (C,)         place of each label: the inverse of `label`, so that rewards are never relabelled
size     (4,)         K components in use, n rewards that can move, row of the next reward, rewards ever
prior    (rows,)      column of an empty component
root     (B, d+1, d+1) square-root information (root.py) of the prior and of what each label has absorbed for good;
                      B = 1 while nothing ever is
law      (4,)         a0, b0, concentration, discount
data     (N, d + 2)   x, y and the prior's log predictive of each reward
z        (N,)         label of each reward

A row that comes round again is absorbed: its reward stays in its component's statistics and can move no more.
A kernel stops when the table is full and says how much is left to do; the caller makes room and calls again.
"""

import math

import numpy as np

from polyarm.kernels._jit import Stream, generator, kernel, loop, step
from polyarm.kernels.component import (
    COEF,
    COUNT,
    DISCOUNT,
    GAMMA,
    LOO,
    NOISE,
    SCALE,
    SHAPE,
    cache_constants,
    copy,
    log_evidence,
    log_mass,
    log_predictive,
    prior_log_predictive,
    rank_one,
    rebuild,
    reset,
    residuals,
)
from polyarm.kernels.finite import finite_columns
from polyarm.kernels.root import absorb
from polyarm.kernels.seating import draw_index, log_partition, shuffle
from polyarm.types import Array, IntArray, Rng

CAREFUL = 1e-6  # a leverage this close to one, or a scale that falls to this share, leaves under ten digits
ROUNDING = 1.0 - 1e-9  # b >= b0 always; a scale that falls further below has lost digits


K_USED, ROWS, NEXT, EVER = 0, 1, 2, 3
NOT_FINITE = -1  # what `learn` returns where a component is not


@step
def home(root: Array, label: int) -> int:
    """Where the square-root information stands that a component of that label starts from."""
    return label if root.shape[0] > 1 else 0


@step
def has_room(T: Array, size: IntArray) -> bool:
    """Whether the table has a place for a new component and one to spare."""
    return bool(size[0] + 2 <= T.shape[1])


@step
def add(
    T: Array,
    k: int,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    z: IntArray,
    n: int,
    i: int,
    label: int,
    v: Array,
) -> None:
    """Add reward i, which already carries the label, to component k."""
    if rank_one(T, k, data, i, 1.0, v):
        rebuild(T, k, prior, root[home(root, label)], data, z, n, label, -1)
    cache_constants(T, k, law[SHAPE], law[DISCOUNT])


@step
def remove(
    T: Array,
    k: int,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    z: IntArray,
    n: int,
    i: int,
    label: int,
    v: Array,
) -> None:
    """Remove reward i, which no longer carries the label, from component k."""
    if rank_one(T, k, data, i, -1.0, v) or T[SCALE, k] < law[NOISE] * ROUNDING:
        rebuild(T, k, prior, root[home(root, label)], data, z, n, label, -1)
    cache_constants(T, k, law[SHAPE], law[DISCOUNT])


@step
def open_place(T: Array, label: IntArray, place: IntArray, size: IntArray, prior: Array) -> int:
    """Take the next place for a new, empty component."""
    k = size[0]
    reset(T, k, prior)
    place[label[k]] = k
    size[0] += 1
    return int(k)


@step
def close_place(T: Array, label: IntArray, place: IntArray, size: IntArray, k: int) -> None:
    """Give up the place of an empty component: the last component moves there."""
    size[0] -= 1
    last = size[0]
    free = label[k]
    if k != last:
        copy(T, last, k)
        label[k] = label[last]
        place[label[k]] = k
        label[last] = free
    place[free] = last


@step
def score(T: Array, size: IntArray, law: Array, data: Array, i: int, logw: Array, s: Array, e: Array) -> None:
    """Write the log weight of every component and, last, of a new one, for reward i as if seated nowhere."""
    K = size[0]
    residuals(T, K, data, i, s, e)
    for k in range(K):
        logw[k] = log_predictive(T[COEF, k], law[SHAPE] + 0.5 * T[COUNT, k], T[SCALE, k], s[k], e[k])
    logw[K] = log_mass(law[GAMMA] + K * law[DISCOUNT]) + data[i, data.shape[1] - 1]


@kernel
def log_without(
    T: Array, spare: int, prior: Array, root: Array, law: Array, data: Array, z: IntArray, n: int, i: int
) -> float:
    """Log weight of reward i for its own component, rebuilt without it in a spare place: slow, exact."""
    rebuild(T, spare, prior, root[home(root, z[i])], data, z, n, z[i], i)
    cache_constants(T, spare, law[SHAPE], law[DISCOUNT])
    s, e = np.empty(T.shape[1]), np.empty(T.shape[1])
    residuals(T, spare + 1, data, i, s, e)
    return log_predictive(T[COEF, spare], law[SHAPE] + 0.5 * T[COUNT, spare], T[SCALE, spare], s[spare], e[spare])


@step
def log_leave_one_out(
    T: Array,
    k: int,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    z: IntArray,
    n: int,
    i: int,
    spare: int,
    s: float,
    e: float,
) -> float:
    """Log weight of reward i for its own component k without it; s and e are those with it.

    Without i: V loses one row, so with t = 1 - x'Vx:  b' = b - e^2/(2t)  and  log weight = LOO + log(t)/2 + a' log b'.
    """
    t = 2.0 - s
    b = T[SCALE, k]
    a = law[SHAPE] + 0.5 * (T[COUNT, k] - 1.0)
    left = b - e * e / (2.0 * t) if t > CAREFUL else 0.0
    if left > CAREFUL * b and left >= law[NOISE] * ROUNDING:
        return T[LOO, k] + 0.5 * math.log(t) + a * math.log(left)
    return log_without(T, spare, prior, root, law, data, z, n, i)


@step
def move(
    T: Array,
    label: IntArray,
    place: IntArray,
    size: IntArray,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    z: IntArray,
    i: int,
    logw: Array,
    s: Array,
    e: Array,
    v: Array,
    rng: Rng,
) -> None:
    """Draw the seat of reward i again, given all others."""
    n = size[1]
    d = v.shape[0]
    K = size[0]
    k0 = place[z[i]]
    score(T, size, law, data, i, logw, s, e)
    alone = T[COUNT, k0] == 1.0
    if alone:  # its table counts as new, and there is one table fewer in use
        logw[k0] = log_mass(law[GAMMA] + (K - 1) * law[DISCOUNT]) + data[i, d + 1]
        k = draw_index(logw, K, rng)
    else:
        logw[k0] = log_leave_one_out(T, k0, prior, root, law, data, z, n, i, K, s[k0], e[k0])
        k = draw_index(logw, K + 1, rng)
    if k == k0:
        return
    if k == K:
        open_place(T, label, place, size, prior)
    old = z[i]
    z[i] = label[k]
    add(T, k, prior, root, law, data, z, n, i, label[k], v)
    if alone:
        close_place(T, label, place, size, k0)
    else:
        remove(T, k0, prior, root, law, data, z, n, i, old, v)


@loop
def make_moves(
    T: Array,
    label: IntArray,
    place: IntArray,
    size: IntArray,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    z: IntArray,
    order: IntArray,
    n_moves: int,
    logw: Array,
    s: Array,
    e: Array,
    v: Array,
    rng: Rng,
) -> int:
    """Move the last n_moves rewards of `order` until the table is full; return how many are left."""
    last = order.shape[0]
    for left in range(n_moves, 0, -1):
        if not has_room(T, size):
            return left
        move(T, label, place, size, prior, root, law, data, z, order[last - left], logw, s, e, v, rng)
    return 0


@kernel
def moves_of(
    tables: Array,
    labels: IntArray,
    sizes: IntArray,
    priors: Array,
    roots: Array,
    laws: Array,
    data: Array,
    z: IntArray,
    arm: int,
    order: IntArray,
    n_moves: int,
    rng: Rng,
) -> int:
    """Make moves of one arm's rewards, as `make_moves`."""
    C = tables.shape[2]
    logw, s, e, v = np.empty(C), np.empty(C), np.empty(C), np.empty(data.shape[1] - 2)
    return make_moves(
        tables[arm],
        labels[arm, 0],
        labels[arm, 1],
        sizes[arm],
        priors[arm],
        roots[arm],
        laws[arm],
        data,
        z,
        order,
        n_moves,
        logw,
        s,
        e,
        v,
        rng,
    )


@loop
def draw_rewards(order: IntArray, n: int, data: Array, z: IntArray, rng: Rng) -> None:
    """Fill order with uniformly drawn rewards.

    The comparison always holds; it makes the processor fetch all these rewards from memory side by side, instead of one
    after the other when their turn comes: at n = 100 000 that is half of the cost of an update.
    """
    for j in range(order.shape[0]):
        i = int(rng.random() * n)
        order[j] = i if z[i] >= 0 and data[i, 0] < math.inf else 0


@kernel
def random_moves(
    tables: Array,
    labels: IntArray,
    sizes: IntArray,
    priors: Array,
    roots: Array,
    laws: Array,
    data: Array,
    z: IntArray,
    arm: int,
    n_moves: int,
    source: Stream,
) -> int:
    """Make moves of uniformly drawn rewards; return how many are left when the table was full."""
    rng = generator(source)
    order = np.empty(n_moves, np.int64)
    draw_rewards(order, sizes[arm, 1], data, z, rng)
    return moves_of(tables, labels, sizes, priors, roots, laws, data, z, arm, order, n_moves, rng)


@kernel
def sweep(
    tables: Array,
    labels: IntArray,
    sizes: IntArray,
    priors: Array,
    roots: Array,
    laws: Array,
    data: Array,
    z: IntArray,
    arm: int,
    order: IntArray,
    n_moves: int,
    source: Stream,
) -> int:
    """Move every reward once in a fresh random order; return how many are left when the table was full.

    Call with n_moves equal to the number of rewards to begin a sweep, with what was returned to go on with it.
    """
    rng = generator(source)
    if n_moves == sizes[arm, 1]:
        shuffle(order, n_moves, rng)
    return moves_of(tables, labels, sizes, priors, roots, laws, data, z, arm, order, n_moves, rng)


@kernel
def seat(
    tables: Array,
    labels: IntArray,
    sizes: IntArray,
    priors: Array,
    roots: Array,
    laws: Array,
    data: Array,
    z: IntArray,
    arm: int,
    x: Array,
    y: float,
    source: Stream,
) -> None:
    """Write a reward to its row of the arm's data and draw its seat given the others; the table must have room."""
    rng = generator(source)
    T, label, place, size = tables[arm], labels[arm, 0], labels[arm, 1], sizes[arm]
    prior, law = priors[arm], laws[arm]
    d = x.shape[0]
    i = size[NEXT]
    if i < size[ROWS]:
        absorb(roots[arm, home(roots[arm], z[i])], data[i, : d + 1].copy())
    for j in range(d):
        data[i, j] = x[j]
    data[i, d] = y
    data[i, d + 1] = prior_log_predictive(prior, law[SHAPE], data, i)
    logw, s, e = np.empty(T.shape[1]), np.empty(T.shape[1]), np.empty(T.shape[1])
    score(T, size, law, data, i, logw, s, e)
    k = draw_index(logw, size[0] + 1, rng)
    if k == size[0]:
        open_place(T, label, place, size, prior)
    z[i] = label[k]
    size[NEXT] = i + 1
    size[ROWS] = max(size[ROWS], i + 1)
    size[EVER] += 1
    add(T, k, prior, roots[arm], law, data, z, size[ROWS], i, label[k], np.empty(d))


@kernel
def learn(
    tables: Array,
    labels: IntArray,
    sizes: IntArray,
    priors: Array,
    roots: Array,
    laws: Array,
    data: Array,
    z: IntArray,
    arm: int,
    x: Array,
    y: float,
    n_moves: int,
    source: Stream,
) -> int:
    """Seat a new reward, then make at most 10 n random moves; return how many are left when the table was full."""
    seat(tables, labels, sizes, priors, roots, laws, data, z, arm, x, y, source)
    moves = min(n_moves, 10 * sizes[arm, 1])
    left = random_moves(tables, labels, sizes, priors, roots, laws, data, z, arm, moves, source)
    return left if finite_columns(tables[arm], sizes[arm, 0]) else NOT_FINITE


@kernel
def rebuild_components(
    tables: Array,
    labels: IntArray,
    sizes: IntArray,
    priors: Array,
    roots: Array,
    laws: Array,
    data: Array,
    z: IntArray,
    arm: int,
) -> None:
    """Compute every component of an arm afresh from what it has absorbed and the rewards that carry its label."""
    for k in range(sizes[arm, 0]):
        label = labels[arm, 0, k]
        start = roots[arm, home(roots[arm], label)]
        rebuild(tables[arm], k, priors[arm], start, data, z, sizes[arm, ROWS], label, -1)
        cache_constants(tables[arm], k, laws[arm, SHAPE], laws[arm, DISCOUNT])


@kernel
def log_joint(tables: Array, sizes: IntArray, priors: Array, laws: Array, arm: int) -> float:
    """Log joint density of the arm's rewards and their seating, p(y | z) p(z)."""
    T, law = tables[arm], laws[arm]
    total = log_partition(T[COUNT], sizes[arm, 0], law[GAMMA], law[DISCOUNT])
    for k in range(sizes[arm, 0]):
        total += log_evidence(T, k, priors[arm], law[SHAPE])
    return total
