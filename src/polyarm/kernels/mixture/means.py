"""Posterior draws of an arm's mean reward in one context.

m, q   (K,)  mean x'U and leverage x'Vx of each component in this context
process (4,) a0, b0, concentration c, discount d
A component's mean is x'w = m + sqrt(b/Gamma(a) q) N(0, 1): no d-vector is ever drawn.

PAPER     weights (n_k - d)/(n + c), the rest on one new atom (on each empty component of a finite mixture)
WHOLE     weights Dirichlet(n_1 - d, ..., n_K - d, c + K d), the rest on a whole PY(d, c + K d) drawn by stick-breaking
          (Pitman 1996, corollary 20)
ONE_ATOM  the Dirichlet weights of WHOLE with the one new atom of PAPER: a step between the two
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm.kernels._jit import RngHandle, inlined, kernel, no_refcount, rng_from
from polyarm.kernels.mixture.component import COUNT, DISCOUNT, GAMMA, MEAN, NOISE, NOTHING, SCALE, SHAPE
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.objectives import Functional, Parts, worth
from polyarm.types import Array, IntArray, Rng

TAIL = 1e-3  # stick-breaking stops when less than this mass remains; the remainder is one atom
PAPER, WHOLE, ONE_ATOM = 0, 1, 2  # ways to draw the part of the weights that no component in use has
MAX_STICKS = 1000  # only a discount above about 0.5 with hardly any data gets here


class Located(NamedTuple):
    """Mean m and leverage q in one context of the components in use and, last, of the prior's."""

    m: Array
    q: Array


@no_refcount
def locate(T: Array, n_used: int, x: Array, m: Array, q: Array) -> None:
    """Write x'U and x'Vx of the first n_used components."""
    d = x.shape[0]
    for k in range(n_used):
        mean = 0.0
        square = 0.0
        p = MEAN + d
        for j in range(d):
            mean += x[j] * T[MEAN + j, k]
            f = 0.0
            for i in range(j + 1):
                f += x[i] * T[p, k]
                p += 1
            square += f * f
        m[k] = mean
        q[k] = square


@kernel
def locate_all(T: Array, K: int, prior: Array, x: Array, at: Located) -> None:
    """Write mean and leverage of the components in use and, last, of the prior's."""
    locate(T, K, x, at.m, at.q)
    locate(prior.reshape(-1, 1), 1, x, at.m[K:], at.q[K:])


@inlined
def n_held(T: Array, K: int) -> float:
    """Rewards in the first K components: a whole number unless they fade."""
    n = 0.0
    for k in range(K):
        n += T[COUNT, k]
    return n


@no_refcount
def draw_atom(m: float, q: float, a: float, b: float, rng: Rng) -> float:
    """One draw of x'w."""
    return m + math.sqrt(b / rng.standard_gamma(a) * q) * rng.standard_normal()


@no_refcount
def draw_stick(total: float, j: int, discount: float, rng: Rng) -> float:
    """Share of what remains that the j-th new atom takes, Beta(1 - d, total + j d); all of it if it is the last."""
    rest = total + j * discount
    return rng.beta(1.0 - discount, rest) if rest > NOTHING else 1.0


@no_refcount
def draw_tail(mass: float, total: float, discount: float, m: float, q: float, a0: float, b0: float, rng: Rng) -> float:
    """Mass times the mean of a PY(discount, total) draw around the prior."""
    value = 0.0
    for j in range(1, MAX_STICKS):
        if mass < TAIL:
            break
        part = mass * draw_stick(total, j, discount, rng)
        value += part * draw_atom(m, q, a0, b0, rng)
        mass -= part
    return value + mass * draw_atom(m, q, a0, b0, rng)


@no_refcount
def draw_exact(T: Array, K: int, process: Array, at: Located, whole: bool, rng: Rng) -> float:
    """A draw of the mean functional from its posterior given the seating; one atom for the tail unless it is whole."""
    a0, b0, concentration, discount = process[SHAPE], process[NOISE], process[GAMMA], process[DISCOUNT]
    m, q, m0, q0 = at.m, at.q, at.m[K], at.q[K]
    new = concentration + K * discount
    if K == 0:
        return draw_tail(1.0, new, discount, m0, q0, a0, b0, rng) if whole else draw_atom(m0, q0, a0, b0, rng)
    total = 0.0
    value = 0.0
    for k in range(K):
        g = rng.standard_gamma(T[COUNT, k] - discount)
        total += g
        value += g * draw_atom(m[k], q[k], a0 + 0.5 * T[COUNT, k], T[SCALE, k], rng)
    tail = rng.standard_gamma(new) if new > NOTHING else 0.0
    total += tail
    if tail > 0.0 and not whole:
        return (value + tail * draw_atom(m0, q0, a0, b0, rng)) / total
    if tail > 0.0:
        return value / total + draw_tail(tail / total, new, discount, m0, q0, a0, b0, rng)
    return value / total


@no_refcount
def draw_paper(T: Array, K: int, process: Array, at: Located, rng: Rng) -> float:
    """A draw as in the paper's equation for mu: expected weights, one new atom."""
    a0, b0, concentration, discount = process[SHAPE], process[NOISE], process[GAMMA], process[DISCOUNT]
    value = 0.0
    for k in range(K):
        value += (T[COUNT, k] - discount) * draw_atom(at.m[k], at.q[k], a0 + 0.5 * T[COUNT, k], T[SCALE, k], rng)
    new = concentration + K * discount
    n_atoms = 1 if discount >= 0.0 else round(-new / discount)
    for _ in range(n_atoms):
        value += new / n_atoms * draw_atom(at.m[K], at.q[K], a0, b0, rng)
    return value / (n_held(T, K) + concentration)


@kernel
def draw_means(
    tables: Array, sizes: IntArray, priors: Array, processes: Array, x: Array, tail: int, out: Array, handle: RngHandle
) -> None:
    """Fill out (n_draws, n_arms) with joint draws of every arm's mean; tail says how the unseen part is drawn."""
    rng = rng_from(handle)
    at = Located(np.empty(tables.shape[2] + 1), np.empty(tables.shape[2] + 1))
    for arm in range(tables.shape[0]):
        T, K, process = tables[arm], sizes[arm, K_USED], processes[arm]
        locate_all(T, K, priors[arm], x, at)
        for draw in range(out.shape[0]):
            if tail == PAPER:
                out[draw, arm] = draw_paper(T, K, process, at, rng)
            else:
                out[draw, arm] = draw_exact(T, K, process, at, tail == WHOLE, rng)


@kernel
def expected_means(tables: Array, sizes: IntArray, priors: Array, processes: Array, x: Array, out: Array) -> None:
    """Fill out (n_arms,) with the posterior expectation of every arm's mean reward given the seating."""
    m, q = np.empty(max(1, tables.shape[2])), np.empty(max(1, tables.shape[2]))
    for arm in range(tables.shape[0]):
        K = sizes[arm, K_USED]
        n = n_held(tables[arm], K)
        concentration, discount = processes[arm, GAMMA], processes[arm, DISCOUNT]
        locate(priors[arm].reshape(-1, 1), 1, x, m, q)
        total = (concentration + K * discount) * m[0]
        locate(tables[arm], K, x, m, q)
        for k in range(K):
            total += (tables[arm, COUNT, k] - discount) * m[k]
        out[arm] = total / (n + concentration)


@kernel
def draw_mixture(T: Array, K: int, process: Array, at: Located, parts: Parts, rng: Rng) -> int:
    """Write a posterior draw of the reward's distribution given the seating, and return its number of components."""
    a0, b0, concentration, discount = process[SHAPE], process[NOISE], process[GAMMA], process[DISCOUNT]
    new = concentration + K * discount
    total = 0.0
    for k in range(K):
        parts.weight[k] = rng.standard_gamma(T[COUNT, k] - discount)
        total += parts.weight[k]
    tail = rng.standard_gamma(new) if new > NOTHING else 0.0
    if K == 0:
        tail = 1.0
    total += tail
    for k in range(K):
        parts.weight[k] /= total
        parts.variance[k] = T[SCALE, k] / rng.standard_gamma(a0 + 0.5 * T[COUNT, k])
        parts.mean[k] = at.m[k] + math.sqrt(parts.variance[k] * at.q[k]) * rng.standard_normal()
    left, n = tail / total, K
    for j in range(1, MAX_STICKS + 1):
        last = left < TAIL or j == MAX_STICKS
        parts.weight[n] = left if last else left * draw_stick(new, j, discount, rng)
        parts.variance[n] = b0 / rng.standard_gamma(a0)
        parts.mean[n] = at.m[K] + math.sqrt(parts.variance[n] * at.q[K]) * rng.standard_normal()
        left -= parts.weight[n]
        n += 1
        if last:
            break
    return n


@kernel
def located(T: Array, K: int, prior: Array, x: Array) -> Located:
    """Mean and leverage of the components in use and, last, of the prior's."""
    at = Located(np.empty(K + 1), np.empty(K + 1))
    locate_all(T, K, prior, x, at)
    return at


@kernel
def room_for(n: int) -> Parts:
    """Parts with room for n components."""
    return Parts(np.empty(n), np.empty(n), np.empty(n))


@kernel
def draw_density(
    T: Array, K: int, process: Array, prior: Array, x: Array, grid: Array, out: Array, handle: RngHandle
) -> None:
    """Fill out (n_draws, len(grid)) with posterior draws of the reward's density at the grid's points."""
    rng = rng_from(handle)
    at, parts = located(T, K, prior, x), room_for(K + MAX_STICKS)
    for draw in range(out.shape[0]):
        for k in range(draw_mixture(T, K, process, at, parts, rng)):
            add_normal(out[draw], grid, parts.weight[k], parts.mean[k], parts.variance[k])


@kernel
def draw_worths(
    T: Array, K: int, process: Array, prior: Array, x: Array, functional: Functional, out: Array, handle: RngHandle
) -> None:
    """Fill out (n_draws,) with posterior draws of what the reward is worth."""
    rng = rng_from(handle)
    at, parts = located(T, K, prior, x), room_for(K + MAX_STICKS)
    for draw in range(out.shape[0]):
        out[draw] = worth(parts, draw_mixture(T, K, process, at, parts, rng), functional)


@kernel
def add_normal(density: Array, grid: Array, weight: float, mean: float, variance: float) -> None:
    """Add weight times a normal density."""
    if weight <= 0.0:
        return
    scale = weight / math.sqrt(2.0 * math.pi * variance)
    for i in range(grid.shape[0]):
        gap = grid[i] - mean
        density[i] += scale * math.exp(-0.5 * gap * gap / variance)
