"""What every engine promises, whatever its method: a new one adds one line to ENGINES."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyarm.errors import PolyarmError
from polyarm.inference import (
    Budget,
    GibbsEngine,
    HierarchicalEngine,
    ParticleEngine,
    Sweeps,
    VariationalEngine,
    load_state,
    save_state,
)
from polyarm.inference.state_file import leaves
from polyarm.models import HierarchicalMixture, LinearMixture, NormalInverseGamma
from polyarm.types import AnyEngine, Array


def base(dim: int) -> NormalInverseGamma:
    return NormalInverseGamma(dim, 0.0, 1.0, 2.0, 0.5)


def mixtures(n_arms: int, dim: int, discount: float = 0.1) -> list[LinearMixture]:
    return [LinearMixture(base(dim), 0.5, discount)] * n_arms


ENGINES: dict[str, Callable[[int, int], AnyEngine]] = {
    "budget": lambda n, d: GibbsEngine(mixtures(n, d), Budget(8)),
    "sweeps": lambda n, d: GibbsEngine(mixtures(n, d), Sweeps(1)),
    "split-merge": lambda n, d: GibbsEngine(mixtures(n, d), Budget(8, split_merge=2)),
    "learned": lambda n, d: GibbsEngine(mixtures(n, d), learn_concentration=(1, 1), learn_discount=(1, 2)),
    "memory": lambda n, d: GibbsEngine(mixtures(n, d), Budget(8), memory=10),
    "fading": lambda n, d: GibbsEngine(mixtures(n, d), Budget(8), half_life=15.0),
    "hierarchical": lambda n, d: HierarchicalEngine(HierarchicalMixture(base(d), 0.5, 0.1, 1.0, 0.1), n, 8),
    "variational": lambda n, d: VariationalEngine(mixtures(n, d)),
    "particles": lambda n, d: ParticleEngine(mixtures(n, d), 20),
}
each_engine = pytest.mark.parametrize("name", ENGINES)


def fed(engine: AnyEngine, n: int, seed: int = 0, state: Any = None) -> Any:
    """State after n rewards of two crossing lines."""
    rng = np.random.default_rng(seed)
    state = engine.init() if state is None else state
    for t in range(n):
        x = rng.normal(size=engine.context_dim)
        y = x[0] * rng.choice([-1.0, 1.0]) + 0.3 * rng.normal()
        state = engine.update(state, x, t % engine.n_arms, y, rng)
    return state


def snapshot(state: Any) -> dict[str, Array]:
    return {path: np.array(value) for path, value in leaves(state)}


@each_engine
@pytest.mark.parametrize("n_arms", [1, 3])
@pytest.mark.parametrize("dim", [1, 2, 64])
def test_draws_and_expectations_have_their_shapes(name: str, n_arms: int, dim: int) -> None:
    engine = ENGINES[name](n_arms, dim)
    for n in (0, 30):
        state = fed(engine, n)
        x = np.ones(dim) / np.sqrt(dim)
        draws = engine.draw_means(state, x, 5, np.random.default_rng(0))
        assert draws.shape == (5, n_arms)
        assert np.isfinite(draws).all()
        assert engine.expected_means(state, x).shape == (n_arms,)
        counts = engine.n_components(state)  # type: ignore[attr-defined]
        assert counts.shape == (n_arms,)
        assert (counts >= (1 if n else 0)).all()


@each_engine
def test_expectation_is_the_mean_of_the_draws(name: str) -> None:
    engine = ENGINES[name](2, 2)
    state = fed(engine, 40)
    x = np.array([1.0, 0.5])
    draws = engine.draw_means(state, x, 10_000, np.random.default_rng(1))
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - engine.expected_means(state, x)) < 4.5 * error).all()


@each_engine
def test_one_seed_one_future(name: str) -> None:
    a, b = (snapshot(fed(ENGINES[name](2, 2), 40)) for _ in range(2))
    assert all(np.array_equal(a[path], b[path]) for path in a)


@each_engine
def test_a_saved_state_goes_on_bit_for_bit(name: str, tmp_path: Path) -> None:
    engine = ENGINES[name](2, 2)
    state = fed(engine, 35)
    file = save_state(tmp_path / "state", state)
    loaded = load_state(file, engine.init())
    a, b = snapshot(fed(engine, 30, 1, state)), snapshot(fed(engine, 30, 1, loaded))
    assert all(np.array_equal(a[path], b[path]) for path in a)


@each_engine
@pytest.mark.parametrize(
    ("context", "arm", "reward"),
    [([1.0, np.nan], 0, 1.0), ([1.0], 0, 1.0), ([1.0, 1.0], 2, 1.0), ([1.0, 1.0], 0, np.inf), ([1.0, 1.0], 0, "no")],
)
def test_bad_input_raises_and_changes_nothing(name: str, context: Any, arm: int, reward: Any) -> None:
    engine = ENGINES[name](2, 2)
    state = fed(engine, 20)
    before = snapshot(state)
    with pytest.raises(PolyarmError):
        engine.update(state, context, arm, reward, np.random.default_rng(0))
    after = snapshot(state)
    assert all(np.array_equal(before[path], after[path]) for path in before)


@each_engine
def test_hard_data_stays_finite(name: str) -> None:
    engine = ENGINES[name](1, 2)
    state, rng = engine.init(), np.random.default_rng(2)
    rewards = [0.0] * 20 + [1e12, -1e12] + [1.0] * 20 + list(rng.normal(size=20))
    for t, y in enumerate(rewards):
        state = engine.update(state, np.zeros(2) if t % 7 == 0 else np.array([1.0, 0.0]), 0, y, rng)
    assert np.isfinite(engine.draw_means(state, np.ones(2), 100, rng)).all()
