"""Simulation-based calibration (Talts et al. 2018) of posterior draws of quantiles and shortfalls."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from polyarm import ExpectedShortfall, Objective, Quantile
from polyarm.inference import Budget, ConjugateEngine, GibbsEngine, RobustEngine
from polyarm.kernels.mixture import means
from polyarm.kernels.mixture.component import COUNT, SCALE
from polyarm.kernels.objectives import Parts
from polyarm.models import LinearGaussian, LinearMixture, NormalInverseGamma
from polyarm.types import Array, IntArray, Rng
from tests.statistics.mutants import quick_mutant
from tests.statistics.test_robust_calibration import model_with

N_REWARDS, N_RANKS = 20, 10
OBJECTIVES: dict[str, Objective] = {str(o): o for o in (Quantile(0.1), Quantile(0.8), ExpectedShortfall(0.2))}
Draw = Callable[[Any, Any, Array, Objective, Rng], float]
Histograms = dict[str, IntArray]


def drawn(engine: Any, state: Any, x: Array, objective: Objective, rng: Rng) -> float:
    return float(engine.draw_objectives(state, x, objective, 1, rng)[0, 0])


def histograms(draws: list[Array], truths: list[list[float]]) -> Histograms:
    """How often the truth has each rank among the draws (N_RANKS - 1, n_objectives), for every objective."""
    ranks = np.array([(drawn < truth).sum(axis=0) for drawn, truth in zip(draws, truths, strict=True)])
    return {name: np.bincount(ranks[:, j], minlength=N_RANKS) for j, name in enumerate(OBJECTIVES)}


@functools.cache
def mixture_ranks(discount: float, draw: Draw, n_runs: int, seed: int) -> Histograms:
    """Ranks of the truth among draws of the Gibbs engine, for mixtures drawn from the prior."""
    rng = np.random.default_rng(seed)
    model = LinearMixture(NormalInverseGamma(2, 0.3, 2.0, 3.0, 2.0), 1.0, discount)
    engine, found, true = GibbsEngine([model], Budget(40)), [], []
    for _ in range(n_runs):
        truth, state = model.sample_params(rng), engine.init()
        for _ in range(N_REWARDS):
            x = np.array([1.0, rng.standard_normal()])
            state = engine.update(state, x, 0, model.sample_reward(truth, x, rng), rng)
        x = np.array([1.0, rng.standard_normal()])
        draws = []
        for _ in range(N_RANKS - 1):
            for _ in range(4):
                state = engine.sweep(state, 0, rng)
            draws.append([draw(engine, state, x, objective, rng) for objective in OBJECTIVES.values()])
        parts = truth.weights, truth.coefficients @ x, truth.noise_var
        found.append(np.array(draws))
        true.append([float(objective.of_mixture(*parts)) for objective in OBJECTIVES.values()])
    return histograms(found, true)


@functools.cache
def linear_ranks(n_runs: int, seed: int) -> Histograms:
    rng = np.random.default_rng(seed)
    model = LinearGaussian(NormalInverseGamma(2, 0.3, 2.0, 3.0, 2.0))
    engine, found, true = ConjugateEngine([model]), [], []
    for _ in range(n_runs):
        truth, state = model.sample_params(rng), engine.init()
        for _ in range(5):
            x = rng.standard_normal(2)
            state = engine.update(state, x, 0, model.sample_reward(truth, x, rng), rng)
        x = rng.standard_normal(2)
        draws = [engine.draw_objectives(state, x, o, N_RANKS - 1, rng)[:, 0] for o in OBJECTIVES.values()]
        found.append(np.array(draws).T)
        parts = [1.0], [truth.weights @ x], [truth.noise_var]
        true.append([float(objective.of_mixture(*parts)) for objective in OBJECTIVES.values()])
    return histograms(found, true)


@functools.cache
def robust_ranks(place_scale: float, n_runs: int, seed: int) -> Histograms:
    model, rng = model_with(place_scale), np.random.default_rng(seed)
    engine, found, true = RobustEngine(model, 40, 0, fixed_units=True), [], []
    ones, blank = np.ones(2), model.sample_params(rng)
    for _ in range(n_runs):
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
            draws.append([drawn(engine, state, x, objective, rng) for objective in OBJECTIVES.values()])
        found.append(np.array(draws))
        parts = model.weights_at(truth, 0, x), arm.coefficients @ np.append(x, 1.0), arm.noise_var
        true.append([float(objective.of_mixture(*parts)) for objective in OBJECTIVES.values()])
    return histograms(found, true)


@pytest.mark.parametrize("discount", [0.0, 0.3])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_mixtures(discount: float, name: str) -> None:
    assert stats.chisquare(mixture_ranks(discount, drawn, 400, 1)[name]).pvalue > 1e-3


@pytest.mark.parametrize("name", OBJECTIVES)
def test_one_normal(name: str) -> None:
    assert stats.chisquare(linear_ranks(2000, 2)[name]).pvalue > 1e-3


@pytest.mark.parametrize("place_scale", [0.0, 0.5])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_robust_model(place_scale: float, name: str) -> None:
    assert stats.chisquare(robust_ranks(place_scale, 300, 3)[name]).pvalue > 1e-3


def plugged_in(T: Array, K: int, process: Array, at: means.Located, parts: Parts, rng: Rng) -> int:
    """Planted: components in use stand with their estimates, as if known."""
    for k in range(K):
        parts.weight[k] = rng.standard_gamma(T[COUNT, k])
        parts.variance[k] = T[SCALE, k] / (process[0] + 0.5 * T[COUNT, k])
        parts.mean[k] = at.m[k]
    return K


WRONG = quick_mutant(means.draw_worths, {"draw_mixture": plugged_in})


def drawn_wrongly(engine: GibbsEngine, state: Any, x: Array, objective: Objective, rng: Rng) -> float:
    out = np.empty(1)
    prior = engine._prior.columns[0]
    WRONG(state.tables[0], int(state.sizes[0, 0]), state.laws[0], prior, x, objective.functional, out, rng)
    return float(out[0])


@pytest.mark.parametrize("name", ["quantile:0.1", "shortfall:0.2"])
def test_estimates_in_place_of_draws_are_noticed(name: str) -> None:
    assert stats.chisquare(mixture_ranks(0.0, drawn_wrongly, 400, 4)[name]).pvalue < 1e-4
