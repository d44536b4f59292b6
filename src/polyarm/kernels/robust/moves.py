"""Gibbs moves over the seating of one arm's rewards with the slopes integrated out (Neal 2000, algorithm 8).

weight of reward i for component k:        n_k N(y; x'U_k, s2_k + x'V_k x) p(x | k), with i itself taken out
weight for a new one:                      gamma/2 N(y; x'w0, s2* + x'Rx) p(x) p(s2*) / h(s2*), h = (h1 + h2)/2, for
                                           s2* ~ h1 = IG(a, b) and s2* ~ h2 = IG(a + 1/2, b + (y - x'w0)^2 / 2);
                                           the s2 of a component that i leaves empty stands for one of the two, with
                                           probabilities proportional to h1(s2) and h2(s2)
With draws from p alone an outlier hardly ever meets a noise variance of its size, and is taken for a slope instead.
Without i its own component has t = s2 - x'Vx:  N(...) = sqrt(t)/s2 exp(-e^2 / (2t)) up to 1/sqrt(2 pi).

Notation: records.py; T is the table of the arm's components, and p(x | k) that of gating.py.  Weights are kept as
weight[k] exp(-gap[k]).
"""

import math

from polyarm.kernels._jit import inlined, no_refcount
from polyarm.kernels.elementary import exp
from polyarm.kernels.lanes import LANES, load, sqrt, store, where_less, within
from polyarm.kernels.mixture.records import K_USED, ROWS, close_slot
from polyarm.kernels.robust.component import (
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
)
from polyarm.kernels.robust.gating import minus_log_densities, minus_log_density
from polyarm.kernels.robust.records import Arm, Arms, Features, Hyperprior, Room, Solver
from polyarm.kernels.robust.shared import tail
from polyarm.kernels.robust.solving import solve
from polyarm.types import Array, Rng

AUXILIARY = 2  # noise variances proposed for a new component


@inlined
def has_room(arm: Arm) -> bool:
    """Whether the arm has a slot for a new component and for both proposals."""
    return bool(arm.size[K_USED] + AUXILIARY <= arm.components.shape[1])


@inlined
def draw_weighted(weight: Array, gap: Array, size: int, rng: Rng) -> int:
    """Index k < size drawn with probability proportional to weight[k] exp(-gap[k]); weight is used up."""
    low = gap[0]
    for k in range(1, size):
        low = min(low, gap[k])
    for k in range(0, size, LANES):
        above = within(0, size - k, load(gap, k) - low, math.inf)
        share = exp(where_less(above, 700.0, -1.0 * above, 0.0))
        store(where_less(above, 700.0, load(weight, k) * share, 0.0), weight, k)
    total = 0.0
    for k in range(size):
        total += weight[k]
        weight[k] = total
    u = rng.random() * total
    k = 0
    while k < size - 1 and weight[k] <= u:
        k += 1
    return k


@no_refcount
def add(arm: Arm, k: int, R: Array, i: int, solver: Solver) -> None:
    """Add reward i to component k."""
    count_in(arm.components, k, arm.data, i, 1.0)
    if rank_one(arm.components, k, arm.data, i, 1.0, solver.v):
        solve(arm.components, k, arm.w0, R, solver)


@no_refcount
def remove(arm: Arm, k: int, R: Array, i: int, label: int, solver: Solver) -> None:
    """Remove reward i, which no longer carries the label, from component k."""
    T, data = arm.components, arm.data
    count_in(T, k, data, i, -1.0)
    y = data[i, data.shape[1] - 1]
    stale = T[MOVES, k] > max(MOVES_KEPT, 8.0 * T[COUNT, k]) or T[SYY, k] < OUTWEIGHED * y * y
    if stale:
        recount(T, k, data, arm.z, arm.size[ROWS], label)
    if stale or rank_one(T, k, data, i, -1.0, solver.v):
        solve(T, k, arm.w0, R, solver)


@inlined
def open_slot(arm: Arm, R: Array, s2: float) -> int:
    """Take the next slot for a new, empty component."""
    k = arm.size[K_USED]
    reset(arm.components, k, arm.w0, R, s2)
    arm.slot[arm.label[k]] = k
    arm.size[K_USED] += 1
    return int(k)


@inlined
def score(arm: Arm, i: int, features: Features, tau: float, room: Room) -> None:
    """Write weight and gap of reward i for every component as if it sat nowhere."""
    T, K, q, e = arm.components, arm.size[K_USED], room.q, room.e
    residuals(T, K, arm.data, i, q, e)
    for k in range(0, K, LANES):
        square, residual = load(q, k), load(e, k)
        s = within(0, K - k, load(T, VAR, k), 1.0) + where_less(0.0, square, square, 0.0)
        store(load(T, COUNT, k) / sqrt(s), room.weight, k)
        away = minus_log_densities(T, k, features, tau, arm.data[i])
        store(0.5 * residual * residual / s + away, room.gap, k)


@inlined
def score_new(room: Room, k: int, s2: float, q: float, half: float, away: float, mass: float) -> None:
    """Write weight and gap of a reward for a new component with that noise variance, in slot k.

    q = x'Rx;  half = (y - x'w0)^2 / 2;  away = minus log p(x);  mass = gamma/2 p(s2) / h(s2).
    """
    room.weight[k] = mass / math.sqrt(s2 + q)
    room.gap[k] = half / (s2 + q) + away


@inlined
def wider(s2: float, half: float, b: float, prior: Hyperprior) -> float:
    """h2(s2) / h1(s2)."""
    t = b + half
    return prior.bulk * math.sqrt(t / s2) * math.exp(prior.noise_shape * math.log(t / b) - half / s2)


@inlined
def suggest_noise(half: float, a: float, b: float, wide: bool, rng: Rng) -> float:
    """A draw from h1, or from h2."""
    if wide:
        return float((b + half) / rng.standard_gamma(a + 0.5))
    return float(b / rng.standard_gamma(a))


@inlined
def score_own(arm: Arm, k: int, i: int, away: float, R: Array, room: Room) -> None:
    """Write weight and gap of reward i for its own component k without it; away = minus log p(x | k)."""
    T, q, e = arm.components, room.q, room.e
    s2 = T[VAR, k]
    t = s2 - q[k]
    if t > CAREFUL * s2:
        room.weight[k] = (T[COUNT, k] - 1.0) * math.sqrt(t) / s2
        room.gap[k] = 0.5 * e[k] * e[k] / t + away
    else:
        s = solve_without(arm, k, i, R, room)
        room.weight[k] = (T[COUNT, k] - 1.0) / math.sqrt(s)
        room.gap[k] = 0.5 * e[k] * e[k] / s + away


@no_refcount
def solve_without(arm: Arm, k: int, i: int, R: Array, room: Room) -> float:
    """The variance of reward i given the others of its component k, whose residual it writes; slow, exact."""
    T = arm.components
    count_in(T, k, arm.data, i, -1.0)
    solve(T, k, arm.w0, R, room.solver)
    residuals(T, k + 1, arm.data, i, room.q, room.e)
    s = T[VAR, k] + max(room.q[k], 0.0)
    count_in(T, k, arm.data, i, 1.0)
    solve(T, k, arm.w0, R, room.solver)
    return float(s)


@inlined
def move(arm: Arm, arms: Arms, i: int, new: bool, room: Room, rng: Rng) -> None:
    """Draw the seat of reward i again, given all others; a new reward has none yet."""
    T, data, features, prior = arm.components, arm.data, arms.features, arms.prior
    gamma, tau, b, R = arms.shared.concentration, arms.shared.location_var, arms.shared.noise_scale, features.part_var
    K = arm.size[K_USED]
    k0 = K if new else arm.slot[arm.z[i]]
    score(arm, i, features, tau, room)
    alone = not new and T[COUNT, k0] == 1.0
    D = R.shape[0]
    far, wide = data[i, D], 0.0
    for j in range(D):
        far -= data[i, j] * arm.w0[j]
        wide += data[i, j] * data[i, j] * R[j]
    half, away = 0.5 * far * far, minus_log_density(T, -1, features, tau, data[i], 0.0)
    a = prior.noise_shape
    first = T[VAR, k0] if alone else suggest_noise(half, a, b, False, rng)
    ratio = wider(first, half, b, prior)
    second = suggest_noise(half, a, b, not alone or rng.random() * (1.0 + ratio) < 1.0, rng)
    mass = gamma * tail(first / b, prior) / (1.0 + ratio)
    other_mass = gamma * tail(second / b, prior) / (1.0 + wider(second, half, b, prior))
    if alone:
        score_new(room, k0, first, wide, half, away, mass)
        score_new(room, K, second, wide, half, away, other_mass)
        k = draw_weighted(room.weight, room.gap, K + 1, rng)
    else:
        if not new:
            score_own(arm, k0, i, minus_log_density(T, k0, features, tau, data[i], 1.0), R, room)
        score_new(room, K, first, wide, half, away, mass)
        score_new(room, K + 1, second, wide, half, away, other_mass)
        k = draw_weighted(room.weight, room.gap, K + 2, rng)
    if k == k0 and not new:
        return
    if alone and k == K:  # the same component with another noise variance
        reset(T, k0, arm.w0, R, second)
        add(arm, k0, R, i, room.solver)
        return
    if k >= K:
        k = open_slot(arm, R, first if k == K else second)
    old = arm.z[i]
    arm.z[i] = arm.label[k]
    add(arm, k, R, i, room.solver)
    if new:
        return
    if alone:
        close_slot(T, arm.label, arm.slot, arm.size, k0)
    else:
        remove(arm, k0, R, i, old, room.solver)


@no_refcount
def make_moves(arm: Arm, arms: Arms, n_moves: int, room: Room, rng: Rng) -> int:
    """Move uniformly drawn rewards; stop when no slot is free and return how many moves are left."""
    for left in range(n_moves, 0, -1):
        if not has_room(arm):
            return left
        i = int(rng.random() * arm.size[ROWS])
        move(arm, arms, i, False, room, rng)
    return 0
