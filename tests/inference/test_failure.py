"""Numbers that fail in an update are mended from the rewards, or the reward is refused and the state is as it was."""

from typing import Any

import numpy as np
import pytest

from polyarm.errors import InvalidArgument, NumericalFailure, PolyarmError
from polyarm.inference import GibbsEngine, RobustEngine, Sweeps, robust
from polyarm.inference.door import require_sound
from polyarm.kernels import robust as kernels
from polyarm.kernels.component import SCALE
from polyarm.kernels.robust_component import COUNT, VAR, sxx_row, sxy_row, w_row
from polyarm.kernels.robust_scales import LAM, NOISE
from polyarm.models import LinearMixture, NormalInverseGamma, RobustMixture
from polyarm.policies import make_policy
from tests.contracts.states import bits, fed, rewards

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
        state.hyper[[LAM, NOISE]] = np.nan
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
    monkeypatch.setattr(kernels, "finish", unmendable)
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
    state.hyper[LAM] = np.nan
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
