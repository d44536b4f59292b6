"""Geweke's joint-distribution test of the sticks: three arms, two columns, two sticks; planted bugs are found."""

import functools

import numpy as np
import pytest

from polyarm.inference import KindsEngine, RobustEngine
from polyarm.kernels import sticks as kernels
from polyarm.kernels._jit import rng_handle
from polyarm.kernels.sticks import Sticks
from polyarm.models import LogisticSticks, RobustMixture
from polyarm.models.sticks import StickParams
from polyarm.types import Array, IntArray, Rng

A, D, M, N = 3, 3, 2, 14
PRIOR = LogisticSticks(A, D - 1, arm_shape=(3.0, 3.0), arm_scale=(2.0, 2.0), wide=(1.0, 2.0), most=(8.0, 8.0))
ENGINE = KindsEngine(RobustEngine(RobustMixture(A, D - 1), fixed_units=True), PRIOR)
CONTEXTS, ARMS = np.random.default_rng(8).standard_normal((N, D - 1)), np.arange(N) % A
FEATURES = np.column_stack([CONTEXTS, np.ones(N)])
OMEGAS = slice(1 + 2 * D, 1 + 2 * D + D * (D + 1) // 2)  # of the sums


def probabilities(params: StickParams) -> Array:
    """Probabilities of the kinds of all rewards at once, (N, M + 1)."""
    share = 1.0 / (1.0 + np.exp(-np.einsum("imk,ik->im", params.slopes[ARMS], FEATURES)))
    left = np.cumprod(np.column_stack([np.ones(N), 1.0 - share]), axis=1)
    return np.column_stack([left[:, :-1] * share, left[:, -1]])


def sample_kinds(params: StickParams, rng: Rng) -> IntArray:
    return np.asarray((rng.random((N, 1)) > np.cumsum(probabilities(params)[:, :-1], axis=1)).sum(axis=1))


def features(params: StickParams, kinds: IntArray) -> Array:
    """Parameters, shares of the kinds, and products that tell whether they belong together."""
    own, centre = params.slopes[..., [0, -1]], params.centre[:, [0, -1]]
    spread, shares = np.log(params.spread).ravel(), [(kinds == j).mean() for j in range(M)]
    products = [*(own * centre).ravel(), *(own[0] * own[1]).ravel(), *(params.slopes[0, :, 0] * params.slopes[0, :, 1])]
    late = params.slopes[ARMS[-1], :, -1] * ((kinds[-1] == 0) - 0.5)
    return np.array([*own.ravel(), *centre.ravel(), *spread, *shares, *products, *late])


@functools.cache
def told(n: int) -> Array:
    """Features of independent draws from the model; sampler and planted bugs share them."""
    rng = np.random.default_rng(4)
    draws = (PRIOR.sample_params(M, rng) for _ in range(n))
    return np.array([features(params, sample_kinds(params, rng)) for params in draws])


def params_of(sticks: Sticks, rng: Rng) -> StickParams:
    """Parameters as last drawn; an arm that no reward of a stick has met has its prior there."""
    centre, lam = sticks.shared[:, 0], sticks.shared[:, 1]
    slopes = sticks.fits[..., D + 1].copy()
    unmet = sticks.sums[..., 0] == 0
    slopes[unmet] = (centre + np.sqrt(lam) * rng.standard_normal(slopes.shape))[unmet]
    sticks.fits[..., D + 1] = slopes
    return StickParams(lam[:, [0, -1]].copy(), centre.copy(), slopes)


def chained(n: int, hyperprior: Array, omega_factor: float, rng: Rng) -> Array:
    """Features along a chain that draws rewards given the parameters and lets the sampler move these in turn."""
    sticks = ENGINE._sticks(M, np.zeros((6, D)))
    sticks.columns[kernels.UNIT] = 1.0
    data = [np.zeros((N, D + 2 + 2 * M)) for _ in range(A)]
    first = PRIOR.sample_params(M, rng)
    sticks.shared[:, 0], sticks.shared[:, 1] = first.centre, PRIOR.by_feature(first.spread)
    out = []
    for t in range(n):
        params = params_of(sticks, rng)
        kinds = sample_kinds(params, rng)
        out.append(features(params, kinds))
        sticks.sums[:], sticks.sizes[:] = 0.0, 0
        for x, a, kind in zip(CONTEXTS, ARMS, kinds, strict=True):
            kernels.add_reward(sticks, data[a], int(a), x, 0.0, int(kind), rng_handle(rng))
        for arm in range(A):
            kernels.visits(sticks, data[arm], arm, 2, 1, rng_handle(rng))
        sticks.sums[..., OMEGAS] *= omega_factor
        for arm in range(A):
            kernels.redraw_shared(sticks, arm, (arm + 1 + t % 2) % A, hyperprior, rng_handle(rng))
    return np.array(out[n // 20 :])


def largest_z(hyperprior: Array, omega_factor: float, seed: int, n: int = 12_000, n_batches: int = 40) -> float:
    """The largest difference between the two, in standard errors."""
    one, chain = told(6000), chained(n, hyperprior, omega_factor, np.random.default_rng(seed))
    batches = chain[: len(chain) // n_batches * n_batches].reshape(n_batches, -1, chain.shape[1]).mean(axis=1)
    error = np.hypot(batches.std(axis=0, ddof=1) / n_batches**0.5, one.std(axis=0, ddof=1) / len(one) ** 0.5)
    return float(np.abs((batches.mean(axis=0) - one.mean(axis=0)) / error).max())


def test_all_at_once_is_the_model() -> None:
    params = PRIOR.sample_params(M, np.random.default_rng(3))
    one_by_one = [PRIOR.probabilities(params, int(a), x) for a, x in zip(ARMS, CONTEXTS, strict=True)]
    np.testing.assert_allclose(probabilities(params), one_by_one, rtol=1e-12)


def test_the_sampler_leaves_the_joint_distribution_as_it_is() -> None:
    assert largest_z(ENGINE._hyperprior, 1.0, seed=5) < 4.5


@pytest.mark.parametrize("bug", ["half the omegas", "a prior of half the spread"])
def test_planted_bugs_are_found(bug: str) -> None:
    hyperprior = ENGINE._hyperprior.copy()
    if bug == "a prior of half the spread":
        hyperprior[kernels.SCALE : kernels.SCALE + 2] *= 0.5
    assert largest_z(hyperprior, 0.5 if bug == "half the omegas" else 1.0, seed=6, n=2000) > 6
