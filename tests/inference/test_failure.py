"""Numbers that fail in an update are mended from the rewards, or the reward is refused and the state is as it was."""

from typing import Any

import numpy as np
import pytest

from polyarm.errors import InvalidArgument, NumericalFailure, PolyarmError
from polyarm.inference import (
    GibbsEngine,
    KindsEngine,
    RobustEngine,
    Sweeps,
    franchise,
    generalized,
    particles,
    robust,
    variational,
)
from polyarm.inference.door import NOTHING, require_sound
from polyarm.inference.generalized import GeneralizedEngine
from polyarm.inference.student import StudentEngine
from polyarm.kernels.mixture.component import COUNT as REWARDS
from polyarm.kernels.mixture.component import LOG_DET, MEAN, MOVES, SCALE
from polyarm.kernels.robust.component import COUNT, VAR, sxx_row, sxy_row, w_row
from polyarm.models import LinearMixture, NormalInverseGamma, RobustMixture
from polyarm.policies import make_policy
from tests.contracts.engines import ENGINES
from tests.contracts.states import bits, fed, rewards, suited

X = np.array([0.5, -0.5])
ROBUST = RobustEngine(RobustMixture(2, 2), 8, 4)
GIBBS = GibbsEngine([LinearMixture(NormalInverseGamma(2), 2.0)] * 2)


def after(engine: Any, n: int) -> Any:
    return fed(engine, rewards(n, 2, 2, seed=0), np.random.default_rng(0))


@pytest.mark.parametrize("kind", ["noise", "slopes", "scales", "centres", "all"])
@pytest.mark.parametrize("memory", [None, 15])
def test_a_robust_state_whose_numbers_failed_is_mended(kind: str, memory: int | None) -> None:
    engine = RobustEngine(RobustMixture(2, 2), 8, 4, memory=memory)
    state = after(engine, 60)
    if kind in ("noise", "all"):
        state.tables[0, VAR, 0] = np.nan
    if kind in ("slopes", "all"):
        state.tables[0, w_row(3), 0] = np.inf
    if kind in ("scales", "all"):
        state.shared.arm_var[0] = state.shared.noise_scale = np.nan
    if kind in ("centres", "all"):
        state.centres[1] = np.nan
    state = engine.update(state, X, 0, 1.0, np.random.default_rng(1))
    require_sound(state)
    assert state.tables[:, COUNT].sum() >= 61
    for arm in range(2):
        n, K = state.sizes[arm, 1], state.sizes[arm, 0]
        assert state.tables[arm, COUNT, :K].sum() >= n
        if memory is None:
            y = state.data[arm][:n, 3]
            assert state.tables[arm, COUNT, :K].sum() == n
            assert state.tables[arm, sxy_row(3) + 2, :K].sum() == pytest.approx(y.sum())
            assert state.tables[arm, sxx_row(3) + 5, :K].sum() == pytest.approx(n)
    for t in range(30):
        state = engine.update(state, X, t % 2, float(t % 3), np.random.default_rng(t))
    require_sound(state)


@pytest.mark.parametrize("rule", [GIBBS.rule, Sweeps(2)])
def test_components_that_failed_are_computed_afresh(rule: Any) -> None:
    engine = GibbsEngine(GIBBS.arms, rule, memory=20)
    state = after(engine, 70)
    state.tables[0, SCALE, 0] = np.nan
    state = engine.update(state, X, 0, 1.0, np.random.default_rng(1))
    require_sound(state)
    assert state.tables[0, 0, : state.sizes[0, 0]].sum() == state.sizes[0, 3]


def unmendable(*_: Any) -> bool:
    return False


def test_a_large_reward_that_cannot_be_learnt_leaves_the_state_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    state = after(ROBUST, 32)  # the rows are full: an update makes new ones
    before = bits(state)
    monkeypatch.setattr(robust, "mended", unmendable)
    monkeypatch.setattr(RobustEngine, "_move", lambda engine, state, *_: (state, False))
    with pytest.raises(NumericalFailure, match="reward must be one whose sums are finite, got 1e"):
        ROBUST.update(state, X, 0, 1e50, np.random.default_rng(0))
    assert bits(state) == before
    monkeypatch.undo()
    require_sound(ROBUST.update(state, X, 0, 1.0, np.random.default_rng(0)))


def test_a_large_reward_that_no_component_takes_leaves_the_state_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    state = after(GIBBS, 32)
    before = bits(state)
    monkeypatch.setattr(GibbsEngine, "_mend", unmendable)
    monkeypatch.setattr(GibbsEngine, "_learn", lambda engine, state, *_: (state, False))
    with pytest.raises(NumericalFailure, match="got -1e"):
        GIBBS.update(state, X, 0, -1e50, np.random.default_rng(0))
    assert bits(state) == before


def test_a_state_that_could_not_be_mended_is_refused_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    state = after(ROBUST, 32)
    state.shared.arm_var[0] = np.nan
    monkeypatch.setattr(robust, "mended", unmendable)
    with pytest.raises(NumericalFailure) as caught:
        ROBUST.update(state, X, 0, 1.0, np.random.default_rng(0))
    assert isinstance(caught.value, (PolyarmError, ArithmeticError))
    with pytest.raises(InvalidArgument, match="must be finite"):
        ROBUST.draw_means(state, X, 1, np.random.default_rng(0))


@pytest.mark.parametrize("shares", [(0.05, 0.06, 0.08), (0.01, 0.02, 0.02)])
def test_clicks_never_break_a_state(shares: tuple[float, ...]) -> None:
    policy, rng, x = make_policy("nonparametric", 3, 1), np.random.default_rng(11), np.ones(1)
    state = policy.init()
    for t in range(3000):
        arm = policy.choose(state, x, rng).arm
        state = policy.update(state, x, arm, float(rng.random() < shares[arm]), rng)
        if t % 250 == 0:
            require_sound(state)
    require_sound(state)


def spoil(state: Any, value: float) -> None:
    """Put a number that is none into what the first arm has learnt."""
    if hasattr(state, "seatings"):
        state.seatings[0].table[LOG_DET, 0] = value
    elif hasattr(state, "dishes"):
        state.dishes[SCALE, 0] = value
    elif hasattr(state, "covariances"):
        state.centres[0, 0] = value
    else:
        state.roots[0, 0, 0] = value


OTHERS = ["variational", "hierarchical", "student", "logistic", "poisson", "ordinal", "gamma"]


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", OTHERS)
def test_other_states_whose_numbers_failed_are_mended_from_their_rewards(name: str, value: float) -> None:
    engine, rng = ENGINES[name](2, 2), np.random.default_rng(3)
    state = after(engine, 40)
    spoil(state, value)
    with np.errstate(all="ignore"):
        state = engine.update(state, X, 0, suited(engine, 1.0), rng)
    require_sound(state)
    for t in range(10):
        state = engine.update(state, X, t % 2, suited(engine, float(t % 3)), rng)
    require_sound(state)
    assert np.isfinite(engine.draw_means(state, X, 3, rng)).all()


def test_a_mended_seating_is_that_of_the_responsibilities() -> None:
    engine: Any = ENGINES["variational"](2, 2)
    state = after(engine, 40)
    good = state.seatings[0].table.copy()
    state.seatings[0].table[MEAN:] = np.nan
    assert engine._mended(state.seatings[0], 0)
    np.testing.assert_allclose(state.seatings[0].table[:MOVES], good[:MOVES], rtol=1e-6, atol=1e-6)
    used = good[REWARDS] > 1e-6
    np.testing.assert_allclose(state.seatings[0].table[MEAN:, used], good[MEAN:, used], rtol=1e-6, atol=1e-6)
    state.seatings[0].responsibilities[0, 0] = np.nan
    assert not engine._mended(state.seatings[0], 0)


def test_mended_dishes_are_those_of_the_rewards() -> None:
    engine: Any = ENGINES["hierarchical"](2, 2)
    state = after(engine, 40)
    good, K = state.dishes.copy(), int(state.size[0])
    state.dishes[MEAN:, :K] = np.nan
    assert engine._mended(state)
    np.testing.assert_allclose(state.dishes[MEAN:, :K], good[MEAN:, :K], rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(state.dishes[REWARDS, :K], good[REWARDS, :K])


def test_mended_lines_start_from_equal_precisions() -> None:
    engine: Any = ENGINES["student"](2, 2)
    state = after(engine, 40)
    state.rows[0][3, -1] = np.nan
    assert not engine._sound(state, 0)
    assert engine._mended(state, 0)
    rows = state.rows[0][: state.counts[0]]
    prior = engine.arms[0].base.sqrt_information
    expected = prior.T @ prior + rows[:, :-1].T @ rows[:, :-1]
    np.testing.assert_allclose(np.triu(state.roots[0]).T @ np.triu(state.roots[0]), expected, rtol=1e-9)
    rows[5, -1] = 0.0
    assert not engine._sound(state, 0)


def test_mended_coefficients_are_fitted_from_the_prior() -> None:
    for name in ("ordinal", "poisson"):
        engine: Any = ENGINES[name](2, 2)
        state = after(engine, 40)
        good = [part.copy() for part in (state.centres, state.covariances)]
        state.centres[:] = np.nan
        assert not generalized.is_sound(state)
        assert engine._mended(state)
        np.testing.assert_allclose(state.centres, good[0], atol=0.05)
        np.testing.assert_allclose(state.covariances, good[1], atol=0.05)
        state.extra[:] = np.nan
        assert engine._mended(state)
        np.testing.assert_array_equal(state.extra, engine.init().extra)
        state.covariances[1, 0, 0] = 0.0
        assert not generalized.is_sound(state)


@pytest.mark.parametrize("name", ["particles", *OTHERS])
def test_a_large_reward_that_no_engine_can_learn_leaves_the_state_as_it_was(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, rng = ENGINES[name](2, 2), np.random.default_rng(0)
    reward = {"logistic": 1.0, "ordinal": 3.0}.get(name, 1e50)
    state = after(engine, 32)
    before = bits(state)
    monkeypatch.setattr("polyarm.inference.failure.LARGE", 0.5)  # every reward is large
    for module in (particles, variational, franchise):
        monkeypatch.setattr(module, "finite_columns", unmendable)
    monkeypatch.setattr(generalized, "is_sound", unmendable)
    monkeypatch.setattr(StudentEngine, "_sound", unmendable)
    with pytest.raises(NumericalFailure, match=r"reward must be one whose sums are finite, got [13]"):
        engine.update(state, X, 0, reward, rng)
    assert bits(state) == before
    monkeypatch.undo()
    require_sound(engine.update(state, X, 0, 1.0, rng))


def test_a_cloud_whose_numbers_failed_is_refused() -> None:
    """Particles keep no rewards to begin again from."""
    engine, rng = ENGINES["particles"](2, 2), np.random.default_rng(0)
    state = after(engine, 30)
    state.clouds[0].log_evidence[0] = np.nan
    with pytest.raises(NumericalFailure):
        engine.update(state, X, 0, 1.0, rng)
    with pytest.raises(InvalidArgument):
        engine.draw_means(state, X, 1, rng)


@pytest.mark.parametrize("seed", [7, 10, 13])
def test_marks_at_absurd_contexts_keep_their_cut_points(seed: int) -> None:
    """All marks are the lowest or the highest, and predictors are huge: Newton's steps used to have no bounds."""
    engine, rng = GeneralizedEngine(2, 2, "ordinal"), np.random.default_rng(seed)
    state = engine.init()
    for t in range(60):
        x = 10.0 ** rng.uniform(0, 6.9) * rng.choice([-1.0, 1.0], 2) * rng.choice([0.0, 1e-170, 1.0], 2)
        state = engine.update(state, x, t % 2, float(rng.choice([1.0, 5.0])), rng)
        require_sound(state)
    engine.require_fit(state)
    assert np.isfinite(engine.draw_means(state, X, 3, rng)).all()


@pytest.mark.parametrize("clicks", [True, False])
def test_a_large_reward_that_the_rest_cannot_learn_leaves_every_kind_as_it_was(
    clicks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tally, sticks and links have learnt it by then: all of them are put back."""
    engine, rng = KindsEngine(ROBUST), np.random.default_rng(0)
    state = engine.init()
    for t, (x, arm, y) in enumerate(rewards(60, 2, 2, seed=0)):
        state = engine.update(state, x, arm, float(y > 0) if clicks and t % 4 else y, rng)
    assert (len(state.values) > 0) == clicks
    before = bits(state)
    monkeypatch.setattr(robust, "mended", unmendable)
    monkeypatch.setattr(RobustEngine, "_move", lambda engine, state, *_: (state, False))
    with pytest.raises(NumericalFailure, match="reward must be one whose sums are finite, got 1e"):
        engine.update(state, X, 0, 1e50, rng)
    assert bits(state) == before
    assert engine._door.last is NOTHING
    monkeypatch.undo()
    require_sound(engine.update(state, X, 0, 1.0, rng))


@pytest.mark.parametrize("value", [1e160, 1e300])
def test_log_odds_beyond_all_bounds_end_in_an_error_or_a_sound_state(value: float) -> None:
    """A draw given log odds of 1e160 and more never ended."""
    engine: Any = ENGINES["robust, kinds"](2, 2)
    rng, state = np.random.default_rng(0), engine.init()
    for t in range(80):
        state = engine.update(state, rng.standard_normal(2), t % 2, float(t % 3 == 0), rng)
    assert len(state.values) > 0
    state.sticks.fits[0, 0, :, -1] = value
    try:
        for t in range(8):
            state = engine.update(state, X, t % 2, 1.0, rng)
    except PolyarmError:
        return
    require_sound(state)
    assert np.isfinite(engine.draw_means(state, X, 3, rng)).all()
