"""Weighted seatings of one arm's rewards, extended reward by reward (Fearnhead 2004).

A component stands once in a pool, however many particles hold it: it is scored and updated once.

T        (rows, C)          the pool's components, side by side (component.py); the first P are in use
R        (C, d+1, d+1)      their square-root information (root.py), for when a column has lost digits
mark     (C,)               sum of the keys of a component's rewards: equal contents, equal mark
member   (N, L)             places in the pool of each particle's components
length   (N,)               components of each particle
weight   (N,)               weights of the particles; they sum to one
code     (N,)               sum of the mixed marks of a particle's components: equal seatings, equal code
size     (3,)               particles in use, components P in the pool, rewards n
evidence (1,)               log marginal density of the rewards
prior    (rows,)            column of an empty component        root  (d+1, d+1)  its square-root information
law      (4,)               a0, b0, concentration c, discount d

A child of a particle seats the new reward in one of its components, or in a new one; its weight is the parent's
times (n_k - d) or (c + K d), over n + c, times the predictive density.  The keys depend on what was observed, not
on when, so seatings that differ only by swapping equal rewards are one particle.
"""

import math
from typing import Any

import numpy as np

from polyarm.kernels._jit import Stream, generator, kernel
from polyarm.kernels.component import (
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
from polyarm.kernels.means import draw_exact, locate
from polyarm.kernels.root import rotate_in
from polyarm.types import Array, Codes, IntArray, Rng

PARTICLES, POOL, REWARDS = 0, 1, 2
A30, A27, A31 = np.uint64(30), np.uint64(27), np.uint64(31)
ODD = np.uint64(0x9E3779B97F4A7C15)
M1, M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


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
def score_pool(T: Array, P: int, law: Array, data: Array, gain: Array) -> None:
    """Write the log of mass times predictive density of the reward for every component of the pool."""
    s, e = np.empty(T.shape[1]), np.empty(T.shape[1])
    residuals(T, P, data, 0, s, e)
    for p in range(P):
        gain[p] = log_predictive(T[COEF, p], law[SHAPE] + 0.5 * T[COUNT, p], T[SCALE, p], s[p], e[p])


@kernel
def bear_children(
    mark: Codes,
    member: IntArray,
    length: IntArray,
    weight: Array,
    code: Codes,
    size: IntArray,
    law: Array,
    key: Any,
    gain: Array,
    new: float,
    parent: IntArray,
    slot: IntArray,
    w: Array,
    born: Codes,
) -> int:
    """Write parent, slot, log weight and code of every child with a positive weight; return how many."""
    M = 0
    fresh = mixed(key)
    for i in range(size[PARTICLES]):
        K = length[i]
        base = math.log(weight[i])
        for j in range(K + 1):
            if j < K:
                p = member[i, j]
                value = base + gain[p]
                born[M] = code[i] - mixed(mark[p]) + mixed(mark[p] + key)
            else:  # the first reward opens a component whatever the concentration
                value = base + new + (log_mass(law[GAMMA] + K * law[DISCOUNT]) if size[REWARDS] > 0 else 0.0)
                born[M] = code[i] + fresh
            if value > -math.inf:
                parent[M] = i
                slot[M] = j
                w[M] = value
                M += 1
    return M


@kernel
def merge_equal(parent: IntArray, slot: IntArray, w: Array, born: Codes, M: int) -> int:
    """Add the weights of children with the same seating; return how many are left."""
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
            parent[kept], slot[kept], w[kept], born[kept] = parent[m], slot[m], w[m], born[m]
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
def resample(parent: IntArray, slot: IntArray, w: Array, born: Codes, M: int, N: int, rng: Rng) -> int:
    """Keep N of M children: those of weight c or more as they are, the others by strata, with weight c."""
    if M <= N:
        return M
    c = threshold(w, M, N)
    u = rng.random() * c
    kept = 0
    for m in range(M):
        value = w[m]
        if value < c:
            u -= value
            if u >= 0.0 or kept == N:
                continue
            u += c
            value = c
        parent[kept], slot[kept], w[kept], born[kept] = parent[m], slot[m], value, born[m]
        kept += 1
    return kept


@kernel
def extend_component(
    T: Array, R: Array, mark: Codes, p: int, q: int, prior: Array, root: Array, law: Array, data: Array, key: Any
) -> None:
    """Write at place q the component at p, or an empty one if p is negative, with the reward added."""
    d = root.shape[0] - 1
    if p >= 0:
        copy(T, p, q)
        R[q] = R[p]
        mark[q] = mark[p] + key
    else:
        reset(T, q, prior)
        R[q] = root
        mark[q] = key
    n = T[COUNT, q] + 1.0
    rotate_in(R[q], data[0, : d + 1].copy())
    if rank_one(T, q, data, 0, 1.0, np.empty(d)):
        settle(T, q, prior, R[q], n)
    cache_constants(T, q, law[SHAPE], law[DISCOUNT])


@kernel
def tidy(T: Array, R: Array, mark: Codes, member: IntArray, length: IntArray, H: int, P: int) -> int:
    """Free the components of the pool that no particle holds; return how many are left."""
    home = np.full(P, -1)
    for i in range(H):
        for j in range(length[i]):
            home[member[i, j]] = member[i, j]
    p = 0
    while p < P:
        if home[p] < 0:
            P -= 1
            if p < P and home[P] >= 0:
                copy(T, P, p)
                R[p] = R[P]
                mark[p] = mark[P]
                home[P] = p
                p += 1
        else:
            p += 1
    for i in range(H):
        for j in range(length[i]):
            member[i, j] = home[member[i, j]]
    return P


@kernel
def settle_children(
    T: Array,
    R: Array,
    mark: Codes,
    member: IntArray,
    length: IntArray,
    size: IntArray,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    key: Any,
    parent: IntArray,
    slot: IntArray,
    H: int,
) -> None:
    """Make the kept children the particles."""
    before, K = member.copy(), length.copy()
    P = size[POOL]
    grown = np.full(P + 1, -1)  # place of each component with the reward added; last, of a new one
    n_places = P
    for m in range(H):
        i, j = parent[m], slot[m]
        p = before[i, j] if j < K[i] else -1
        if grown[p] < 0:
            extend_component(T, R, mark, p, n_places, prior, root, law, data, key)
            grown[p] = n_places
            n_places += 1
        member[m, : K[i]] = before[i, : K[i]]
        member[m, j] = grown[p]
        length[m] = max(K[i], j + 1)
    size[POOL] = tidy(T, R, mark, member, length, H, n_places)


@kernel
def learn(
    T: Array,
    R: Array,
    mark: Codes,
    member: IntArray,
    length: IntArray,
    weight: Array,
    code: Codes,
    size: IntArray,
    evidence: Array,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    words: Codes,
    source: Stream,
) -> None:
    """Extend every particle by the reward in data (1, d + 2), whose bits are `words`; the arrays must have room."""
    N = weight.shape[0]
    n, P = size[REWARDS], size[POOL]
    key = key_of(words)
    new = prior_log_predictive(prior, law[SHAPE], data, 0)
    gain = np.empty(P)
    score_pool(T, P, law, data, gain)
    room = size[PARTICLES] + length[: size[PARTICLES]].sum()
    parent, slot, w, born = (
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room),
        np.empty(room, np.uint64),
    )
    M = bear_children(mark, member, length, weight, code, size, law, key, gain, new, parent, slot, w, born)
    top = w[:M].max()
    for m in range(M):
        w[m] = math.exp(w[m] - top)
    total = w[:M].sum()
    evidence[0] += top + math.log(total) - (math.log(n + law[GAMMA]) if n > 0 else 0.0)
    M = merge_equal(parent, slot, w, born, M)
    H = resample(parent, slot, w, born, M, N, generator(source))
    settle_children(T, R, mark, member, length, size, prior, root, law, data, key, parent, slot, H)
    total = w[:H].sum()
    for m in range(H):
        weight[m] = w[m] / total
        code[m] = born[m]
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
def draw_means(
    T: Array,
    member: IntArray,
    length: IntArray,
    weight: Array,
    size: IntArray,
    prior: Array,
    law: Array,
    x: Array,
    out: Array,
    source: Stream,
) -> None:
    """Fill out (n_draws,) with draws of the mean reward: a particle by weight, then the mean given its seating."""
    rng = generator(source)
    held = np.empty((T.shape[0], member.shape[1]))
    m, q, m0, q0 = np.empty(member.shape[1]), np.empty(member.shape[1]), np.empty(1), np.empty(1)
    locate(prior.reshape(-1, 1), 1, x, m0, q0)
    for draw in range(out.shape[0]):
        i = draw_particle(weight, size[PARTICLES], rng)
        K = length[i]
        for k in range(K):
            held[:, k] = T[:, member[i, k]]
        locate(held, K, x, m, q)
        out[draw] = draw_exact(held, K, size[REWARDS], law, m, q, m0[0], q0[0], True, rng)


@kernel
def expected_mean(
    T: Array,
    member: IntArray,
    length: IntArray,
    weight: Array,
    size: IntArray,
    prior: Array,
    law: Array,
    x: Array,
) -> float:
    """Posterior expectation of the mean reward."""
    P = size[POOL]
    m, q, m0, q0 = np.empty(P), np.empty(P), np.empty(1), np.empty(1)
    locate(prior.reshape(-1, 1), 1, x, m0, q0)
    locate(T, P, x, m, q)
    value = 0.0
    for i in range(size[PARTICLES]):
        total = (law[GAMMA] + length[i] * law[DISCOUNT]) * m0[0]
        for k in range(length[i]):
            p = member[i, k]
            total += (T[COUNT, p] - law[DISCOUNT]) * m[p]
        value += weight[i] * total / (size[REWARDS] + law[GAMMA])
    return value
