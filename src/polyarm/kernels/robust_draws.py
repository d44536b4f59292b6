"""Posterior draws of the whole distribution of an arm's reward in one context (notation of robust_means.py).

A draw is a finite mixture: weights ~ Dirichlet(c); x'w_k = m_k + N(0, v_k) + G_k'h with h ~ N(0, I) common to the arm's
components; their noise variances are those of the state; the unseen part is a Dirichlet process broken into sticks.
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm.kernels._jit import Stream, generator, kernel
from polyarm.kernels.means import add_normal, room_for
from polyarm.kernels.objectives import UTILITY, Functional, Parts, worth
from polyarm.kernels.robust_component import VAR
from polyarm.kernels.robust_means import MAX_STICKS, TAIL, features, locate
from polyarm.kernels.robust_places import local_counts
from polyarm.kernels.robust_scales import GAMMA, NOISE, NOISE_SHAPE, ORIGIN, TAU, WILD_SHAPE, WILD_SHARE
from polyarm.types import Array, IntArray, Rng


class Arms(NamedTuple):
    """What a state knows of the arms: components, sizes, centres, and what they share; and the settings."""

    tables: Array
    sizes: IntArray
    centres: Array
    hyper: Array
    columns: Array
    law: Array


class View(NamedTuple):
    """One arm in one context: m, v, c, G of its components in use and of the unseen, and room for h."""

    m: Array
    v: Array
    c: Array
    G: Array
    h: Array


@kernel
def view_of(arms: Arms, arm: int, x: Array) -> View:
    """The arm in this context."""
    D, K = arms.columns.shape[1], arms.sizes[arm, 0]
    view = View(np.empty(K + 1), np.empty(K + 1), np.empty(K + 1), np.empty((K + 1, D)), np.empty(D))
    f = features(x, arms.columns)
    locate(arms.tables[arm], K, arms.centres[arm], arms.columns, f, view.m, view.v, view.G)
    local_counts(arms.tables[arm], K, arms.columns, arms.hyper[GAMMA], arms.hyper[TAU], f, view.c)
    return view


@kernel
def draw_mixture(arms: Arms, arm: int, view: View, parts: Parts, rng: Rng) -> int:
    """Write a draw of the arm's distribution, and return its number of components."""
    K, D = arms.sizes[arm, 0], view.h.shape[0]
    gamma, b, origin = arms.hyper[GAMMA], arms.hyper[NOISE], arms.hyper[ORIGIN]
    total = 0.0
    for k in range(K + 1):
        parts.weight[k] = rng.standard_gamma(view.c[k])
        total += parts.weight[k]
    left = parts.weight[K] / total if total > 0.0 else 1.0
    for i in range(D):
        view.h[i] = rng.standard_normal()
    for k in range(K):
        parts.weight[k] = parts.weight[k] / total if total > 0.0 else 0.0
        parts.mean[k] = origin + view.m[k] + math.sqrt(view.v[k]) * rng.standard_normal() + np.dot(view.G[k], view.h)
        parts.variance[k] = arms.tables[arm, VAR, k]
    centre, n = origin + view.m[K] + np.dot(view.G[K], view.h), K
    for stick in range(MAX_STICKS):
        last = left < TAIL or stick == MAX_STICKS - 1
        parts.weight[n] = left if last else left * rng.beta(1.0, gamma)
        parts.mean[n] = centre + math.sqrt(view.v[K]) * rng.standard_normal()
        shape = arms.law[WILD_SHAPE] if rng.random() < arms.law[WILD_SHARE] else arms.law[NOISE_SHAPE]
        parts.variance[n] = min(b / max(rng.standard_gamma(shape), 1e-100), 1e200)
        left -= parts.weight[n]
        n += 1
        if last:
            break
    return n


@kernel
def draw_density(arms: Arms, arm: int, x: Array, grid: Array, out: Array, source: Stream) -> None:
    """Fill out (n_draws, len(grid)) with posterior draws of the density of an arm's reward at the grid's points."""
    rng = generator(source)
    view, parts = view_of(arms, arm, x), room_for(arms.sizes[arm, 0] + 1 + MAX_STICKS)
    for draw in range(out.shape[0]):
        for k in range(draw_mixture(arms, arm, view, parts, rng)):
            add_normal(out[draw], grid, parts.weight[k], parts.mean[k], parts.variance[k])


@kernel
def with_values(parts: Parts, n: int, values: Array, shares: Array) -> int:
    """Put single values with their shares beside the n parts, which share what is left; return the number of all."""
    for k in range(n):
        parts.weight[k] *= shares[-1]
    for j in range(values.shape[0]):
        parts.weight[n + j], parts.mean[n + j], parts.variance[n + j] = shares[j], values[j], 0.0
    return n + values.shape[0]


@kernel
def draw_worths(
    arms: Arms, x: Array, functional: Functional, values: Array, shares: Array, out: Array, source: Stream
) -> None:
    """Fill out (n_draws, n_arms) with posterior draws of what every arm's reward is worth.

    It takes some single values besides, with shares (n_arms, n_draws, n_values + 1), the last that of all others.
    For a utility, components that nobody has seen are given a typical noise variance: that of a drawn one is beyond all
    bounds now and then, and would decide alone.
    """
    rng = generator(source)
    for arm in range(out.shape[1]):
        view, parts = view_of(arms, arm, x), room_for(arms.sizes[arm, 0] + 1 + MAX_STICKS + values.shape[0])
        for draw in range(out.shape[0]):
            n = draw_mixture(arms, arm, view, parts, rng)
            if functional.kind == UTILITY:  # inverse-gamma variances have no exponential moment
                for k in range(arms.sizes[arm, 0], n):
                    parts.variance[k] = arms.hyper[NOISE] / arms.law[NOISE_SHAPE]
            out[draw, arm] = worth(parts, with_values(parts, n, values, shares[arm, draw]), functional)
