"""Simulation-based calibration (Talts et al. 2018) of the robust model's draws of the mean, with places and without."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from polyarm.inference import RobustEngine, RobustState
from polyarm.kernels.robust import predict
from polyarm.kernels.robust.component import COUNT
from polyarm.models import RobustMixture
from polyarm.types import Array, IntArray, Rng
from tests.statistics.mutants import quick_mutant

N_RUNS, N_REWARDS, N_RANKS = 500, 20, 10


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
    kernel(engine._books(state), x, out, rng)
    return float(out[0, 0])


def ranks(place_scale: float, draw: Callable[..., float], seed: int) -> IntArray:
    """Rank of the true mean reward in a new context among posterior draws, for worlds drawn from the prior."""
    model, rng = model_with(place_scale), np.random.default_rng(seed)
    engine = RobustEngine(model, 40, 0, fixed_units=True)
    found, ones, blank = [], np.ones(2), model.sample_params(rng)
    for _ in range(N_RUNS):
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
    counts[:K], counts[K] = T[COUNT, :K], shared.concentration


def test_weights_that_ignore_the_context_are_noticed() -> None:
    wrong = quick_mutant(predict.draw_means, {"local_counts": weights_of_nowhere})
    assert stats.chisquare(ranks(4.0, partial(draw_mean_by, wrong), 9)).pvalue < 1e-4
