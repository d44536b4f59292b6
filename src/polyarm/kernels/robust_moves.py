"""Gibbs moves over the seating of one arm's rewards with the slopes integrated out (Neal 2000, algorithm 8).

T        (rows, C)   the arm's components (robust_component.py)
label    (C,)        label of the component at each place; the first K places are in use
place    (C,)        place of each label: the inverse of `label`, so that rewards are never relabelled
size     (3,)        K components in use, n rewards that can move, row of the next reward
w0 (D,)              centre of the components
columns              R, the prior variance of their slopes around it, and what robust_places.py needs (robust_scales.py)
gamma, tau, b, law   concentration; spread of the components' places; scale and settings of p(s2) (robust_scales.py)

weight of reward i for component k:        n_k N(y; x'U_k, s2_k + x'V_k x) p(x | k), with i itself taken out
weight for a new one:                      gamma/2 N(y; x'w0, s2* + x'Rx) p(x) p(s2*) / h(s2*), h = (h1 + h2)/2, for
                                           s2* ~ h1 = IG(a, b) and s2* ~ h2 = IG(a + 1/2, b + (y - x'w0)^2 / 2);
                                           the s2 of a component that i leaves empty stands for one of the two, with
                                           probabilities proportional to h1(s2) and h2(s2)
With draws from p alone an outlier hardly ever meets a noise variance of its size, and is taken for a slope instead.
Without i its own component has t = s2 - x'Vx:  N(...) = sqrt(t)/s2 exp(-e^2 / (2t)) up to 1/sqrt(2 pi).
"""

import math

from polyarm.kernels._jit import loop, step
from polyarm.kernels.gibbs import ROWS, close_place
from polyarm.kernels.robust_component import (
    CAREFUL,
    COUNT,
    MOVES,
    MOVES_KEPT,
    OUTWEIGHED,
    SYY,
    VAR,
    count_in,
    rank_one,
    recount,
    reset,
    residuals,
    solve,
)
from polyarm.kernels.robust_places import distance
from polyarm.kernels.robust_scales import BULK, NOISE_SHAPE, PART_VAR, tail
from polyarm.types import Array, IntArray, Rng

AUXILIARY = 2  # noise variances proposed for a new component


@step
def has_room(T: Array, size: IntArray) -> bool:
    """Whether the table has a place for a new component and for both proposals."""
    return bool(size[0] + AUXILIARY <= T.shape[1])


@step
def draw_weighted(weight: Array, gap: Array, size: int, rng: Rng) -> int:
    """Index k < size drawn with probability proportional to weight[k] exp(-gap[k]); weight is used up."""
    low = gap[0]
    for k in range(1, size):
        low = min(low, gap[k])
    total = 0.0
    for k in range(size):
        above = gap[k] - low
        total += weight[k] * math.exp(-above) if above < 700.0 else 0.0
        weight[k] = total
    u = rng.random() * total
    k = 0
    while k < size - 1 and weight[k] <= u:
        k += 1
    return k


@loop
def add(T: Array, k: int, w0: Array, R: Array, data: Array, i: int, M: Array, B: Array, v: Array) -> None:
    """Add reward i to component k."""
    count_in(T, k, data, i, 1.0)
    if rank_one(T, k, data, i, 1.0, v):
        solve(T, k, w0, R, M, B, v)


@loop
def remove(
    T: Array,
    k: int,
    w0: Array,
    R: Array,
    data: Array,
    z: IntArray,
    n: int,
    i: int,
    label: int,
    M: Array,
    B: Array,
    v: Array,
) -> None:
    """Remove reward i, which no longer carries the label, from component k."""
    count_in(T, k, data, i, -1.0)
    y = data[i, data.shape[1] - 1]
    stale = T[MOVES, k] > max(MOVES_KEPT, 8.0 * T[COUNT, k]) or T[SYY, k] < OUTWEIGHED * y * y
    if stale:
        recount(T, k, data, z, n, label)
    if stale or rank_one(T, k, data, i, -1.0, v):
        solve(T, k, w0, R, M, B, v)


@step
def open_place(T: Array, label: IntArray, place: IntArray, size: IntArray, w0: Array, R: Array, s2: float) -> int:
    """Take the next place for a new, empty component."""
    k = size[0]
    reset(T, k, w0, R, s2)
    place[label[k]] = k
    size[0] += 1
    return int(k)


@step
def score(
    T: Array,
    K: int,
    columns: Array,
    tau: float,
    data: Array,
    i: int,
    weight: Array,
    gap: Array,
    q: Array,
    e: Array,
) -> None:
    """Write weight and gap of reward i for every component as if it sat nowhere."""
    residuals(T, K, data, i, q, e)
    for k in range(K):
        s = T[VAR, k] + max(q[k], 0.0)
        weight[k] = T[COUNT, k] / math.sqrt(s)
        gap[k] = 0.5 * e[k] * e[k] / s + distance(T, k, columns, tau, data[i], 0.0)


@step
def score_new(k: int, s2: float, q: float, half: float, away: float, mass: float, weight: Array, gap: Array) -> None:
    """Write weight and gap of a reward for a new component with that noise variance, at place k.

    q = x'Rx;  half = (y - x'w0)^2 / 2;  away = minus log p(x);  mass = gamma/2 p(s2) / h(s2).
    """
    weight[k] = mass / math.sqrt(s2 + q)
    gap[k] = half / (s2 + q) + away


@step
def wider(s2: float, half: float, b: float, law: Array) -> float:
    """h2(s2) / h1(s2)."""
    t = b + half
    return law[BULK] * math.sqrt(t / s2) * math.exp(law[NOISE_SHAPE] * math.log(t / b) - half / s2)


@step
def suggest_noise(half: float, a: float, b: float, wide: bool, rng: Rng) -> float:
    """A draw from h1, or from h2."""
    if wide:
        return float((b + half) / rng.standard_gamma(a + 0.5))
    return float(b / rng.standard_gamma(a))


@loop
def score_own(
    T: Array,
    k: int,
    w0: Array,
    columns: Array,
    tau: float,
    data: Array,
    i: int,
    weight: Array,
    gap: Array,
    q: Array,
    e: Array,
    M: Array,
    B: Array,
    v: Array,
) -> None:
    """Write weight and gap of reward i for its own component k without it."""
    R = columns[PART_VAR]
    s2 = T[VAR, k]
    t = s2 - q[k]
    n = T[COUNT, k] - 1.0
    away = distance(T, k, columns, tau, data[i], 1.0)
    if t > CAREFUL * s2:
        weight[k] = n * math.sqrt(t) / s2
        gap[k] = 0.5 * e[k] * e[k] / t + away
        return
    count_in(T, k, data, i, -1.0)
    solve(T, k, w0, R, M, B, v)
    residuals(T, k + 1, data, i, q, e)
    s = s2 + max(q[k], 0.0)
    weight[k] = n / math.sqrt(s)
    gap[k] = 0.5 * e[k] * e[k] / s + away
    count_in(T, k, data, i, 1.0)
    solve(T, k, w0, R, M, B, v)


@step
def move(
    T: Array,
    label: IntArray,
    place: IntArray,
    size: IntArray,
    w0: Array,
    columns: Array,
    gamma: float,
    tau: float,
    b: float,
    law: Array,
    data: Array,
    z: IntArray,
    i: int,
    work: Array,
    M: Array,
    B: Array,
    v: Array,
    rng: Rng,
    new: bool,
) -> None:
    """Draw the seat of reward i again, given all others; a new reward has none yet."""
    weight, gap, q, e = work[0], work[1], work[2], work[3]
    R = columns[PART_VAR]
    K = size[0]
    k0 = K if new else place[z[i]]
    score(T, K, columns, tau, data, i, weight, gap, q, e)
    alone = not new and T[COUNT, k0] == 1.0
    D = R.shape[0]
    far, wide = data[i, D], 0.0
    for j in range(D):
        far -= data[i, j] * w0[j]
        wide += data[i, j] * data[i, j] * R[j]
    half, away = 0.5 * far * far, distance(T, -1, columns, tau, data[i], 0.0)
    a = law[NOISE_SHAPE]
    first = T[VAR, k0] if alone else suggest_noise(half, a, b, False, rng)
    ratio = wider(first, half, b, law)
    second = suggest_noise(half, a, b, not alone or rng.random() * (1.0 + ratio) < 1.0, rng)
    mass = gamma * tail(first / b, law) / (1.0 + ratio)
    other_mass = gamma * tail(second / b, law) / (1.0 + wider(second, half, b, law))
    if alone:
        score_new(k0, first, wide, half, away, mass, weight, gap)
        score_new(K, second, wide, half, away, other_mass, weight, gap)
        k = draw_weighted(weight, gap, K + 1, rng)
    else:
        if not new:
            score_own(T, k0, w0, columns, tau, data, i, weight, gap, q, e, M, B, v)
        score_new(K, first, wide, half, away, mass, weight, gap)
        score_new(K + 1, second, wide, half, away, other_mass, weight, gap)
        k = draw_weighted(weight, gap, K + 2, rng)
    if k == k0 and not new:
        return
    if alone and k == K:  # the same table with another noise variance
        reset(T, k0, w0, R, second)
        add(T, k0, w0, R, data, i, M, B, v)
        return
    if k >= K:
        k = open_place(T, label, place, size, w0, R, first if k == K else second)
    old = z[i]
    z[i] = label[k]
    add(T, k, w0, R, data, i, M, B, v)
    if new:
        return
    if alone:
        close_place(T, label, place, size, k0)
    else:
        remove(T, k0, w0, R, data, z, size[ROWS], i, old, M, B, v)


@loop
def make_moves(
    T: Array,
    label: IntArray,
    place: IntArray,
    size: IntArray,
    w0: Array,
    columns: Array,
    gamma: float,
    tau: float,
    b: float,
    law: Array,
    data: Array,
    z: IntArray,
    n_moves: int,
    work: Array,
    M: Array,
    B: Array,
    v: Array,
    rng: Rng,
) -> int:
    """Move uniformly drawn rewards; stop when the table is full and return how many moves are left."""
    for left in range(n_moves, 0, -1):
        if not has_room(T, size):
            return left
        i = int(rng.random() * size[ROWS])
        move(T, label, place, size, w0, columns, gamma, tau, b, law, data, z, i, work, M, B, v, rng, False)
    return 0
