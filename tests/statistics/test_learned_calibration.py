"""Calibration of learned concentration, discount and scale: the sampler passes, planted bugs do not."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from polyarm.inference import GibbsEngine
from polyarm.inference.gibbs import GibbsState
from polyarm.kernels._jit import RngHandle, kernel, rng_from, rng_handle
from polyarm.kernels.mixture import component, hyperparameters
from polyarm.kernels.mixture.component import COUNT, SCALE
from polyarm.kernels.mixture.seating import log_partition
from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.types import Array, IntArray, Rng
from tests.statistics.mutants import quick_mutant, seated
from tests.statistics.test_calibration import (
    POINT,
    REJECTED,
    contexts,
    ranks_of_truth,
    sample_joint,
    uniformity_p_value,
)

Pair = tuple[float, float]
Redraw = Callable[[GibbsEngine, GibbsState, Rng], None]
BELIEFS: dict[str, Pair] = {"learn_concentration": (2.0, 2.0), "learn_discount": (2.0, 6.0), "learn_scale": (2.0, 1.0)}


@pytest.fixture(autouse=True)
def _few_sticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Close the truth's sticks at 0.0001, where two of 25 rewards never meet; the sampler's draws close at 0.001."""
    monkeypatch.setattr("polyarm.models.mixture.STICKS_LEFT", 1e-4)


def model_of(concentration: float, discount: float, scale: float) -> LinearMixture:
    base = NormalInverseGamma(2, 0.3, [[40.0, -38.0], [-38.0, 40.0]], 3.0, scale)
    return LinearMixture(base, concentration, discount)


def drawn_model(learned: list[str], rng: Rng) -> LinearMixture:
    """A model whose learned hyperparameters are drawn from their priors."""
    concentration, discount, scale = 0.8, 0.0 if "learn_discount" not in learned else 1.0, 2.0
    if "learn_concentration" in learned:
        concentration = rng.gamma(2.0) / 2.0
    while discount >= hyperparameters.MOST:
        discount = rng.beta(2.0, 6.0)
    if "learn_scale" in learned:
        scale = rng.gamma(2.0)
    return model_of(concentration, discount, scale)


def redraw(engine: GibbsEngine, state: GibbsState, rng: Rng) -> None:
    engine._door.last = state  # made with other hyperparameters, which the door would refuse
    engine.redraw_hyperparameters(state, rng)


def told(state: GibbsState, mean: float) -> list[float]:
    """Concentration, discount, scale, components, rewards in the largest, and the mean at POINT."""
    K = int(state.sizes[0, 0])
    return [*state.laws[0, [2, 3, 1]], float(K), float(state.tables[0, COUNT, :K].max()), mean]


def calibration_ranks(learned: list[str], n: int, redraw: Redraw, runs: int, seed: int) -> IntArray:
    """Ranks of the truth among 19 draws, both ways from it: every step is the same read backwards."""
    rng, X = np.random.default_rng(seed), contexts(n)
    start = model_of(1.0, 0.2 if "learn_discount" in learned else 0.0, 1.0)
    one_by_one = [GibbsEngine([start], **{name: BELIEFS[name]}) for name in learned]  # type: ignore[arg-type]
    engine = GibbsEngine([start], **{name: BELIEFS[name] for name in learned})  # type: ignore[arg-type]
    ranks = np.empty((runs, 6), np.int64)
    for run in range(runs):
        truth = drawn_model(learned, rng)
        y, labels, mean = sample_joint(truth, X, rng)
        true_engine = GibbsEngine([truth])
        values = [told(seated(true_engine, X, y, labels), mean)]
        position = int(rng.integers(20))
        for steps in (position, 19 - position):
            state = seated(true_engine, X, y, labels)
            for _ in range(steps):
                for part in one_by_one:
                    redraw(part, state, rng)
                engine._door.last = state
                engine._door.last = state = engine.sweep(state, 0, rng)
                for part in one_by_one[::-1]:
                    redraw(part, state, rng)
                values.append(told(state, float(engine.draw_means(state, POINT, 1, rng)[0, 0])))
        ranks[run] = ranks_of_truth(np.array(values), rng)
    return ranks


@pytest.mark.parametrize(
    "learned", [["learn_discount"], ["learn_concentration", "learn_discount"], ["learn_scale"], list(BELIEFS)]
)
def test_ranks_of_the_truth_are_uniform(learned: list[str]) -> None:
    assert uniformity_p_value(calibration_ranks(learned, 25, redraw, 500, seed=1)) > REJECTED


# -- planted bugs


def redraw_with(replaced: dict[str, Callable[..., Any]]) -> Redraw:
    """Draws of concentration and discount with a planted bug."""
    broken = quick_mutant(hyperparameters.redraw, replaced)

    def redraw(engine: GibbsEngine, state: GibbsState, rng: Rng) -> None:
        learn = (engine.learn_concentration is not None, engine.learn_discount is not None)
        broken(state.tables, state.sizes, state.laws, engine._hyperprior, *learn, rng)

    return redraw


def partition_with_a_factor_forgotten(counts: Array, n_tables: int, concentration: float, discount: float) -> float:
    """Every component's (1 - d)(2 - d)... without its division by Gamma(1 - d)."""
    whole = log_partition(counts, n_tables, concentration, discount)
    return float(whole + n_tables * math.lgamma(1.0 - discount))


def target_of_the_discount_itself(c: float, d: float, beliefs: Array, tables: Array, sizes: IntArray) -> float:
    """The density of d where that of logit d is due."""
    return float(hyperparameters.log_target(c, d, beliefs, tables, sizes) - math.log(d) - math.log1p(-d))


def scale_target_without_normalisation(
    b: float, beliefs: Array, processes: Array, tables: Array, sizes: IntArray
) -> float:
    """Every component's a0 log b forgotten."""
    whole = hyperparameters.log_scale_target(b, beliefs, processes, tables, sizes)
    return float(whole - processes[0, 0] * sizes[0, 0] * math.log(b))


BROKEN = quick_mutant(hyperparameters.redraw_scale, {"log_scale_target": scale_target_without_normalisation})


def redraw_scale_badly(engine: GibbsEngine, state: GibbsState, rng: Rng) -> None:
    BROKEN(state.tables, state.sizes, state.laws, engine._hyperprior, rng)
    hyperparameters.rate_rewards(state.data[0], len(state.data[0]), engine._columns(state)[0], state.laws[0, 0])


BUGS = [
    pytest.param(
        "learn_discount", 25, redraw_with({"log_partition": partition_with_a_factor_forgotten}), 150, id="factor"
    ),
    pytest.param("learn_discount", 6, redraw_with({"log_target": target_of_the_discount_itself}), 400, id="jacobian"),
    pytest.param("learn_scale", 10, redraw_scale_badly, 150, id="normalisation"),
]


@pytest.mark.parametrize(("learned", "n", "broken", "runs"), BUGS)
def test_planted_bugs_are_rejected(learned: str, n: int, broken: Redraw, runs: int) -> None:
    assert uniformity_p_value(calibration_ranks([learned], n, broken, runs, seed=1)) < REJECTED


# -- the scale against quadrature


@kernel
def fill_chain(tables: Array, sizes: IntArray, processes: Array, beliefs: Array, out: Array, handle: RngHandle) -> None:
    """Fill `out` with one draw of the scale after the other."""
    rng = rng_from(handle)
    for i in range(out.shape[0]):
        hyperparameters.redraw_scale(tables, sizes, processes, beliefs, rng)
        out[i] = processes[0, 1]


def scale_chain(arms: list[list[tuple[int, float]]], n: int) -> Array:
    """N draws of the scale given every component's count and D, its scale less that of the prior; a0 is 2."""
    tables, sizes = np.ones((len(arms), 16, 4)), np.zeros((len(arms), 4), np.int64)
    processes = np.tile([2.0, 1.0, 1.0, 0.0], (len(arms), 1))
    for a, parts in enumerate(arms):
        sizes[a, 0] = len(parts)
        for k, (count, gap) in enumerate(parts):
            tables[a, [COUNT, SCALE], k] = count, 1.0 + gap
    beliefs, out = np.array([1.0, 1.0, 1.0, 1.0, 1.5, 0.7]), np.empty(n)
    fill_chain(tables, sizes, processes, beliefs, out, rng_handle(np.random.default_rng(0)))
    for a, parts in enumerate(arms):  # the components moved with it
        assert np.allclose(tables[a, SCALE, : len(parts)] - processes[0, 1], [gap for _, gap in parts], rtol=1e-9)
    return out


@pytest.mark.parametrize(
    "arms", [[[(1, 0.3)]], [[(6, 2.0), (3, 0.4), (1, 5.0)]], [[(40, 30.0), (9, 0.2)], [], [(2, 1e-3), (5, 8.0)]]]
)
def test_the_scale_follows_its_posterior(arms: list[list[tuple[int, float]]]) -> None:
    draws = scale_chain(arms, 60_000)
    b = np.exp(np.linspace(-25, 8, 20_001))
    logs = 1.5 * np.log(b) - 0.7 * b  # with the Jacobian of log b
    for count, gap in [part for parts in arms for part in parts]:
        logs = logs + 2.0 * np.log(b) - (2.0 + count / 2) * np.log(b + gap)
    w = np.exp(logs - logs.max())
    w /= w.sum()
    assert draws.mean() == pytest.approx(w @ b, rel=0.02)
    assert draws.std() == pytest.approx(np.sqrt(w @ b**2 - (w @ b) ** 2), rel=0.02)
    assert np.log(draws).mean() == pytest.approx(w @ np.log(b), abs=0.02)


@pytest.mark.parametrize("options", [{}, {"memory": 20}, {"half_life": 30.0}, {"learn_discount": (1.0, 9.0)}])
def test_books_balance_under_a_learned_scale(options: dict[str, Any]) -> None:
    engine = GibbsEngine([model_of(0.8, 0.1, 1.0)] * 2, learn_scale=(2.0, 1.0), **options)
    state, rng = engine.init(), np.random.default_rng(3)
    for t in range(300):
        x = np.array([1.0, rng.normal()])
        state = engine.update(state, x, t % 2, rng.choice([-2.0, 2.0]) * x[1] + 0.3 * rng.normal(), rng)
    assert state.laws[0, 1] == state.laws[1, 1] != 1.0
    for arm, column in enumerate(engine._columns(state)):
        K, n = state.sizes[arm, :2]
        fresh, data = state.tables[arm].copy(), state.data[arm]
        for k in range(K):
            label = int(state.labels[arm, 0, k])
            sqrt_information = state.roots[arm, label if state.roots.shape[1] > 1 else 0]
            component.rebuild(fresh, k, column, sqrt_information, data, state.seats[arm][:n], label, -1)
            component.cache_constants(fresh, k, state.laws[arm, 0], state.laws[arm, 3])
        used = [row for row in range(len(fresh)) if row != component.MOVES]
        assert np.allclose(state.tables[arm][used, :K], fresh[used, :K], rtol=1e-8, atol=1e-9)
        rated = [component.prior_log_predictive(column, state.laws[arm, 0], data, i) for i in range(n)]
        assert np.allclose(data[:n, -1], rated, rtol=1e-12)
