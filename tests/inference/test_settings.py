"""Settings, schedules and shares that steer the engines, each by its definition."""

from typing import Any

import numpy as np
import pytest

from polyarm.errors import InvalidArgument
from polyarm.inference import Budget, FeatureEngine, GibbsEngine, KindsEngine, RobustEngine
from polyarm.inference.conjugate import ConjugateEngine
from polyarm.inference.generalized import GeneralizedEngine
from polyarm.inference.gibbs import RATED_PER_STEP, REDRAW_EVERY
from polyarm.inference.kinds import LOOKS
from polyarm.inference.kinds_found import CONSTANT, MIXTURE, UNKNOWN
from polyarm.inference.predictive import process_mixture
from polyarm.inference.robust import hyperprior_of
from polyarm.inference.robust_checks import mended
from polyarm.kernels._jit import plain
from polyarm.kernels.mixture.component import COUNT, SCALE, n_rows
from polyarm.kernels.mixture.records import ROWS
from polyarm.kernels.robust import records
from polyarm.kernels.robust.component import VAR
from polyarm.models import LinearGaussian, LinearMixture, NormalInverseGamma, RobustMixture
from tests.contracts.states import fed, rewards


def test_a_young_arm_moves_more_but_each_reward_at_most_ten_times() -> None:
    budget = Budget(64, warmup_rewards=320)
    assert [budget.moves_at(n) for n in (1, 10, 40, 100, 319, 320, 10**6)] == [64, 100, 400, 655, 64, 64, 64]
    assert Budget(64, warmup_rewards=0).moves_at(5) == 64


@pytest.mark.parametrize(("n_arms", "dim"), [(0, 2), (2, 0), (2, 1.5)])
def test_impossible_sizes_of_generalised_lines_are_named(n_arms: Any, dim: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"(n_arms|context_dim) must be an integer of at least 1"):
        GeneralizedEngine(n_arms, dim, "poisson")


def test_moments_in_many_contexts_are_those_in_each() -> None:
    lines = [LinearGaussian(NormalInverseGamma(3, 0.0, 1.0, 2.0, 0.5))] * 2
    engine: Any = FeatureEngine(ConjugateEngine(lines), "intercept", 2)
    state = fed(engine, rewards(20, 2, 2, seed=0), np.random.default_rng(0))
    X = np.random.default_rng(1).standard_normal((4, 2))
    many = engine.moments_many(state, X)
    assert many.shape == (4, 2, 2)
    for x, found in zip(X, many, strict=True):
        np.testing.assert_array_equal(found, engine.engine.moments(state, np.append(x, 1.0)))


@pytest.mark.parametrize(("n", "interval"), [(100, 20), (20 * 64, 20), (20 * 64 + 1, 40), (5000, 80), (12_000, 320)])
def test_a_learnt_scale_is_drawn_so_rarely_that_few_rewards_are_rated_per_step(n: int, interval: int) -> None:
    """A new scale rates the rewards of all arms: the interval doubles until it does so 64 times per step."""
    engine = GibbsEngine([LinearMixture(NormalInverseGamma(2))] * 3, learn_scale=(2.0, 2.0))
    state, drawn = engine.init(), []
    state.sizes[:, ROWS] = n // 2, n - n // 2, 0
    object.__setattr__(engine, "redraw_hyperparameters", lambda state, rng: drawn.append(1))
    steps = [step for step in range(REDRAW_EVERY, 1300) if tried(engine, state, step, drawn)]
    assert steps[0] == interval
    assert set(np.diff(steps)) == {interval}
    assert RATED_PER_STEP == 64


def tried(engine: GibbsEngine, state: Any, step: int, drawn: list[int]) -> bool:
    drawn.clear()
    engine._after_step(state, step, np.random.default_rng(0))
    return bool(drawn)


def test_the_reservoir_of_a_fading_engine_spans_two_half_lives() -> None:
    model = RobustMixture(2, 2)
    assert [plain(records.hyperprior_of)(hyperprior_of(model, False, h)).window for h in (15.2, None)] == [30, 0]


def test_a_mended_state_starts_from_the_prior_in_the_unit_of_the_rewards() -> None:
    engine = RobustEngine(RobustMixture(2, 2), 4, 2)
    data = [(x, arm, 30.0 + 5.0 * y) for x, arm, y in rewards(30, 2, 2, seed=0)]
    state, fresh = fed(engine, data, np.random.default_rng(0)), engine.init()
    kept = state.shared.reward_square, state.shared.median, state.shared.origin
    state.shared.arm_var[0] = np.nan
    assert mended(state, fresh, engine._books(state))
    assert kept == (state.shared.reward_square, state.shared.median, state.shared.origin)
    np.testing.assert_allclose(state.shared.arm_var, fresh.shared.arm_var * kept[0])
    np.testing.assert_allclose(state.shared.noise_scale, fresh.shared.noise_scale * kept[0])
    np.testing.assert_array_equal(state.features.centre, [0.0, 0.0, kept[1]])
    for arm in range(2):
        np.testing.assert_array_equal(state.tables[arm, VAR, : state.sizes[arm, 0]], kept[0])
        np.testing.assert_array_equal(state.centres[arm, :, -1], state.features.centre)


def test_kinds_are_looked_for_at_powers_of_two_and_at_surprises() -> None:
    engine = KindsEngine(RobustEngine(RobustMixture(2, 2), 4, 2))
    state = engine.init()._replace(values=np.array([0.0]), constant=1.0)

    def looks(n: int, rest: int, y: float) -> bool:
        return engine._must_look(state._replace(rest_is=rest), n, y)

    power = 2 ** (int(np.log2(LOOKS)) + 3)
    assert [looks(n, MIXTURE, 5.0) for n in (LOOKS, LOOKS + 1, power - 1, power, power + 1)] == [
        True,
        (LOOKS + 1) & LOOKS == 0,
        False,
        True,
        False,
    ]
    n = power + 3
    assert [looks(n, UNKNOWN, y) for y in (0.0, 5.0)] == [False, True]
    assert [looks(n, CONSTANT, y) for y in (0.0, 1.0, 5.0)] == [False, False, True]


def test_a_process_has_its_masses_and_no_negative_one() -> None:
    """Masses n_k - d of components and c + K d of a new one; 1 for the first of all."""
    columns = np.zeros((n_rows(1), 2))
    columns[COUNT], columns[SCALE] = [3.0, 5.0], 1.0
    empty = np.zeros(n_rows(1))
    empty[SCALE] = 1.0
    x = np.ones(1)
    found = process_mixture(columns, empty, np.array([1.0, 1.0, 0.7, 0.2]), x)
    np.testing.assert_allclose(found.weights, np.array([2.8, 4.8, 1.1]) / 8.7)
    finite = process_mixture(columns, empty, np.array([1.0, 1.0, 1.0 - 1e-9, -0.5]), x)  # two components of two
    np.testing.assert_allclose(finite.weights, np.array([3.5, 5.5, 0.0]) / 9.0)
    assert (finite.weights >= 0).all()
    np.testing.assert_array_equal(
        process_mixture(columns[:, :0], empty, np.array([1.0, 1.0, 0.0, 0.2]), x).weights, [1]
    )
