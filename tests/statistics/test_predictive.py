"""Predictive densities of every engine against enumeration, joint probabilities and draws of the density."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from polyarm.errors import PolyarmError
from polyarm.inference import HierarchicalEngine, ParticleEngine, VariationalEngine
from polyarm.inference.franchise import FranchiseState
from polyarm.kernels.mixture.variational import EMPTY
from polyarm.models import HierarchicalMixture, LinearMixture, NormalInverseGamma
from polyarm.types import AnyEngine, Array
from tests.contracts.engines import ENGINES, ROBUST
from tests.contracts.states import fed, rewards
from tests.reference import log_eppf
from tests.statistics.exact import log_evidence, log_joints, small_problem

POINT = np.array([1.0, 0.7])
GRID = np.linspace(-4.0, 4.0, 9)
CLOSE = ROBUST  # their unseen component is only nearly a Student-t
OFFERED = [name for name, build in ENGINES.items() if hasattr(build(1, 1), "predictive") and name not in CLOSE]


def learnt(engine: AnyEngine, n: int) -> Any:
    return fed(engine, rewards(n, engine.context_dim, engine.n_arms, 0), np.random.default_rng(0))


def test_every_mixture_offers_its_density() -> None:
    assert {"particles", "variational", "hierarchical", "pitman-yor", "learned scale"} <= set(OFFERED)


@pytest.mark.parametrize("n", [0, 40])
@pytest.mark.parametrize("name", OFFERED)
def test_the_predictive_density_is_the_mean_of_its_draws(name: str, n: int) -> None:
    engine: Any = ENGINES[name](3, 2)
    state = learnt(engine, n)
    for arm in range(2):
        predictive = engine.predictive(state, POINT, arm)
        assert predictive.weights.sum() == pytest.approx(1, rel=1e-12)
        assert (predictive.weights >= 0).all()
        y = np.sinh(np.linspace(-14, 14, 20_001))
        assert np.trapezoid(predictive.pdf(y), y) == pytest.approx(1, abs=1e-4)
        assert predictive.mean() == pytest.approx(engine.expected_means(state, POINT)[arm], rel=1e-9, abs=1e-12)
        draws = engine.draw_densities(state, POINT, arm, GRID, 8_000, np.random.default_rng(1))
        error = draws.std(axis=0) / np.sqrt(len(draws))
        assert (np.abs(draws.mean(axis=0) - predictive.pdf(GRID)) < 4.5 * error + 1e-12).all()


@pytest.mark.parametrize("name", ["particles", "variational", "hierarchical"])
def test_bad_questions(name: str) -> None:
    engine: Any = ENGINES[name](3, 2)
    state, rng = learnt(engine, 5), np.random.default_rng(0)
    for arm, context, n_draws in ((3, POINT, 1), (0, POINT[:1], 1), (0, POINT, 0)):
        with pytest.raises(PolyarmError):
            engine.draw_densities(state, context, arm, GRID, n_draws, rng)
    for arm, context in ((3, POINT), (0, POINT[:1])):
        with pytest.raises(PolyarmError):
            engine.predictive(state, context, arm)


def density_by_enumeration(x: Array, y: Array, model: LinearMixture, at: Array, grid: Array) -> Array:
    """Marginal density of all rewards and one more, over that of all rewards: sums over every partition."""
    before = logsumexp(list(log_joints(x, y, model).values()))
    after = [logsumexp(list(log_joints(np.vstack([x, at]), np.append(y, g), model).values())) for g in grid]
    return np.asarray(np.exp(np.array(after) - before))


@pytest.mark.parametrize("discount", [0.0, 0.3])
def test_particles_are_exact_when_every_seating_fits(discount: float) -> None:
    x, y, model = small_problem(5, discount=discount)
    exact = density_by_enumeration(x, y, model, POINT, GRID)
    state: Any = None
    for n_particles, close in ((52, True), (4, False)):  # too few particles: the test can tell
        engine, rng = ParticleEngine([model], n_particles), np.random.default_rng(0)
        state = fed(engine, [(xi, 0, yi) for xi, yi in zip(x, y, strict=True)], rng)
        error = np.abs(engine.predictive(state, POINT, 0).pdf(GRID) - exact).max()
        assert (error < 1e-10) == close


def test_variational_density_is_that_of_the_responsibilities() -> None:
    engine = VariationalEngine([small_problem(2)[2]])
    x, y, model = small_problem(60)
    state = fed(engine, [(xi, 0, yi) for xi, yi in zip(x, y, strict=True)], np.random.default_rng(0))
    r = state.seatings[0].responsibilities[:60]
    r = r[:, r.sum(axis=0) - model.discount > EMPTY]
    base, K = model.base, r.shape[1]
    total, masses = np.zeros_like(GRID), 0.0
    for w in [*r.T, np.zeros(60)]:
        information = np.linalg.inv(base.covariance_matrix) + (x * w[:, None]).T @ x
        mean = np.linalg.solve(information, np.linalg.solve(base.covariance_matrix, base.mean_vector) + x.T @ (w * y))
        shift = mean - base.mean_vector
        b = base.scale + 0.5 * (w @ (y - x @ mean) ** 2 + shift @ np.linalg.solve(base.covariance_matrix, shift))
        a = base.shape + w.sum() / 2
        spread = np.sqrt(b / a * (1 + POINT @ np.linalg.solve(information, POINT)))
        mass = w.sum() - model.discount if w.any() else model.concentration + K * model.discount
        total += mass * stats.t.pdf(GRID, 2 * a, POINT @ mean, spread)
        masses += mass
    assert engine.predictive(state, POINT, 0).pdf(GRID) == pytest.approx(total / masses, rel=1e-8)


# -- the franchise, given a seating


def hierarchy(shape: float = 2.0) -> HierarchicalEngine:
    base = NormalInverseGamma(2, [0.2, -0.1], [[2.0, 0.9], [0.9, 1.0]], shape, 0.5)
    return HierarchicalEngine(HierarchicalMixture(base, 0.7, 0.5, 1.2, 0.3), 2)


def log_seating(engine: HierarchicalEngine, state: FranchiseState, more: tuple[int, int, int, float] | None) -> float:
    """Log joint density of all rewards with their tables and dishes, and of one more (arm, table, dish, reward)."""
    model = engine.model
    arm, table, dish = engine.seating(state)
    data = state.data[: len(arm)]
    x, y = data[:, :2], data[:, 2]
    if more is not None:
        arm, table, dish = np.append(arm, more[0]), np.append(table, more[1]), np.append(dish, more[2])
        x, y = np.vstack([x, POINT]), np.append(y, more[3])
    total, orders = 0.0, []
    for a in range(engine.n_arms):
        seats, counts = np.unique(table[arm == a], return_counts=True)
        total += log_eppf([int(c) for c in counts], model.concentration, model.discount)
        orders += [dish[(arm == a) & (table == t)][0] for t in seats]
    menu = np.unique(orders, return_counts=True)[1]
    total += log_eppf([int(c) for c in menu], model.shared_concentration, model.shared_discount)
    return total + sum(log_evidence(x[dish == k], y[dish == k], model.base) for k in np.unique(dish))


def density_by_seats(engine: HierarchicalEngine, state: FranchiseState, arm: int, y: float) -> float:
    """Density of one more reward of an arm: a sum over every table and dish it may have."""
    arms, table, dish = engine.seating(state)
    seats = {int(t): int(k) for a, t, k in zip(arms, table, dish, strict=True) if a == arm}
    choices = [*seats.items(), *[(99, int(k)) for k in np.unique(dish)], (99, 99)]
    after = [log_seating(engine, state, (arm, t, k, y)) for t, k in choices]
    return float(np.exp(logsumexp(after) - log_seating(engine, state, None)))


def test_hierarchical_density_is_a_ratio_of_joint_probabilities() -> None:
    engine = hierarchy()
    state = learnt(engine, 12)
    for arm in range(2):
        slow = [density_by_seats(engine, state, arm, y) for y in GRID]
        assert engine.predictive(state, POINT, arm).pdf(GRID) == pytest.approx(slow, rel=1e-10)
    planted = state._replace(menu=0 * state.menu + 1)  # tables forgotten
    engine._door.last = planted  # which the door would refuse
    alone = engine.predictive(planted, POINT, 0).pdf(GRID)
    assert np.abs(alone / [density_by_seats(engine, state, 0, y) for y in GRID] - 1).max() > 1e-3


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda: hierarchy(20.0), id="hierarchical"),
        pytest.param(lambda: ParticleEngine([LinearMixture(hierarchy(20.0).model.base, 1.0, 0.3)], 50), id="particles"),
        pytest.param(lambda: VariationalEngine([LinearMixture(hierarchy(20.0).model.base, 1.0, 0.3)]), id="soft"),
    ],
)
def test_means_of_drawn_densities_are_drawn_means(build: Callable[[], Any]) -> None:
    engine = build()
    state = learnt(engine, 12)
    grid = np.linspace(-30, 30, 1001)
    densities = engine.draw_densities(state, POINT, 0, grid, 1500, np.random.default_rng(3))
    draws = engine.draw_means(state, POINT, 1500, np.random.default_rng(4))[:, 0]
    assert stats.ks_2samp(densities @ grid * 0.06, draws).pvalue > 1e-4
    narrow = 0.7 * (draws - draws.mean()) + draws.mean()  # planted: a spread too small
    assert stats.ks_2samp(densities @ grid * 0.06, narrow).pvalue < 1e-4
