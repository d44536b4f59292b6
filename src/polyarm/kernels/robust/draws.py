"""Posterior draws of the whole distribution of an arm's reward in one context (notation of predict.py).

A draw is a finite mixture: weights ~ Dirichlet(c); x'w_k = m_k + N(0, v_k) + G_k'h with h ~ N(0, I) common to the arm's
components, its lower half common to the arms; noise variances are those of the state; the unseen part is a Dirichlet
process broken into sticks.
"""

import math

from polyarm.kernels._jit import RngHandle, inlined, kernel, rng_from
from polyarm.kernels.mixture.means import add_normal, room_for
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.objectives import UTILITY, Functional, Parts, worth
from polyarm.kernels.robust.common_centre import common_of
from polyarm.kernels.robust.component import VAR
from polyarm.kernels.robust.predict import MAX_STICKS, TAIL, View, draws_in_common, in_common, view_of
from polyarm.kernels.robust.records import Arms, Books, arms_of
from polyarm.types import Array, Rng


@inlined
def along(view: View, k: int, h: Array) -> float:
    """What component k owes to the centre: the product of its column of G with the draws in view.g and, below, h."""
    total = in_common(view.G[:, k], h)
    for i in range(view.x.shape[0]):
        total += view.G[i, k] * view.g[i]
    return total


@kernel
def draw_mixture(arms: Arms, arm: int, view: View, h: Array, parts: Parts, rng: Rng) -> int:
    """Write a draw of the arm's distribution given what the arms have in common; return its number of components."""
    K, shared, prior = arms.sizes[arm, K_USED], arms.shared, arms.prior
    gamma, b, origin = shared.concentration, shared.noise_scale, shared.origin
    total = 0.0
    for k in range(K + 1):
        parts.weight[k] = rng.standard_gamma(view.c[k])
        total += parts.weight[k]
    left = parts.weight[K] / total if total > 0.0 else 1.0
    for i in range(view.x.shape[0]):
        view.g[i] = rng.standard_normal()
    for k in range(K):
        parts.weight[k] = parts.weight[k] / total if total > 0.0 else 0.0
        parts.mean[k] = origin + view.m[k] + math.sqrt(view.v[k]) * rng.standard_normal() + along(view, k, h)
        parts.variance[k] = arms.components[arm, VAR, k]
    centre, n = origin + view.m[K] + along(view, K, h), K
    for stick in range(MAX_STICKS):
        last = left < TAIL or stick == MAX_STICKS - 1
        parts.weight[n] = left if last else left * rng.beta(1.0, gamma)
        parts.mean[n] = centre + math.sqrt(view.v[K]) * rng.standard_normal()
        shape = prior.wild_shape if rng.random() < prior.wild_share else prior.noise_shape
        parts.variance[n] = min(b / max(rng.standard_gamma(shape), 1e-100), 1e200)
        left -= parts.weight[n]
        n += 1
        if last:
            break
    return n


@kernel
def draw_density(books: Books, arm: int, x: Array, grid: Array, out: Array, handle: RngHandle) -> None:
    """Fill out (n_draws, len(grid)) with posterior draws of the density of an arm's reward at the grid's points."""
    rng, arms = rng_from(handle), arms_of(books)
    common = common_of(arms)
    view, parts = view_of(arms, arm, common, x), room_for(arms.sizes[arm, K_USED] + 1 + MAX_STICKS)
    h = draws_in_common(out.shape[0], common, rng)
    for draw in range(out.shape[0]):
        for k in range(draw_mixture(arms, arm, view, h[draw], parts, rng)):
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
    books: Books, x: Array, functional: Functional, values: Array, shares: Array, out: Array, handle: RngHandle
) -> None:
    """Fill out (n_draws, n_arms) with joint posterior draws of what the arms' rewards are worth.

    It takes some single values besides, with shares (n_arms, n_draws, n_values + 1), the last that of all others.
    For a utility, components that nobody has seen are given a typical noise variance: that of a drawn one is beyond all
    bounds now and then, and would decide alone.
    """
    rng, arms = rng_from(handle), arms_of(books)
    common = common_of(arms)
    h = draws_in_common(out.shape[0], common, rng)
    for arm in range(out.shape[1]):
        n_parts = arms.sizes[arm, K_USED] + 1 + MAX_STICKS + values.shape[0]
        view, parts = view_of(arms, arm, common, x), room_for(n_parts)
        for draw in range(out.shape[0]):
            n = draw_mixture(arms, arm, view, h[draw], parts, rng)
            if functional.kind == UTILITY:  # inverse-gamma variances have no exponential moment
                for k in range(arms.sizes[arm, K_USED], n):
                    parts.variance[k] = arms.shared.noise_scale / arms.prior.noise_shape
            out[draw, arm] = worth(parts, with_values(parts, n, values, shares[arm, draw]), functional)
