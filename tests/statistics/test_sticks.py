"""The sticks' sampler against a textbook one and by simulation-based calibration; planted bugs are found."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import chisquare

from polyarm.inference import KindsEngine, RobustEngine
from polyarm.kernels import polya_gamma
from polyarm.kernels import sticks as kernels
from polyarm.kernels._jit import RngHandle, kernel, rng_from, rng_handle
from polyarm.kernels.sticks import Sticks
from polyarm.models import LogisticSticks, RobustMixture
from polyarm.types import Array, IntArray, Rng

PRIOR = LogisticSticks(2, 1, arm_shape=(3.0, 3.0), arm_scale=(2.0, 2.0), wide=(1.0, 2.0), most=(8.0, 8.0))
ENGINE = KindsEngine(RobustEngine(RobustMixture(2, 1), fixed_units=True), PRIOR)


class Rewards(NamedTuple):
    """Contexts (n, 1), arms and kinds of rewards."""

    contexts: Array
    arms: IntArray
    kinds: IntArray


def started(rewards: Rewards, m: int, rng: Rng) -> tuple[Sticks, list[Array]]:
    """Sticks that hold these rewards; nothing is drawn yet but their omegas."""
    columns = np.zeros((6, 2))
    columns[kernels.UNIT] = 1.0
    sticks, data = ENGINE._sticks(m, columns), [np.zeros((len(rewards.arms), 4 + 2 * m)) for _ in range(2)]
    for x, arm, kind in zip(*rewards, strict=True):
        kernels.add_reward(sticks, data[arm], int(arm), x, 0.0, int(kind), rng_handle(rng))
    return sticks, data


@kernel
def play_rounds(
    sticks: Sticks, first: Array, second: Array, hyperprior: Array, moves: int, out: Array, handle: RngHandle
) -> None:
    """Fill every row of `out` after one more round of the sampler."""
    rng = rng_from(handle)
    for row in range(out.shape[0]):
        kernels.visits(sticks, first, 0, moves, 1, rng)
        kernels.visits(sticks, second, 1, moves, 1, rng)
        kernels.redraw_shared(sticks, 0, 1, hyperprior, rng)
        for j in range(2):
            out[row, j] = sticks.fits[0, 0, j, 3]
            out[row, 2 + j] = sticks.fits[1, 0, j, 3]
            out[row, 4 + j] = sticks.shared[0, 0, j]
            out[row, 6 + j] = np.log(sticks.shared[0, 1, j])


def rounds(sticks: Sticks, data: list[Array], hyperprior: Array, n: int, rng: Rng, moves: int = 4) -> Array:
    """Beta of every arm, beta_0 and log lam of the first stick after each of n rounds, (n, 8)."""
    out = np.empty((n, 8))
    play_rounds(sticks, data[0], data[1], hyperprior, moves, out, rng_handle(rng))
    return out


def textbook(rewards: Rewards, n: int, rng: Rng) -> Array:
    """The same by a sampler that scans all rewards of a single stick: Polson, Scott & Windle 2013, and plain Gibbs."""
    X, y = np.column_stack([rewards.contexts, np.ones(len(rewards.arms))]), rewards.kinds == 0
    own = [X[rewards.arms == arm] for arm in range(2)]
    pulls = [own[arm].T @ (y[rewards.arms == arm] - 0.5) for arm in range(2)]
    beta, centre, lam = np.zeros((2, 2)), np.zeros(2), np.full(2, 0.5)
    out = np.empty((n, 8))
    for row in out:
        for arm in range(2):
            omega = np.empty(len(own[arm]))
            polya_gamma.fill(own[arm] @ beta[arm], omega, rng_handle(rng))
            V = np.linalg.inv((own[arm].T * omega) @ own[arm] + np.diag(1 / lam))
            beta[arm] = V @ (pulls[arm] + centre / lam) + np.linalg.cholesky(V) @ rng.standard_normal(2)
        precision = 1 / np.array(PRIOR.wide) + 2 / lam
        centre = beta.sum(axis=0) / lam / precision + rng.standard_normal(2) / np.sqrt(precision)
        squares = ((beta - centre) ** 2).sum(axis=0)
        drawn = np.full(2, np.inf)
        while (drawn >= np.array(PRIOR.most)).any():
            drawn = (np.array(PRIOR.arm_scale) + squares / 2) / rng.standard_gamma(np.array(PRIOR.arm_shape) + 1)
        lam = drawn
        row[:] = [*beta.ravel(), *centre, *np.log(lam)]
    return out


def batch_error(draws: Array, n_batches: int = 40) -> Array:
    """Standard error of a correlated mean."""
    means = draws[: len(draws) // n_batches * n_batches].reshape(n_batches, -1, draws.shape[1]).mean(axis=1)
    return np.asarray(means.std(axis=0, ddof=1) / np.sqrt(n_batches))


def z_scores(one: Array, other: Array) -> Array:
    """Differences of means and of squares, in standard errors."""
    pairs = [(a, b) for a, b in ((one, other), (one**2, other**2))]
    return np.concatenate(
        [(a.mean(axis=0) - b.mean(axis=0)) / np.hypot(batch_error(a), batch_error(b)) for a, b in pairs]
    )


@pytest.fixture(scope="module")
def problem() -> Rewards:
    rng = np.random.default_rng(0)
    return Rewards(rng.standard_normal((24, 1)), rng.integers(2, size=24), (rng.random(24) < 0.75).astype(np.int64))


@pytest.fixture(scope="module")
def expected(problem: Rewards) -> Array:
    return textbook(problem, 12_000, np.random.default_rng(1))[500:]


def test_a_long_run_equals_a_textbook_samplers(problem: Rewards, expected: Array) -> None:
    rng = np.random.default_rng(5)
    sticks, data = started(problem, 1, rng)
    found = rounds(sticks, data, ENGINE._hyperprior, 40_000, rng)[1000:]
    assert np.abs(z_scores(found, expected)).max() < 4.5


@pytest.mark.parametrize("bug", ["omegas are not redrawn", "a prior twice as wide"])
def test_planted_bugs_differ_from_the_textbook(problem: Rewards, expected: Array, bug: str) -> None:
    rng = np.random.default_rng(2)
    sticks, data = started(problem, 1, rng)
    hyperprior, moves = ENGINE._hyperprior.copy(), 4
    if bug == "omegas are not redrawn":
        moves = 0
    else:
        hyperprior[kernels.SCALE : kernels.SCALE + 2] *= 4
    found = rounds(sticks, data, hyperprior, 12_000, rng, moves)[1000:]
    assert np.abs(z_scores(found, expected)).max() > 6


def ranks(n_worlds: int, moves: int, seed: int) -> Array:
    """Ranks, from 0 to 9, of true parameters among nine draws, (n_worlds, 8)."""
    rng, hyperprior = np.random.default_rng(seed), ENGINE._hyperprior
    out = np.empty((n_worlds, 8))
    for row in out:
        params = PRIOR.sample_params(2, rng)
        arms, x = rng.integers(2, size=16), rng.standard_normal((16, 1))
        kinds = [PRIOR.sample_kind(params, int(arm), at, rng) for arm, at in zip(arms, x, strict=True)]
        sticks, data = started(Rewards(x, arms, np.array(kinds)), 2, rng)
        draws = rounds(sticks, data, hyperprior, 360, rng, moves)[39::40]
        truth = [*params.slopes[:, 0].ravel(), *params.centre[0], *np.log(params.spread[0])]
        row[:] = (draws < truth).sum(axis=0)
    return out


def worst(found: Array) -> float:
    """Smallest p-value of uniform ranks over the parameters, Bonferroni-corrected."""
    return 8 * min(float(chisquare(np.bincount(column.astype(int), minlength=10)).pvalue) for column in found.T)


def test_ranks_of_the_truth_are_uniform() -> None:
    assert worst(ranks(600, 6, seed=3)) > 1e-3


def test_ranks_find_a_planted_bug() -> None:
    assert worst(ranks(600, 0, seed=4)) < 1e-4
