"""Probabilities of kinds where contexts say nothing: Beta distributions."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from polyarm.inference import KindsEngine, KindsState
from polyarm.kernels import stick_shares
from polyarm.kernels._jit import plain, rng_handle
from polyarm.types import Array
from tests.inference.learning import engine


def fed(kinds: KindsEngine, x: Array, rewards: list[tuple[int, float]]) -> KindsState:
    """The state after rewards of arms, all in one context."""
    state, rng = kinds.init(), np.random.default_rng(0)
    for arm, reward in rewards:
        state = kinds.update(state, x, arm, reward, rng)
    return state


CLICKS = [(0, float(i % 50 == 7)) for i in range(100)] + [(1, 0.0)] * 30 + [(2, 1.0)] * 3
POSTERIORS = [stats.beta(3, 99), stats.beta(1, 31), stats.beta(4, 1), stats.beta(1, 1)]  # the last arm has no reward


@pytest.mark.parametrize("x", [np.ones(1), np.array([1.0, 0.0, -3.0])])
@pytest.mark.parametrize("options", [{}, {"memory": 20}])
def test_a_rate_without_context_has_its_exact_posterior(x: Array, options: dict[str, Any]) -> None:
    kinds = engine(4, len(x), **options)
    state = fed(kinds, x, CLICKS)
    found = kinds.moments(state, x)
    np.testing.assert_allclose(found, np.transpose([(p.mean(), p.std()) for p in POSTERIORS]), rtol=1e-9)
    np.testing.assert_array_equal(kinds.moments_many(state, x[None])[0], found)
    draws = kinds.draw_means(state, x, 4000, np.random.default_rng(1))
    for arm, known in enumerate(POSTERIORS):
        assert stats.kstest(draws[:, arm], known.cdf).pvalue > 1e-4
        assert kinds.predictive(state, x, arm).mean() == pytest.approx(known.mean(), rel=1e-9)
    f = np.append(x, 1.0)
    normal = plain(stick_shares.log_odds)(state.sticks, 1, 0, f, np.empty(len(f)))
    near, _ = plain(stick_shares.stick_moments)(*normal)
    assert abs(near - POSTERIORS[1].mean()) > 0.05 * POSTERIORS[1].mean()  # a logistic regression is noticed


def test_which_value_comes_first_does_not_matter() -> None:
    x = np.ones(1)
    kinds, mirrored = engine(4, 1), engine(4, 1)
    found = kinds.moments(fed(kinds, x, CLICKS), x)
    other = mirrored.moments(fed(mirrored, x, [(arm, 5.0 - 2.0 * reward) for arm, reward in CLICKS]), x)
    np.testing.assert_allclose(other, [5.0 - 2.0 * found[0], 2.0 * found[1]], rtol=1e-9)


def test_shares_of_three_values_are_broken_from_a_stick() -> None:
    """The most frequent value first, then the next among the others."""
    rewards, x = [(0, 1.0)] * 12 + [(0, 2.0)] * 6 + [(0, 4.0)] * 2, np.zeros(2)
    kinds = engine(2, 2)
    state = fed(kinds, x, rewards)
    assert state.values.tolist() == [1.0, 2.0]
    out = np.empty(3)
    stick_shares.expected_shares(state.sticks, x, 0, out)
    p, q = 13 / 22, 7 / 10
    np.testing.assert_allclose(out, [p, (1 - p) * q, (1 - p) * (1 - q)], rtol=1e-9)
    draws = np.empty((4000, 3))
    stick_shares.draw_shares(state.sticks, x, 0, draws, rng_handle(np.random.default_rng(2)))
    assert stats.kstest(draws[:, 0], stats.beta(13, 9).cdf).pvalue > 1e-4
    assert stats.kstest(draws[:, 1] / (1 - draws[:, 0]), stats.beta(7, 3).cdf).pvalue > 1e-4
    quick, slow = np.empty((20, 3)), np.empty((20, 3))
    stick_shares.draw_shares(state.sticks, x, 0, quick, rng_handle(np.random.default_rng(3)))
    plain(stick_shares.draw_shares)(state.sticks, x, 0, slow, np.random.default_rng(3))
    np.testing.assert_allclose(slow, quick, rtol=1e-9)


def test_what_has_faded_counts_less() -> None:
    x, kinds = np.ones(1), engine(2, 1, half_life=40.0)
    state = fed(kinds, x, [(0, 1.0)] * 60 + [(0, 0.0)] * 80)
    n = float(state.sticks.sums[0, 0, 0])
    assert n < 70
    assert kinds.moments(state, x)[0, 0] < 0.5 * 61 / 142


def test_other_contexts_are_told_apart_from_constant_ones() -> None:
    is_constant, x = plain(stick_shares.is_constant), np.array([2.0, 0.0])
    columns = fed(engine(2, 2), x, [(0, 0.0)] * 40).sticks.columns
    assert is_constant(columns, x)
    assert not is_constant(columns, np.array([2.0, 1.0]))
    assert not is_constant(columns, np.array([2.001, 0.0]))
    for other in (np.array([2.0, 1.0]), np.array([2.5, 0.0])):
        kinds = engine(2, 2)
        state = kinds.update(fed(kinds, x, [(0, 0.0)] * 40), other, 0, 0.0, np.random.default_rng(0))
        assert not is_constant(state.sticks.columns, x)
        assert not is_constant(state.sticks.columns, other)
    unmeasured = fed(engine(2, 2, fixed_units=True), x, [(0, 0.0)] * 5).sticks.columns
    assert not is_constant(unmeasured, x)
