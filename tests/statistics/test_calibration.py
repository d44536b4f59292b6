"""Geweke's joint-distribution test and simulation-based calibration: the sampler passes, planted bugs do not."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from polyarm.inference import GibbsEngine
from polyarm.inference.gibbs import GibbsState, with_room_for_component
from polyarm.kernels._jit import rng_handle
from polyarm.kernels.mixture import component, gibbs
from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.types import Array, IntArray, Rng
from tests import reference
from tests.statistics.mutants import (
    compiled_mutant,
    diagonal_residuals,
    kept_log_weight,
    score_without_discount,
    seated,
)

Sampler = Callable[[GibbsEngine, GibbsState, Rng], GibbsState]
Draw = Callable[[GibbsEngine, GibbsState, Array, Rng], float]
POINT = np.array([1.0, 0.5])
REJECTED = 1e-4  # a p-value below this rejects


def model_of(concentration: float, discount: float) -> LinearMixture:
    return LinearMixture(NormalInverseGamma(2, 0.3, [[40.0, -38.0], [-38.0, 40.0]], 3.0, 2.0), concentration, discount)


def contexts(n: int) -> Array:
    return np.column_stack([np.ones(n), np.linspace(0.5, 2.0, n)])


# -- what is tested: a sweep over the seating, and a draw of the mean given the seating


def sweep_once(engine: GibbsEngine, state: GibbsState, rng: Rng) -> GibbsState:
    return engine.sweep(state, 0, rng)


def draw_mean(engine: GibbsEngine, state: GibbsState, point: Array, rng: Rng) -> float:
    return float(engine.draw_means(state, point, 1, rng)[0, 0])


def sweep_with(replaced: dict[str, Callable[..., Any]]) -> Sampler:
    """A sweep with a planted bug, begun again with more room where no slot is free, as the engine does."""
    moves = compiled_mutant(gibbs.sweep, replaced)

    def sweep(engine: GibbsEngine, state: GibbsState, rng: Rng) -> GibbsState:
        left = int(state.sizes[0, 1])
        order = np.empty(left, np.int64)
        while left > 0:
            left = moves(engine._books(state, 0), 0, order, left, rng_handle(rng))
            state = with_room_for_component(state, engine._prior.sqrt_information) if left > 0 else state
        engine._door.last = state
        return state

    return sweep


def draw_mean_with_one_atom(engine: GibbsEngine, state: GibbsState, point: Array, rng: Rng) -> float:
    """Dirichlet weights, but a single atom instead of the whole remaining process."""
    shape, _, concentration, discount = engine._prior.processes[0]
    K = int(state.sizes[0, 0])
    columns = np.column_stack([state.tables[0][:, :K], engine._prior.columns[0]])
    weights = rng.dirichlet(np.append(columns[component.COUNT, :K] - discount, concentration + K * discount))
    a, b = shape + 0.5 * columns[component.COUNT], columns[component.SCALE]
    mean = point @ columns[component.MEAN : component.MEAN + 2]
    m00, m01, m11 = columns[component.MEAN + 2 :]  # V = MM'
    spread = (point[0] * m00) ** 2 + (point[0] * m01 + point[1] * m11) ** 2
    atoms = mean + np.sqrt(b / rng.standard_gamma(a) * spread) * rng.standard_normal(K + 1)
    return float(weights @ atoms)


@functools.lru_cache(maxsize=1)
def paper_twin(engine: GibbsEngine) -> GibbsEngine:
    """The engine with the paper's draw of the mean."""
    return GibbsEngine(engine.arms, engine.rule, "paper")


def paper_draw(engine: GibbsEngine, state: GibbsState, point: Array, rng: Rng) -> float:
    return draw_mean(paper_twin(engine), state, point, rng)


# -- the joint distribution, told forwards


def sample_joint(model: LinearMixture, X: Array, rng: Rng) -> tuple[Array, IntArray, float]:
    """Rewards, their labels and the mean at POINT, from the prior."""
    params = model.sample_params(rng)
    k = np.searchsorted(np.cumsum(params.weights), rng.random(len(X)) * params.weights.sum())
    y = np.einsum("ij,ij->i", X, params.coefficients[k]) + np.sqrt(params.noise_var[k]) * rng.standard_normal(len(X))
    labels = np.array(reference.canonical(k), dtype=np.int64)
    return y, labels, model.mean_reward(params, POINT)


def statistics_of(y: Array, labels: IntArray, mean: Array) -> Array:
    """Statistics (m, 7) of m stories: rewards and labels (m, n) and the mean at POINT (m,)."""
    counts = (labels[:, :, None] == np.arange(labels.shape[1])).sum(axis=1)
    level, spread = np.arctan(y.mean(axis=1)), np.log1p(np.mean(y**2, axis=1))
    squashed = np.arctan(mean)
    in_use = (counts > 0).sum(axis=1)
    return np.column_stack([in_use, counts.max(axis=1), level, spread, squashed, squashed**2, squashed * level])


def fresh_rewards(model: LinearMixture, X: Array, y: Array, labels: IntArray, rng: Rng) -> Array:
    """Rewards given their labels, through a draw of every component's parameters; labels are 0, 1, ..."""
    base, counts = model.base, np.bincount(labels)
    prior_mean, information = base.mean_vector, np.linalg.inv(base.covariance_matrix)
    own = labels == np.arange(len(counts))[:, None]
    squares = (X[:, :, None] * X[:, None]).reshape(len(X), -1)
    covariance = np.linalg.inv(information + (own @ squares).reshape(-1, *information.shape))
    mean = np.einsum("kij,kj->ki", covariance, information @ prior_mean + own @ (X * y[:, None]))
    gap, shift = y - np.einsum("ij,ij->i", X, mean[labels]), mean - prior_mean
    scale = base.scale + 0.5 * (own @ gap**2 + np.einsum("ki,ij,kj->k", shift, information, shift))
    sd = np.sqrt(scale / rng.standard_gamma(base.shape + counts / 2))
    noise = np.einsum("kij,kj->ki", np.linalg.cholesky(covariance), rng.standard_normal(mean.shape))
    w = mean + sd[:, None] * noise
    return np.asarray(np.einsum("ij,ij->i", X, w[labels]) + sd[labels] * rng.standard_normal(len(y)))


@functools.cache
def forward_statistics(concentration: float, discount: float, n: int) -> Array:
    """Statistics of rewards, labels and mean drawn from the prior, (4000, 7); sampler and planted bugs share them."""
    rng, model, X = np.random.default_rng(2), model_of(concentration, discount), contexts(n)
    y, labels, means = zip(*[sample_joint(model, X, rng) for _ in range(4000)], strict=True)
    return statistics_of(np.array(y), np.array(labels), np.array(means))


def geweke_p_value(
    concentration: float, discount: float, n: int, sampler: Sampler, draw: Draw, steps: int, seed: int
) -> float:
    """Smallest p-value, Bonferroni-corrected, of prior against successive-conditional statistics."""
    rng, X, model = np.random.default_rng(seed), contexts(n), model_of(concentration, discount)
    forward, engine = forward_statistics(concentration, discount, n), GibbsEngine([model])
    y, labels, _ = sample_joint(model, X, rng)
    rewards, seats, means = np.empty((steps, n)), np.empty((steps, n), np.int64), np.empty(steps)
    for step in range(steps):
        rewards[step] = y = fresh_rewards(model, X, y, labels, rng)
        state = sampler(engine, seated(engine, X, y, labels), rng)
        seats[step] = labels = engine.assignments(state, 0)
        means[step] = draw(engine, state, POINT, rng)
    chain = statistics_of(rewards, seats, means)
    batches = chain.reshape(40, -1, chain.shape[1]).mean(axis=1)
    error = np.sqrt(batches.var(axis=0, ddof=1) / 40 + forward.var(axis=0, ddof=1) / len(forward))
    moving = error > 0  # a single reward always sits in one component
    z = (chain.mean(axis=0) - forward.mean(axis=0))[moving] / error[moving]
    return float(min(1.0, len(z) * 2 * stats.t.sf(np.abs(z), 39).min()))


@pytest.mark.parametrize(("concentration", "discount", "n"), [(1.0, 0.0, 8), (0.7, 0.3, 8), (2.0, 0.0, 2)])
def test_geweke_passes_for_exact_draws(concentration: float, discount: float, n: int) -> None:
    assert geweke_p_value(concentration, discount, n, sweep_once, draw_mean, 4000, seed=3) > REJECTED


DIAGONAL = sweep_with({"residuals": diagonal_residuals})
UNDISCOUNTED = sweep_with({"score": score_without_discount})
KEPT = sweep_with({"log_leave_one_out": kept_log_weight})
BUGS = [  # most are seen in a quarter of the steps
    pytest.param(4.0, 0.0, 2, sweep_once, draw_mean_with_one_atom, 1000, id="one-atom tail"),
    pytest.param(4.0, 0.0, 2, sweep_once, paper_draw, 1000, id="the paper's draw"),
    pytest.param(1.0, 0.0, 8, DIAGONAL, draw_mean, 1000, id="diagonal-only scale"),
    pytest.param(0.7, 0.3, 8, UNDISCOUNTED, draw_mean, 1000, id="missing discount"),
    pytest.param(1.0, 0.0, 8, KEPT, draw_mean, 2000, id="reward not removed"),
]


@pytest.mark.parametrize(("concentration", "discount", "n", "sampler", "draw", "steps"), BUGS)
def test_geweke_rejects_planted_bugs(
    concentration: float, discount: float, n: int, sampler: Sampler, draw: Draw, steps: int
) -> None:
    assert geweke_p_value(concentration, discount, n, sampler, draw, steps, seed=3) < REJECTED


# -- simulation-based calibration


def ranks_of_truth(values: Array, rng: Rng) -> IntArray:
    """Rank of values[0] among all, column by column, ties broken at random."""
    return np.asarray((values < values[0]).sum(axis=0) + rng.integers((values == values[0]).sum(axis=0)))


def calibration_ranks(model: LinearMixture, n: int, sampler: Sampler, draw: Draw, runs: int, seed: int) -> IntArray:
    """Ranks (runs, 4) of the true mean, number of components, largest component and log joint among 19 draws.

    The chain starts at the truth and runs both ways from a random position (Besag & Clifford 1989), so that the ranks
    are exactly uniform however slowly it mixes.
    """
    rng, X, engine = np.random.default_rng(seed), contexts(n), GibbsEngine([model])
    ranks = np.empty((runs, 4), np.int64)
    for run in range(runs):
        y, truth, mean = sample_joint(model, X, rng)
        start = seated(engine, X, y, truth)
        values = [[mean, *summary(engine, start)]]
        position = int(rng.integers(20))
        for steps in (position, 19 - position):
            state = seated(engine, X, y, truth)
            for _ in range(steps):
                state = sampler(engine, state, rng)
                values.append([draw(engine, state, POINT, rng), *summary(engine, state)])
        ranks[run] = ranks_of_truth(np.array(values), rng)
    return ranks


def summary(engine: GibbsEngine, state: GibbsState) -> list[float]:
    K = int(state.sizes[0, 0])
    return [float(K), float(state.tables[0, component.COUNT, :K].max()), engine.log_joint(state, 0)]


def uniformity_p_value(ranks: IntArray) -> float:
    """Smallest chi-square p-value over the columns, Bonferroni-corrected."""
    tests = [stats.chisquare(np.bincount(column, minlength=20)).pvalue for column in ranks.T]
    return float(min(1.0, len(tests) * min(tests)))


@pytest.mark.parametrize(("concentration", "discount"), [(1.0, 0.0), (0.7, 0.3), (3 * 0.8, -0.8)])
def test_calibration_ranks_are_uniform(concentration: float, discount: float) -> None:
    ranks = calibration_ranks(model_of(concentration, discount), 25, sweep_once, draw_mean, 800, seed=5)
    assert uniformity_p_value(ranks) > REJECTED


SBC_BUGS = [
    pytest.param(4.0, 0.0, 1, 400, sweep_once, draw_mean_with_one_atom, id="one-atom tail"),
    pytest.param(4.0, 0.0, 1, 400, sweep_once, paper_draw, id="the paper's draw"),
    pytest.param(1.0, 0.0, 3, 1200, DIAGONAL, draw_mean, id="diagonal-only scale"),
    pytest.param(0.7, 0.3, 6, 400, UNDISCOUNTED, draw_mean, id="missing discount"),
]


@pytest.mark.parametrize(("concentration", "discount", "n", "runs", "sampler", "draw"), SBC_BUGS)
def test_calibration_rejects_planted_bugs(
    concentration: float, discount: float, n: int, runs: int, sampler: Sampler, draw: Draw
) -> None:
    ranks = calibration_ranks(model_of(concentration, discount), n, sampler, draw, runs, seed=5)
    assert uniformity_p_value(ranks) < REJECTED


def test_states_made_by_hand_are_sound() -> None:
    model, X = model_of(0.7, 0.3), contexts(9)
    state = seated(GibbsEngine([model]), X, X @ [1.0, -2.0], [0, 1, 1, 2, 0, 3, 4, 4, 2])
    assert np.isfinite(GibbsEngine([model]).expected_means(state, POINT)).all()  # an engine that checks it


def test_a_draw_of_the_mean_has_the_closed_form_moments() -> None:
    """Given a seating: E and Var of the mean functional (inference.md section 3), 300 000 draws."""
    model = LinearMixture(NormalInverseGamma(2, 0.3, [[1.0, 0.8], [0.8, 1.2]], 6.0, 2.0), 1.3, 0.2)
    engine, rng = GibbsEngine([model]), np.random.default_rng(8)
    X = contexts(7)
    state = seated(engine, X, rng.standard_normal(7), [0, 0, 1, 1, 1, 2, 0])
    draws = engine.draw_means(state, POINT, 300_000, rng)[:, 0]
    predictive = engine.predictive(state, POINT, 0)
    A, p = 7 + 1.3, predictive.weights
    counts = np.array([3.0, 3.0, 1.0, 0.0])
    spread = POINT @ np.array([[1.0, 0.8], [0.8, 1.2]]) @ POINT
    v = np.empty(4)
    for k in range(4):
        a = 6.0 + counts[k] / 2
        scale2 = predictive.scale[k] ** 2  # b/a (1 + q)
        if k < 3:
            b = state.tables[0, component.SCALE, k]
            v[k] = (scale2 - b / a) * a / (a - 1)
        else:
            v[k] = 2.0 / 5.0 * spread * (1 - 0.2) / (1.3 + 3 * 0.2 + 1)
    m = predictive.location
    variance = np.sum(p * (p * A + 1) / (A + 1) * v) + (p @ m**2 - (p @ m) ** 2) / (A + 1)
    se = np.sqrt(variance / 300_000)
    assert abs(draws.mean() - p @ m) < 4 * se
    assert abs(draws.var() / variance - 1) < 4 * np.sqrt((stats.kurtosis(draws) + 2) / 300_000) + 1e-3
    assert engine.expected_means(state, POINT)[0] == pytest.approx(p @ m, rel=1e-12)
