"""Formulas and schedules of the engines that know the kind of reward, written down slowly."""

import math
from typing import Any

import numpy as np
import pytest

from polyarm.errors import InvalidArgument
from polyarm.inference import generalized
from polyarm.inference.generalized import SHAPE_MEMORY, Family, GeneralizedEngine, gamma_shape, is_due
from polyarm.inference.hurdle import LARGEST, HurdleEngine
from tests.contracts.states import rewards

X = np.array([0.8, -0.4])


@pytest.mark.parametrize(
    ("family", "taken", "refused"),
    [
        ("logistic", [0.0, 1.0], [0.5, 2.0, -1.0]),
        ("ordinal", [1.0, 3.0, 5.0], [0.0, 6.0, 2.5]),
        ("poisson", [0.0, 1.0, 1e15], [-1.0, 0.5]),
        ("gamma", [1e-9, 3.5], [0.0, -1.0]),
    ],
)
def test_a_family_takes_its_own_rewards_alone(family: Family, taken: list[float], refused: list[float]) -> None:
    engine = GeneralizedEngine(2, 2, family)
    for y in taken:
        assert engine.require_kind(y) == y - (family == "ordinal")
    for y in refused:
        with pytest.raises(InvalidArgument, match="reward must be"):
            engine.require_kind(y)


@pytest.mark.parametrize("family", ["logistic", "ordinal", "poisson", "gamma"])
def test_a_state_before_any_reward_is_the_prior(family: Family) -> None:
    engine = GeneralizedEngine(3, 2, family, prior_mean=np.array([0.2, -0.1]), prior_var=np.array([2.0, 0.5]))
    state = engine.init()
    np.testing.assert_array_equal(state.centres, [[0.2, -0.1]] * 3)
    np.testing.assert_allclose(state.covariances, [np.diag([2.0, 0.5])] * 3)
    cuts = {"logistic": [0.0], "ordinal": [math.log(k / (5 - k)) for k in range(1, 5)]}
    np.testing.assert_allclose(state.extra, cuts.get(family, [1.0]), atol=1e-15)
    assert engine.lowest == (1.0 if family == "ordinal" else 0.0)


@pytest.mark.parametrize("family", ["logistic", "ordinal", "poisson", "gamma"])
def test_means_of_coefficients_that_are_known_are_those_of_the_link(family: Family) -> None:
    """With hardly any variance a mean reward is the link at f'beta, and its spread that of the slope."""
    engine = GeneralizedEngine(2, 2, family, prior_mean=np.array([0.6, -0.5]), prior_var=1e-12)
    state, eta = engine.init(), float(X @ [0.6, -0.5])
    odds = [1 / (1 + math.exp(-(cut - eta))) for cut in state.extra]
    means = {
        "logistic": 1 - odds[0],
        "ordinal": 1 + sum(1 - p for p in odds),
        "poisson": math.exp(eta),
        "gamma": math.exp(eta),
    }
    mean, sd = engine.moments(state, X)
    assert mean == pytest.approx([means[family]] * 2, rel=1e-6)
    assert (sd < 1e-4).all()
    draws = engine.draw_means(state, X, 3, np.random.default_rng(0))
    np.testing.assert_allclose(draws, means[family], rtol=1e-4)
    np.testing.assert_array_equal(engine.expected_means(state, X), mean)


def test_all_rewards_are_fitted_anew_as_often_as_a_flat_cost_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit to n + 1 rewards of d columns waits until an arm has WORK (rewards since the last) >= (n + d) d^2."""
    monkeypatch.setattr(generalized, "WORK", 12)
    engine, rng, fitted = GeneralizedEngine(2, 2, "poisson"), np.random.default_rng(0), list[int]()
    fit = engine._fit

    def listening(state: Any, arm: int) -> None:
        fitted.append(int(state.counts[arm]))
        fit(state, arm)

    object.__setattr__(engine, "_fit", listening)
    state, waiting, expected = engine.init(), 0, []
    for n in range(60):
        state = engine.update(state, rng.standard_normal(2), 1, float(rng.integers(4)), rng)
        waiting += 1
        if waiting * 12 >= (n + 2) * 4:
            expected.append(n + 1)
            waiting = 0
        assert state.stale.tolist() == [0, waiting]
        assert state.counts.tolist() == [0, n + 1]
    assert fitted == expected
    assert len(expected) < 30


@pytest.mark.parametrize("n", [1, 2, 10, 100, 1000, 4096])
def test_what_the_arms_share_is_fitted_ten_times_per_doubling(n: int) -> None:
    due = sum(is_due(k) for k in range(n + 1, 2 * n + 1))
    assert due == 10 or (n <= 16 and due <= n)
    assert is_due(1)
    assert is_due(2)


def test_rows_of_rewards_are_kept_while_they_grow() -> None:
    engine, rng = GeneralizedEngine(2, 2, "ordinal"), np.random.default_rng(0)
    state, kept = engine.init(), []
    for _ in range(40):
        x, y = rng.standard_normal(2), float(rng.integers(1, 6))
        kept.append([*x, y - 1.0])
        state = engine.update(state, x, 1, y, rng)
    np.testing.assert_array_equal(state.rows[1][:40], kept)
    assert [len(rows) for rows in state.rows] == [16, 64]


@pytest.mark.parametrize("counts", [[4], [1, 5], [3, 0, 2]])
@pytest.mark.parametrize("dim", [1, 2, 4])
def test_the_shape_of_amounts_has_lost_freedom_to_the_coefficients(counts: list[int], dim: int) -> None:
    """(1 + sqrt(1 + 4 g / 3)) / (4 g), g the mean of r - 1 - log r over n less min(d, n_a / 2) of every arm."""
    rng = np.random.default_rng(0)
    log_ratio = rng.standard_normal(sum(counts))
    total = sum(math.exp(v) - 1 - v for v in log_ratio)
    freedom = sum(counts) - sum(min(dim, n / 2) for n in counts)
    gap = (total + 0.5 * SHAPE_MEMORY) / (freedom + SHAPE_MEMORY)
    expected = (1 + math.sqrt(1 + 4 * gap / 3)) / (4 * gap)
    assert gamma_shape(log_ratio, np.array(counts), dim) == pytest.approx(expected, rel=1e-12)


def test_shapes_stay_between_what_is_wild_and_what_is_certain() -> None:
    assert gamma_shape(np.full(10, 200.0), np.array([10]), 1) == 0.05  # the ratio itself stops at e^30
    assert gamma_shape(np.zeros(10**6), np.array([10**6]), 1) == 1e4
    nearly = gamma_shape(np.full(3, 30.0), np.array([3]), 1)
    assert nearly == gamma_shape(np.full(3, 31.0), np.array([3]), 1)


def hurdle(amounts: Any, n: int) -> tuple[HurdleEngine, Any]:
    engine, rng = HurdleEngine(2, 2, amounts, 1.5, 0.7), np.random.default_rng(0)
    state = engine.init()
    for x, arm, y in rewards(n, 2, 2, seed=0):
        state = engine.update(state, x, arm, max(y, 0.0), rng)
    return engine, state


@pytest.mark.parametrize("n", [0, 3, 12, 60])
def test_moments_of_log_normal_amounts_are_those_of_the_page(n: int) -> None:
    """exp(m + (s + v) / 2) and that times sqrt(e^v - 1), v = s x'Vx + s^2 / (4 (a - 2)), s = b / (a - 1), of log y."""
    engine, state = hurdle("log-normal", n)
    found = engine.amount_moments(state, X)
    for arm in range(2):
        rows = [(x, math.log(y)) for x, a, y in rewards(n, 2, 2, seed=0) if a == arm and y > 0]
        design = np.array([x for x, _ in rows]).reshape(-1, 2)
        logs = np.array([y for _, y in rows])
        V = np.linalg.inv(np.eye(2) / 0.7 + design.T @ design)
        U = V @ design.T @ logs
        a, b = 1.0 + len(logs) / 2, 1.0 + 0.5 * (logs @ logs - U @ np.linalg.solve(V, U))
        s = b / max(a - 1, 0.5)
        v = s * (X @ V @ X) + s**2 / (4 * max(a - 2, 0.5))
        mean = math.exp(X @ U + (s + v) / 2)
        np.testing.assert_allclose(found[:, arm], [mean, mean * math.sqrt(math.expm1(v))], rtol=1e-9)


@pytest.mark.parametrize("amounts", ["log-normal", "gamma", "normal"])
def test_a_mean_reward_is_the_product_of_share_and_amount(amounts: Any) -> None:
    """Independent factors: E = pm, Var = E p^2 E m^2 - E^2."""
    engine, state = hurdle(amounts, 40)
    (share, share_sd), (mean, sd) = engine._hurdle.moments(state.hurdle, X), engine.amount_moments(state, X)
    found = engine.moments(state, X)
    np.testing.assert_allclose(found[0], share * mean)
    variance = (share_sd**2 + share**2) * (sd**2 + mean**2) - (share * mean) ** 2
    np.testing.assert_allclose(found[1], np.sqrt(variance))
    one = engine.draw_means(state, X, 5, np.random.default_rng(3))
    part = engine._hurdle.draw_means(state.hurdle, X, 5, np.random.default_rng(3))
    assert ((one / part > 0) | (amounts == "normal")).all()


def test_zeros_tell_of_shares_alone_and_amounts_of_both() -> None:
    engine, rng = HurdleEngine(2, 2), np.random.default_rng(0)
    state = engine.update(engine.init(), X, 1, 0.0, rng)
    assert (state.hurdle.counts.tolist(), state.amount.counts.tolist()) == ([0, 1], [0, 0])
    state = engine.update(state, X, 1, 2.5, rng)
    assert (state.hurdle.counts.tolist(), state.amount.counts.tolist()) == ([0, 2], [0, 1])
    assert state.hurdle.rows[1][:2, -1].tolist() == [0.0, 1.0]
    signed = HurdleEngine(2, 2, "normal")
    after: Any = signed.update(signed.init(), X, 0, -2.5, rng)
    assert after.amount.counts.tolist() == [1, 0]
    level = signed._amount.expected_means(after.amount, X)
    assert level[0] < 0 == level[1]


def test_amounts_beyond_all_measure_stay_numbers() -> None:
    engine, rng = HurdleEngine(1, 1), np.random.default_rng(0)
    state, one = engine.init(), np.ones(1)
    for y in (1e90, 1e-90, 1e90):
        state = engine.update(state, one, 0, y, rng)
    mean, sd = engine.amount_moments(state, one)
    assert mean[0] == pytest.approx(math.exp(LARGEST))
    assert sd[0] == pytest.approx(math.exp(LARGEST) * math.sqrt(math.expm1(LARGEST)))
    assert np.isfinite(engine.draw_means(state, one, 100, rng)).all()
