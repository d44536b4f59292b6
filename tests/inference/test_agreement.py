"""One state, many questions: what engines say of means, spreads, draws and distributions is one story."""

from typing import Any

import numpy as np
import pytest

from polyarm.inference import ConjugateEngine, FeatureEngine, GibbsEngine, KindsEngine, RobustEngine
from polyarm.inference.kinds_found import CONSTANT, MIXTURE, UNKNOWN
from polyarm.models import LinearGaussian, LinearMixture, NormalInverseGamma, RobustMixture
from polyarm.models.objectives import ExpectedShortfall, ProbabilityAbove, Quantile
from polyarm.models.student import StudentMixture
from tests.contracts.engines import ENGINES
from tests.contracts.states import bits, fed, rewards
from tests.contracts.test_doors import asked, questions

X = np.array([0.8, -0.4])
CONTEXTS = np.array([[0.8, -0.4], [0.0, 1.0], [-1.5, 0.3]])


def inner_engine(dim: int, sampled: bool) -> Any:
    base = NormalInverseGamma(dim, 0.0, 1.0, 2.0, 0.5)
    return GibbsEngine([LinearMixture(base)] * 3) if sampled else ConjugateEngine([LinearGaussian(base)] * 3)


@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("kind", ["intercept", "constant"])
def test_features_are_all_that_the_inner_engine_sees(kind: Any, sampled: bool) -> None:
    inner, seen = inner_engine(3 if kind == "intercept" else 1, sampled), (lambda x: np.append(x, 1.0))
    seen = seen if kind == "intercept" else (lambda x: np.ones(1))
    engine: Any = FeatureEngine(inner, kind, 2)
    assert (engine.n_arms, engine.context_dim) == (3, 2)
    np.testing.assert_array_equal(engine.features(X), seen(X))
    data = rewards(20, 2, 3, seed=0)
    state = fed(engine, data, np.random.default_rng(0))
    assert bits(state) == bits(fed(inner, [(seen(x), arm, y) for x, arm, y in data], np.random.default_rng(0)))
    shared = [name for name in questions(engine) if hasattr(inner, name)]
    assert len(shared) > 5
    for name in set(shared) - {"update", "with_arm"}:
        given: dict[str, Any] = {"context": seen(X), "contexts": np.stack([seen(X), seen(-X)])}
        found, wanted = asked(engine, name, state), asked(inner, name, state, **given)
        if isinstance(found, StudentMixture):
            found, wanted = found.pdf(np.arange(3.0)), wanted.pdf(np.arange(3.0))
        np.testing.assert_array_equal(found, wanted, name)
    wider, after = engine.with_arm(state)
    assert (wider.n_arms, wider.kind, wider.context_dim) == (4, kind, 2)
    assert bits(after) == bits(inner.with_arm(state)[1])


MEASURED = [
    name for name, build in ENGINES.items() if hasattr(build(3, 2), "moments_many") and name != "with intercept"
]


@pytest.mark.parametrize("name", MEASURED)
def test_many_contexts_are_many_single_ones(name: str) -> None:
    engine: Any = ENGINES[name](3, 2)
    state = fed(engine, rewards(40, 2, 3, seed=0), np.random.default_rng(0))
    many = engine.moments_many(state, CONTEXTS)
    assert many.shape == (3, 2, 3)
    for x, found in zip(CONTEXTS, many, strict=True):
        np.testing.assert_array_equal(found, engine.moments(state, x))
        np.testing.assert_array_equal(found[0], engine.expected_means(state, x))
    assert (many[:, 1] > 0).all()


@pytest.mark.parametrize("wild_share", [0.0, 0.2])
def test_intervals_points_and_means_are_as_the_predictive_and_the_moments_say(wild_share: float) -> None:
    engine = RobustEngine(RobustMixture(3, 2, wild_share=wild_share), 8, 4)
    data = [(x, arm, 7.0 + 3.0 * y) for x, arm, y in rewards(60, 2, 3, seed=1) if arm < 2]
    state = fed(engine, data, np.random.default_rng(0))
    assert engine.n_components(state)[0] > 1
    for arm in range(3):
        law = engine.predictive(state, X, arm)
        for low, high in ((-np.inf, 7.0), (5.0, 6.0), (6.9, 30.0), (-50.0, 2.0)):
            wanted = float(law.cdf(high) - (law.cdf(low) if np.isfinite(low) else 0.0))
            assert engine.probability_between(state, X, arm, low, high) == pytest.approx(wanted, rel=1e-6, abs=1e-9)
        for y in (-50.0, 2.0, 6.5, 7.0, 30.0, 1e9):
            mean, density = engine.forecast(state, X, arm, y)
            assert density == pytest.approx(float(law.pdf(y)), rel=1e-9)
            assert mean == engine.moments(state, X)[0, arm]


def of_rest(rest: int) -> tuple[KindsEngine, Any]:
    """An engine whose rewards are a value and: a mixture, nothing yet, another value."""
    engine, rng = KindsEngine(RobustEngine(RobustMixture(2, 2), 8, 4)), np.random.default_rng(0)
    state = engine.init()
    for t, (x, arm, y) in enumerate(rewards(50, 2, 2, seed=0)):
        other = {MIXTURE: 3.0 + y, UNKNOWN: 4.0, CONSTANT: 1.5}[rest]
        state = engine.update(state, x, arm, other if t % 3 == 0 else 4.0, rng)
    assert state.rest_is == rest
    assert state.values.tolist() == [4.0]
    return engine, state


@pytest.mark.parametrize("rest", [MIXTURE, UNKNOWN, CONSTANT])
def test_kinds_and_the_rest_are_one_distribution(rest: int) -> None:
    """A draw of a mean is the shares' values and the rest's mean, each with its share, whatever the rest is."""
    engine, state = of_rest(rest)
    many = engine.moments_many(state, CONTEXTS)
    for x, found in zip(CONTEXTS, many, strict=True):
        np.testing.assert_allclose(found, engine.moments(state, x), rtol=1e-12)
    mean, sd = engine.moments(state, X)
    draws = engine.draw_means(state, X, 20_000, np.random.default_rng(1))
    assert draws.mean(axis=0) == pytest.approx(mean, abs=5 * float(draws.std(axis=0).max()) / np.sqrt(20_000) + 0.01)
    assert draws.std(axis=0) == pytest.approx(sd, rel=0.1)
    for arm in range(2):
        shares = engine.draw_shares(state, X, arm, 4000, np.random.default_rng(2))
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        if rest != UNKNOWN:
            law: Any = engine.predictive(state, X, arm)
            assert law.mean() == pytest.approx(mean[arm], rel=1e-6)
            assert law.probability(4.0) == pytest.approx(shares[:, 0].mean(), abs=0.02)
        density = engine.draw_densities(state, X, arm, np.linspace(-40, 40, 801), 200, np.random.default_rng(3))
        area = np.trapezoid(density, np.linspace(-40, 40, 801), axis=1)
        assert area.mean() == pytest.approx(0.0 if rest == CONSTANT else shares[:, 1].mean(), abs=0.03)


@pytest.mark.parametrize("objective", [Quantile(0.3), ExpectedShortfall(0.5), ProbabilityAbove(2.0)])
def test_what_two_values_are_worth_follows_from_their_shares(objective: Any) -> None:
    engine, state = of_rest(CONSTANT)
    found = engine.draw_objectives(state, X, objective, 50, np.random.default_rng(4))
    rng = np.random.default_rng(4)
    for arm in range(2):
        high = engine.draw_shares(state, X, arm, 50, rng)[:, 0]  # of 4, the rest is 1.5
        if isinstance(objective, Quantile):
            wanted = np.where(1 - high >= 0.3, 1.5, 4.0)
        elif isinstance(objective, ProbabilityAbove):
            wanted = high
        else:
            low = np.minimum(1 - high, 0.5)
            wanted = (1.5 * low + 4.0 * (0.5 - low)) / 0.5
        np.testing.assert_allclose(found[:, arm], wanted, rtol=1e-9)


def test_a_rest_that_nobody_has_seen_is_as_wide_as_the_value_is_large() -> None:
    engine, state = of_rest(UNKNOWN)
    assert engine._simple_rest(state) == (4.0, 4.0)
    assert engine._simple_rest(state._replace(values=np.array([-0.2]))) == (-0.2, 1.0)
    assert engine._simple_rest(of_rest(CONSTANT)[1]) == (1.5, 0.0)
