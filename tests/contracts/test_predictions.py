"""What engines say of the next reward agrees with what they say of its mean, and is a distribution."""

from typing import Any

import numpy as np
import pytest

from tests.contracts.engines import ENGINES
from tests.contracts.states import fed, rewards

X = np.array([0.8, -0.4])
GRID = np.linspace(-25.0, 25.0, 501)
NAMES = [name for name, build in ENGINES.items() if hasattr(build(2, 2), "predictive")]


def learnt(name: str, clicks: bool = False) -> tuple[Any, Any]:
    engine: Any = ENGINES[name](2, 2)
    data = rewards(14, 2, 2, seed=0)
    if clicks:
        data = [(x, arm, float(y > 0) if t % 4 else y) for t, (x, arm, y) in enumerate(data)]
    with np.errstate(over="ignore"):
        return engine, fed(engine, data, np.random.default_rng(0))


@pytest.mark.parametrize("name", NAMES)
def test_the_predictive_has_the_expected_mean(name: str) -> None:
    engine, state = learnt(name)
    for arm, expected in enumerate(engine.expected_means(state, X)):
        found = engine.predictive(state, X, arm)
        assert found.mean() == pytest.approx(expected, rel=1e-6, abs=1e-9)
        assert found.cdf(-1e9) == pytest.approx(0.0, abs=1e-6)
        assert found.cdf(1e9) == pytest.approx(1.0, abs=1e-6)


NOT_ON_GRID = ("counts", "windfalls", "profits")  # the engines whose rewards have no density there, or hardly any
CONTINUOUS = [
    name
    for name in NAMES
    if hasattr(ENGINES[name](2, 2), "draw_densities") and not any(kind in name for kind in NOT_ON_GRID)
]


@pytest.mark.parametrize("name", CONTINUOUS)
def test_drawn_densities_are_densities_around_the_predictive(name: str) -> None:
    engine, state = learnt(name)
    draws = engine.draw_densities(state, X, 1, GRID, 12, np.random.default_rng(1))
    assert draws.shape == (12, len(GRID))
    assert (draws >= 0).all()
    whole = np.trapezoid(draws, GRID, axis=1)
    assert (whole < 1.01).all()
    assert np.median(whole) > 0.97
    assert (np.ptp(draws, axis=0) > 0).any()
    near = np.abs(np.trapezoid(draws.mean(axis=0) - engine.predictive(state, X, 1).pdf(GRID), GRID))
    assert near < 0.1


@pytest.mark.parametrize("name", ["robust, kinds", "robust, kinds, fading"])
def test_the_predictive_of_kinds_has_their_shares(name: str) -> None:
    engine, state = learnt(name, clicks=True)
    assert len(state.values) > 0
    for arm, expected in enumerate(engine.expected_means(state, X)):
        found = engine.predictive(state, X, arm)
        assert found.mean() == pytest.approx(expected, rel=1e-6)
        draws = engine.draw_shares(state, X, arm, 2000, np.random.default_rng(2))
        for share, value in zip(draws.mean(axis=0), state.values, strict=False):
            assert found.probability(value) == pytest.approx(share, abs=0.02)
