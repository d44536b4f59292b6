"""Simulation-based calibration (Talts et al. 2018) of the robust model's draws of the mean, with places and without."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from polyarm.inference import RobustEngine, RobustState
from polyarm.kernels._jit import rng_handle
from polyarm.kernels.robust import predict
from polyarm.kernels.robust.component import COUNT
from polyarm.kernels.robust.units import with_intercept
from polyarm.models import RobustMixture
from polyarm.types import Array, IntArray, Rng
from tests.statistics.mutants import compiled_mutant

N_REWARDS, N_RANKS = 20, 10


def model_with(place_scale: float) -> RobustMixture:
    """One arm, two columns, everything shared fixed at 1 (b at 1/2)."""
    ones = (1.0, 1.0)
    return RobustMixture(
        1,
        2,
        arm_shape=ones,
        arm_scale=ones,
        part_ratio=ones,
        noise_shape=3.0,
        noise_rate=2.0,
        concentration=1.0,
        place_shape=0.0,
        place_scale=place_scale,
        learned=False,
    )


def draw_mean(engine: RobustEngine, state: RobustState, x: Array, rng: Rng) -> float:
    return float(engine.draw_means(state, x, 1, rng)[0, 0])


def draw_mean_by(kernel: Callable[..., None], engine: RobustEngine, state: RobustState, x: Array, rng: Rng) -> float:
    """A draw by a kernel with a planted bug."""
    out = np.empty((1, 1))
    kernel(engine._books(state), x, out, rng_handle(rng))
    return float(out[0, 0])


def ranks(place_scale: float, draw: Callable[..., float], seed: int, runs: int = 500) -> IntArray:
    """Rank of the true mean reward in a new context among posterior draws, for worlds drawn from the prior."""
    model, rng = model_with(place_scale), np.random.default_rng(seed)
    engine = RobustEngine(model, 40, 0, fixed_units=True)
    found, ones, blank = [], np.ones(2), model.sample_params(rng)
    for _ in range(runs):
        arm = model.sample_arm(ones, ones, np.zeros(3), 0.5, 1.0, rng)
        places = np.sqrt(place_scale) * rng.standard_normal((len(arm.weights), 2))
        truth = blank._replace(arms=(arm,), places=(places,))
        state, shares = engine.init(), np.cumsum(arm.weights)
        for k in np.searchsorted(shares, rng.random(N_REWARDS) * shares[-1]):
            x = places[k] + rng.standard_normal(2)
            y = arm.coefficients[k] @ np.append(x, 1.0) + np.sqrt(arm.noise_var[k]) * rng.standard_normal()
            state = engine.update(state, x, 0, float(y), rng)
        x = np.sqrt(1 + place_scale) * rng.standard_normal(2)
        draws = []
        for _ in range(N_RANKS - 1):
            for _ in range(4):
                state = engine.refresh(state, rng)
            draws.append(draw(engine, state, x, rng))
        found.append(int((np.array(draws) < model.mean_reward(truth, 0, x)).sum()))
    return np.asarray(np.bincount(found, minlength=N_RANKS), dtype=np.int64)


@pytest.mark.parametrize("place_scale", [0.0, 0.03, 0.5])
def test_the_true_mean_has_every_rank_equally_often(place_scale: float) -> None:
    assert stats.chisquare(ranks(place_scale, draw_mean, 8)).pvalue > 1e-3


def weights_of_nowhere(T: Array, K: int, features: Any, shared: Any, x: Array, counts: Array) -> None:
    """Planted: the weights in a context are those over all contexts."""
    for k in range(K):
        counts[k] = T[COUNT, k]
    counts[K] = shared.concentration


def test_weights_that_ignore_the_context_are_noticed() -> None:
    wrong = compiled_mutant(predict.draw_means, {"local_counts": weights_of_nowhere})
    assert stats.chisquare(ranks(4.0, partial(draw_mean_by, wrong), 9, 200)).pvalue < 1e-4


# -- what the arms have in common


def joint_draws(engine: RobustEngine, state: RobustState, x: Array, rng: Rng) -> Array:
    return np.asarray(engine.draw_means(state, x, 1, rng)[0])


def joint_draws_by(kernel: Callable[..., None], engine: RobustEngine, state: RobustState, x: Array, rng: Rng) -> Array:
    """Draws by a kernel with a planted bug."""
    out = np.empty((1, engine.n_arms))
    kernel(engine._books(state), x, out, rng_handle(rng))
    return np.asarray(out[0])


def common_ranks(draw: Callable[..., Array], runs: int, seed: int) -> IntArray:
    """Ranks of three truths, for worlds drawn from the prior, the arms' common centre among it: the mean of an arm that
    was played, of one that never was, and the difference between two that were played little.
    """
    model = RobustMixture(
        4, 2, arm_shape=(5.0, 5.0), arm_scale=(0.5, 0.5), part_shape=(5.0, 5.0), part_scale=(2.0, 2.0)
    )
    model = replace(model, noise_shape=3.0, noise_rate_shape=4.0, noise_rate=4.0, wild_share=0.0)
    model = replace(model, place_shape=0.0, place_scale=0.0, centre_shape=5.0, centre_scale=120.0)
    engine, rng = RobustEngine(model, 20, 10, fixed_units=True), np.random.default_rng(seed)
    found = []
    for _ in range(runs):
        truth, state = model.sample_params(rng), engine.init()
        for arm in (0, 1, 0, 2, 0, 0):
            x = rng.standard_normal(2)
            state = engine.update(state, x, arm, float(model.sample_reward(truth, arm, x, rng)), rng)
        x = rng.standard_normal(2)
        means = np.array([model.mean_reward(truth, arm, x) for arm in range(4)])
        draws = []
        for _ in range(N_RANKS - 1):
            for _ in range(4):
                state = engine.refresh(state, rng)
            draws.append(draw(engine, state, x, rng))
        told = [np.array([m[0], m[3], m[1] - m[2]]) for m in (*draws, means)]
        found.append((np.array(told[:-1]) < told[-1]).sum(0))
    return np.stack([np.bincount(column, minlength=N_RANKS) for column in np.array(found).T])


def test_arms_that_share_a_centre_have_every_rank_equally_often() -> None:
    for counts in common_ranks(joint_draws, 600, 10):
        assert stats.chisquare(counts).pvalue > 1e-3


def nothing_in_common(g: Array, h: Array) -> float:
    """Planted: c is known to be what it is expected to be."""
    return float(0.0 * h.sum())


def each_arm_by_itself(arms: Any, x: Array, common: Any, h: Array, view: predict.View, out: Array, rng: Rng) -> None:
    """Planted: every arm has a draw of its own of what arms have in common."""
    with_intercept(x, arms.features, view.x)
    for arm in range(out.shape[1]):
        predict.look_at(arms, arm, common, view)
        for i in range(h.shape[1]):
            h[0, i] = rng.standard_normal()
        gamma = arms.shared.concentration
        out[0, arm] = predict.draw_mean(view, arms.sizes[arm, 0], gamma, h[0], rng)


@pytest.mark.parametrize(
    ("planted", "caught", "runs"),
    [({"in_common": nothing_in_common}, 1, 400), ({"fill_draws": each_arm_by_itself}, 2, 600)],
    ids=["no spread", "no joint draw"],
)
def test_a_wrong_common_centre_is_noticed(planted: dict[str, Any], caught: int, runs: int) -> None:
    wrong = compiled_mutant(predict.draw_means, planted)
    counts = common_ranks(partial(joint_draws_by, wrong), runs, 11)
    assert stats.chisquare(counts[caught]).pvalue < 1e-4
