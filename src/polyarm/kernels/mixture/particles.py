"""Weighted seatings of one arm's rewards, extended reward by reward (Fearnhead 2004).

A component stands once in a pool, however many particles hold it: it is scored and updated once.

P components of the pool are in use; every particle has room for L of them.

A child of a particle seats the new reward in one of its components, or in a new one; its weight is the parent's
times (n_k - d) or (c + K d), over n + c, times the predictive density.  The keys depend on what was observed, not
on when, so seatings that differ only by swapping equal rewards are one particle.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from polyarm.kernels._jit import RngHandle, kernel, rng_from
from polyarm.kernels.copying import copy_row, copy_rows
from polyarm.kernels.linalg.sqrt_information import rotate_in
from polyarm.kernels.mixture.component import (
    COEF,
    COUNT,
    DISCOUNT,
    GAMMA,
    SCALE,
    SHAPE,
    cache_constants,
    copy,
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
from polyarm.types import Array, Codes, IntArray, Rng

PARTICLES, POOL, REWARDS = 0, 1, 2
A30, A27, A31 = np.uint64(30), np.uint64(27), np.uint64(31)
ODD = np.uint64(0x9E3779B97F4A7C15)
M1, M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Cloud(NamedTuple):
    """The particles of one arm; the arrays are those of inference.particles.Cloud."""

    components: Array  # (rows, C): the pool's components, side by side (component.py)
    R: Array  # (C, d+1, d+1): their square-root information, for when a column has lost digits
    mark: Codes  # (C,): sum of the keys of a component's rewards: equal contents, equal mark
    member: IntArray  # (N, L): slots in the pool of each particle's components
    length: IntArray  # (N,): components of each particle
    weight: Array  # (N,): weights of the particles; they sum to one
    code: Codes  # (N,): sum of the mixed marks of a particle's components: equal seatings, equal code
    size: IntArray  # (3,): particles in use, components P in the pool, rewards n
    evidence: Array  # (1,): log marginal density of the rewards


class Children(NamedTuple):
    """Seatings that a reward leads to: the particle each comes from, the component of it that takes the reward."""

    parent: IntArray
    slot: IntArray
    weight: Array
    code: Codes


@kernel
def mixed(word: Any) -> Any:
    """A 64-bit word scattered over all words (splitmix64; Steele, Lea & Flood 2014)."""
    word = (word ^ (word >> A30)) * M1
    word = (word ^ (word >> A27)) * M2
    return word ^ (word >> A31)


@kernel
def key_of(words: Codes) -> Any:
    """Key of a reward from the bits of its context and value."""
    key = ODD
    for i in range(words.shape[0]):
        key = mixed(key ^ words[i]) + ODD
    return key


@kernel
def score_pool(T: Array, P: int, process: Array, data: Array, gain: Array) -> None:
    """Write the log of mass times predictive density of the reward for every component of the pool."""
    s, e = np.empty(T.shape[1]), np.empty(T.shape[1])
    residuals(T, P, data, 0, s, e)
    for p in range(P):
        gain[p] = log_predictive(T[COEF, p], process[SHAPE] + 0.5 * T[COUNT, p], T[SCALE, p], s[p], e[p])


@kernel
def bear_children(cloud: Cloud, process: Array, key: Any, gain: Array, new: float, children: Children) -> int:
    """Write parent, slot, log weight and code of every child with a positive weight; return how many."""
    M = 0
    fresh = mixed(key)
    for i in range(cloud.size[PARTICLES]):
        K = cloud.length[i]
        base = math.log(cloud.weight[i])
        for j in range(K + 1):
            if j < K:
                p = cloud.member[i, j]
                value = base + gain[p]
                children.code[M] = cloud.code[i] - mixed(cloud.mark[p]) + mixed(cloud.mark[p] + key)
            else:  # the first reward opens a component whatever the concentration
                value = (
                    base + new + (log_mass(process[GAMMA] + K * process[DISCOUNT]) if cloud.size[REWARDS] > 0 else 0.0)
                )
                children.code[M] = cloud.code[i] + fresh
            if value > -math.inf:
                children.parent[M] = i
                children.slot[M] = j
                children.weight[M] = value
                M += 1
    return M


@kernel
def put(children: Children, at: int, m: int, weight: float) -> None:
    """Write child m to another row, with this weight."""
    children.parent[at], children.slot[at] = children.parent[m], children.slot[m]
    children.weight[at], children.code[at] = weight, children.code[m]


@kernel
def merge_equal(children: Children, M: int) -> int:
    """Add the weights of children with the same seating; return how many are left."""
    w, born = children.weight, children.code
    room = 2
    while room < 2 * M:
        room *= 2
    bucket = np.full(room, -1)
    kept = 0
    for m in range(M):
        at = np.int64(born[m] & np.uint64(room - 1))
        while bucket[at] >= 0 and born[bucket[at]] != born[m]:
            at = (at + 1) % room
        if bucket[at] >= 0:
            w[bucket[at]] += w[m]
        elif w[m] > 0.0:
            put(children, kept, m, w[m])
            bucket[at] = kept
            kept += 1
    return kept


@kernel
def threshold(w: Array, M: int, N: int) -> float:
    """The c for which sum min(w/c, 1) = N (Fearnhead & Clifford 2003): kept weights only join, so it is soon found."""
    kept = -1
    c = math.inf
    while True:
        n_above = 0
        below = 0.0
        for m in range(M):
            if w[m] >= c:
                n_above += 1
            else:
                below += w[m]
        if n_above == kept or n_above >= N:
            return c
        kept = n_above
        c = below / (N - n_above)


@kernel
def resample(children: Children, M: int, N: int, rng: Rng) -> int:
    """Keep N of M children: those of weight c or more as they are, the others by strata, with weight c."""
    if M <= N:
        return M
    c = threshold(children.weight, M, N)
    u = rng.random() * c
    kept = 0
    for m in range(M):
        value = children.weight[m]
        if value < c:
            u -= value
            if u >= 0.0 or kept == N:
                continue
            u += c
            value = c
        put(children, kept, m, value)
        kept += 1
    return kept


@kernel
def extend_component(cloud: Cloud, p: int, q: int, prior: Prior, data: Array, key: Any) -> None:
    """Write in slot q of the pool the component in slot p, or an empty one if p is negative, with the reward added."""
    T, R, mark, d = cloud.components, cloud.R, cloud.mark, prior.R0.shape[0] - 1
    if p >= 0:
        copy(T, p, q)
        R[q] = R[p]
        mark[q] = mark[p] + key
    else:
        reset(T, q, prior.column)
        R[q] = prior.R0
        mark[q] = key
    n = T[COUNT, q] + 1.0
    rotate_in(R[q], data[0, : d + 1].copy())
    if rank_one(T, q, data, 0, 1.0, np.empty(d)):
        settle(T, q, prior.column, R[q], n)
    cache_constants(T, q, prior.process[SHAPE], prior.process[DISCOUNT])


@kernel
def tidy(cloud: Cloud, H: int, P: int) -> int:
    """Free the components of the pool that no particle holds; return how many are left."""
    member, length = cloud.member, cloud.length
    home = np.full(P, -1)
    for i in range(H):
        for j in range(length[i]):
            home[member[i, j]] = member[i, j]
    p = 0
    while p < P:
        if home[p] < 0:
            P -= 1
            if p < P and home[P] >= 0:
                copy(cloud.components, P, p)
                copy_rows(cloud.R[P], cloud.R[p])
                cloud.mark[p] = cloud.mark[P]
                home[P] = p
                p += 1
        else:
            p += 1
    for i in range(H):
        for j in range(length[i]):
            member[i, j] = home[member[i, j]]
    return P


@kernel
def settle_children(cloud: Cloud, children: Children, H: int, prior: Prior, data: Array, key: Any) -> None:
    """Make the kept children the particles."""
    before, K = cloud.member.copy(), cloud.length.copy()
    P = cloud.size[POOL]
    grown = np.full(P + 1, -1)  # slot of each component with the reward added; last, of a new one
    n_used = P
    for m in range(H):
        i, j = children.parent[m], children.slot[m]
        p = before[i, j] if j < K[i] else -1
        at = p if p >= 0 else P
        if grown[at] < 0:
            extend_component(cloud, p, n_used, prior, data, key)
            grown[at] = n_used
            n_used += 1
        for slot in range(K[i]):
            cloud.member[m, slot] = before[i, slot]
        cloud.member[m, j] = grown[at]
        cloud.length[m] = max(K[i], j + 1)
    cloud.size[POOL] = tidy(cloud, H, n_used)


@kernel
def learn(cloud: Cloud, prior: Prior, data: Array, words: Codes, handle: RngHandle) -> None:
    """Extend every particle by the reward in data (1, d + 2), whose bits are `words`; the arrays must have room."""
    size, process, N = cloud.size, prior.process, cloud.weight.shape[0]
    n, P = size[REWARDS], size[POOL]
    key = key_of(words)
    new = prior_log_predictive(prior.column, process[SHAPE], data, 0)
    gain = np.empty(P)
    score_pool(cloud.components, P, process, data, gain)
    room = size[PARTICLES] + cloud.length[: size[PARTICLES]].sum()
    parent, slot = np.empty(room, np.int64), np.empty(room, np.int64)
    children = Children(parent, slot, np.empty(room), np.empty(room, np.uint64))
    M = bear_children(cloud, process, key, gain, new, children)
    w = children.weight
    top = w[:M].max()
    for m in range(M):
        w[m] = math.exp(w[m] - top)
    total = w[:M].sum()
    cloud.evidence[0] += top + math.log(total) - (math.log(n + process[GAMMA]) if n > 0 else 0.0)
    M = merge_equal(children, M)
    H = resample(children, M, N, rng_from(handle))
    settle_children(cloud, children, H, prior, data, key)
    total = w[:H].sum()
    for m in range(H):
        cloud.weight[m] = w[m] / total
        cloud.code[m] = children.code[m]
    size[PARTICLES] = H
    size[REWARDS] = n + 1


@kernel
def draw_particle(weight: Array, H: int, rng: Rng) -> int:
    """A particle drawn by weight."""
    u = rng.random()
    i = 0
    while i < H - 1 and u >= weight[i]:
        u -= weight[i]
        i += 1
    return i


@kernel
def draw_means(cloud: Cloud, prior: Prior, x: Array, out: Array, handle: RngHandle) -> None:
    """Fill out (n_draws,) with draws of the mean reward: a particle by weight, then the mean given its seating."""
    rng, T = rng_from(handle), cloud.components
    held = np.empty((T.shape[0], cloud.member.shape[1]))
    for draw in range(out.shape[0]):
        i = draw_particle(cloud.weight, cloud.size[PARTICLES], rng)
        K = cloud.length[i]
        for k in range(K):
            copy_row(T[:, cloud.member[i, k]], held[:, k])
        out[draw] = draw_exact(held, K, prior.process, located(held, K, prior.column, x), True, rng)


@kernel
def expected_mean(cloud: Cloud, prior: Prior, x: Array) -> float:
    """Posterior expectation of the mean reward."""
    process, P = prior.process, cloud.size[POOL]
    m = located(cloud.components, P, prior.column, x).m
    value = 0.0
    for i in range(cloud.size[PARTICLES]):
        total = (process[GAMMA] + cloud.length[i] * process[DISCOUNT]) * m[P]
        for k in range(cloud.length[i]):
            p = cloud.member[i, k]
            total += (cloud.components[COUNT, p] - process[DISCOUNT]) * m[p]
        value += cloud.weight[i] * total / (cloud.size[REWARDS] + process[GAMMA])
    return value
