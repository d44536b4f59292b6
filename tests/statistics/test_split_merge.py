"""Split-merge and Gibbs moves leave the exact posterior over partitions invariant, alone and together."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from polyarm.inference import Budget, GibbsEngine, Sweeps
from polyarm.inference.gibbs import GibbsState
from polyarm.kernels._jit import plain
from polyarm.kernels.mixture import split_merge as kernels
from polyarm.types import Array, Rng
from tests.reference import canonical
from tests.statistics.exact import Partition, excess_tv, posterior, small_problem

Step = Callable[[GibbsEngine, GibbsState, Rng], GibbsState]


def gibbs(engine: GibbsEngine, state: GibbsState, rng: Rng) -> GibbsState:
    return engine.sweep(state, 0, rng)


def proposals(engine: GibbsEngine, state: GibbsState, rng: Rng) -> GibbsState:
    return engine.split_merge(state, 0, 30, rng)


def both(engine: GibbsEngine, state: GibbsState, rng: Rng) -> GibbsState:
    return engine.split_merge(engine.sweep(state, 0, rng), 0, 1, rng)


def fed(engine: GibbsEngine, x: Array, y: Array, rng: Rng) -> GibbsState:
    state = engine.init()
    for xi, yi in zip(x, y, strict=True):
        state = engine.update(state, xi, 0, yi, rng)
    return state


def visits(engine: GibbsEngine, x: Array, y: Array, step: Step, n: int, seed: int) -> Counter[Partition]:
    rng = np.random.default_rng(seed)
    state = fed(engine, x, y, rng)
    seen: Counter[Partition] = Counter()
    for _ in range(n):
        state = step(engine, state, rng)
        seen[canonical(engine.assignments(state, 0))] += 1
    return seen


@pytest.mark.parametrize("discount", [0.0, 0.3])
@pytest.mark.parametrize("step", [gibbs, proposals, both])
def test_moves_visit_partitions_as_often_as_they_are_probable(step: Step, discount: float) -> None:
    x, y, model = small_problem(6, seed=1, discount=discount)
    seen = visits(GibbsEngine([model], Sweeps(1)), x, y, step, 20_000, seed=3)
    assert excess_tv(posterior(x, y, model), seen) < 1.35


def test_statistics_stay_true_to_the_labels() -> None:
    x, y, model = small_problem(40, seed=2)
    engine, rng = GibbsEngine([model], Budget(16)), np.random.default_rng(4)
    state = engine.split_merge(fed(engine, x, y, rng), 0, 2_000, rng)
    labels = engine.assignments(state, 0)
    for k in range(int(engine.n_components(state)[0])):
        own = labels == k
        precision = np.linalg.inv(model.base.covariance_matrix)
        total = precision + x[own].T @ x[own]
        mean = np.linalg.solve(total, precision @ model.base.mean_vector + x[own].T @ y[own])
        assert state.tables[0, 0, k] == own.sum()
        assert np.allclose(state.tables[0, 6:8, k], mean, rtol=1e-8)


def test_a_forgotten_proposal_probability_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, model = small_problem(6, seed=1)
    engine, rng = GibbsEngine([model], Sweeps(1)), np.random.default_rng(3)
    slow = plain(kernels.split_merge)
    propose = slow.__globals__["propose"]
    right = propose.__globals__["log_ratio"]
    excess = []
    for log_ratio in (right, lambda H, K, prior, process, log_q: right(H, K, prior, process, 0.0)):
        monkeypatch.setitem(propose.__globals__, "log_ratio", log_ratio)
        state = fed(engine, x, y, rng)
        seen: Counter[Partition] = Counter()
        for _ in range(500):
            slow(engine._books(state, 0), 0, 8, rng)
            seen[canonical(engine.assignments(state, 0))] += 1
        excess.append(excess_tv(posterior(x, y, model), seen))
    assert excess[0] < 1.6
    assert excess[1] > 2.0


def test_budget_stream_reaches_the_posterior() -> None:
    x, y, model = small_problem(7, seed=3, slope=4.0)
    engine, rng = GibbsEngine([model], Budget(300, split_merge=1)), np.random.default_rng(6)
    seen = Counter(canonical(engine.assignments(fed(engine, x, y, rng), 0)) for _ in range(6_000))
    assert excess_tv(posterior(x, y, model), seen) < 1.5


def test_seating_without_moves_does_not() -> None:
    x, y, model = small_problem(7, seed=3, slope=4.0)
    engine, rng = GibbsEngine([model], Budget(0)), np.random.default_rng(6)
    seen = Counter(canonical(engine.assignments(fed(engine, x, y, rng), 0)) for _ in range(2_000))
    assert excess_tv(posterior(x, y, model), seen) > 3
