"""Amounts with a logarithmic link: posteriors, moments and weights against quadrature and plain arithmetic."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, lognorm, norm

from polyarm.inference.amounts import HYPERPRIOR, AmountModel, AmountState, is_on
from polyarm.inference.links import Reward
from polyarm.kernels import amounts as kernels
from polyarm.kernels._jit import plain
from polyarm.kernels.amounts import AMOUNT_UNIT, GAMMA_SHAPE, HIGHEST, LEAST_MEAN, ORIGIN
from polyarm.kernels.generalized import WEIGHTS
from polyarm.kernels.links import LAM, MEAN, SWITCH, VARIANCE
from polyarm.types import Array


def drawn(n: int, seed: int, n_arms: int = 2, shape: float = 2.0) -> list[Reward]:
    """Gamma amounts around 20 whose mean grows with the only column."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 1))
    y = 20 * np.exp(0.5 * x[:, 0]) * rng.standard_gamma(shape, n) / shape
    return [Reward(i % n_arms, x[i], float(y[i])) for i in range(n)]


def learnt(rewards: list[Reward], n_arms: int = 2, shape: float | None = None) -> AmountState:
    """The model of these amounts, begun at once."""
    model = AmountModel(n_arms, 1, fixed_units=True)
    unit = float(np.exp(np.mean([np.log(reward.value) for reward in rewards])))
    state = model._begun(rewards, 0.0, unit, 0.5)
    if shape is not None:
        state.model.level[GAMMA_SHAPE] = shape
    return state


def settled(state: AmountState, n_rounds: int = 30) -> AmountState:
    for _ in range(n_rounds):
        for arm, rows in enumerate(state.data):
            kernels.visit(state.model, rows, arm, len(rows), 0)
    return state


def normal_of(state: AmountState, arm: int = 0) -> tuple[Array, Array]:
    fit = state.model.fits[arm]
    F = np.tril(fit[:, :-1])
    return fit[:, -1], np.linalg.inv(F @ F.T)


def exact(state: AmountState, rewards: list[Reward], shape: float) -> tuple[Array, Array]:
    """Posterior mean and standard deviation of slope and height given shape and prior, on a fine grid of both."""
    U, V = normal_of(state)
    guess, sd, level = state.model.guess, np.sqrt(np.diag(V)), state.model.level
    slope, height = (U[i] + sd[i] * np.linspace(-6, 6, 161) for i in range(2))
    log_p = -0.5 * (slope[:, None] - guess[MEAN, 0]) ** 2 / guess[VARIANCE, 0]
    log_p = log_p - 0.5 * (height[None] - guess[MEAN, 1]) ** 2 / guess[VARIANCE, 1]
    for reward in rewards:
        mean = np.exp(slope[:, None] * reward.context[0] + height[None]) * level[AMOUNT_UNIT]
        log_p = log_p + gamma.logpdf(reward.value, shape, scale=mean / shape)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    sums = [(p.sum(axis=1 - i), values) for i, values in enumerate((slope, height))]
    mean = np.array([weights @ values for weights, values in sums])
    return mean, np.sqrt([weights @ (values - m) ** 2 for (weights, values), m in zip(sums, mean, strict=True)])


@pytest.mark.parametrize(("n", "shape"), [(16, 2.0), (60, 0.7), (60, 6.0)])
def test_the_posterior_of_a_line_is_near_the_exact_one(n: int, shape: float) -> None:
    rewards = drawn(n, 1, shape=shape)
    state = settled(learnt(rewards, shape=shape))
    own = [reward for reward in rewards if reward.arm == 0]
    exact_mean, exact_sd = exact(state, own, shape)
    U, V = normal_of(state)
    assert (np.abs(U - exact_mean) < 0.1 * exact_sd).all()
    np.testing.assert_allclose(np.sqrt(np.diag(V)), exact_sd, rtol=0.06)
    _, bugged_sd = exact(state, own * 2, shape)
    assert (np.abs(bugged_sd / exact_sd - 1) > 0.12).any()  # amounts counted twice are found out


def powers(m: float, sd: float, highest: float, k: int) -> Callable[[float], float]:
    return lambda t: norm.pdf(t) * min(np.exp(m + sd * t), highest) ** k


def test_moments_are_those_of_quadrature_and_of_draws() -> None:
    state, x, rng = learnt(drawn(40, 2)), np.array([0.6]), np.random.default_rng(0)
    state.weights[:] = 0.4, 0.6
    base = np.array([[30.0, 10.0], [4.0, 1.0]])
    out = base.copy()
    kernels.moments(state.model, state.weights, x, out)
    level, f = state.model.level, np.array([0.6, 1.0])
    for arm in range(2):
        U, V = normal_of(state, arm)
        raw = [
            quad(powers(float(f @ U), float(np.sqrt(f @ V @ f)), 3 * level[HIGHEST], k), -9, 9, limit=200)[0]
            for k in (1, 2)
        ]
        first = 0.4 * base[0, arm] + 0.6 * level[AMOUNT_UNIT] * raw[0]
        second = 0.4 * (base[:, arm] ** 2).sum() + 0.6 * level[AMOUNT_UNIT] ** 2 * raw[1]
        assert out[0, arm] == pytest.approx(first, rel=1e-6)
        assert out[1, arm] == pytest.approx(np.sqrt(second - first**2), rel=1e-5)
        means = np.empty(15)
        kernels.node_means(state.model, arm, x, means)
        assert level[AMOUNT_UNIT] * raw[0] == pytest.approx(level[AMOUNT_UNIT] * WEIGHTS @ means, rel=1e-6)
    draws = base[0] + base[1] * rng.standard_normal((200_000, 2))
    AmountModel(2, 1).draw_means(state, x, draws, rng)
    np.testing.assert_allclose(draws.mean(axis=0), out[0], atol=5 * out[1].max() / 450)
    np.testing.assert_allclose(draws.std(axis=0), out[1], rtol=0.01)


def test_no_mean_is_believed_far_beyond_the_largest_amount() -> None:
    state = learnt(drawn(40, 3))
    out = np.zeros((2, 2))
    kernels.moments(state.model, np.array([0.0, 1.0]), np.array([50.0]), out)
    top = state.model.level[HIGHEST] * state.model.level[AMOUNT_UNIT]
    assert (out[0] <= 3 * top).all()
    assert (out[0] > 2.9 * top).all()  # all but a far node are beyond


@pytest.mark.parametrize(("y", "base"), [(4.0, 30.0), (60.0, 21.0), (20.0, -5.0)])
def test_means_are_judged_by_the_score_of_a_gamma(y: float, base: float) -> None:
    state, x = learnt(drawn(30, 4), shape=1.7), np.array([0.3])
    state.weights[:] = 0.3, 0.7
    own = np.zeros((2, 2))
    kernels.moments(state.model, np.array([0.0, 1.0]), x, own)
    unit = state.model.level[AMOUNT_UNIT]
    means = [max(base, LEAST_MEAN * unit), own[0, 1]]
    score = np.array([np.exp(-1.7 * (np.log(mean / unit) + y / mean)) for mean in means])
    wanted = np.array([0.3, 0.7]) * score / (np.array([0.3, 0.7]) @ score)
    kernels.judge(state.model, state.weights, state.density_weights, 1, x, y, base, 0.1)
    np.testing.assert_allclose(state.weights, (1 - SWITCH) * wanted + SWITCH / 2, rtol=1e-9)


@pytest.mark.parametrize("law", [gamma(2.0, scale=1.5), lognorm(1.2), gamma(0.3)])
def test_the_score_is_best_at_the_mean_whatever_the_distribution(law: object) -> None:
    y = law.ppf((np.arange(200_000) + 0.5) / 200_000)  # type: ignore[attr-defined]
    means = y.mean() * np.exp(np.linspace(-0.5, 0.5, 101))
    scores = [-np.mean(np.log(mean) + y / mean) for mean in means]
    assert means[int(np.argmax(scores))] == pytest.approx(y.mean(), rel=1e-6)


def test_the_shape_is_found() -> None:
    for shape in (0.6, 2.0, 9.0):
        state = learnt(drawn(1200, 5, shape=shape))
        assert state.model.level[GAMMA_SHAPE] == pytest.approx(shape, rel=0.12)


def test_what_arms_share_is_where_every_part_fits_the_others() -> None:
    """The closed form of every factor of variational Bayes given the others."""
    model = learnt(drawn(80, 6)).model
    lines = [normal_of(AmountState(np.ones(2), model, (), np.ones(2)), arm) for arm in range(2)]
    lam, wide, shape, scale = model.guess[LAM].copy(), HYPERPRIOR[4:6], HYPERPRIOR[:2], HYPERPRIOR[2:4]
    spread = 1 / (1 / wide + 2 / lam)
    centre = spread * sum(U for U, _ in lines) / lam
    squares = sum((U - centre) ** 2 + np.diag(V) for U, V in lines) + 2 * spread
    wanted = (scale + 0.5 * squares) / (shape + 1.0)
    kernels.share(model, HYPERPRIOR)
    np.testing.assert_allclose(model.guess[MEAN], centre, rtol=1e-9)
    np.testing.assert_allclose(model.guess[LAM], wanted, rtol=1e-9)
    np.testing.assert_allclose(model.guess[VARIANCE], wanted + spread, rtol=1e-9)


def test_frozen_amounts_stay_in_the_sums() -> None:
    rewards, found = drawn(80, 7), []
    for model in (AmountModel(2, 1, fixed_units=True), AmountModel(2, 1, memory=10, fixed_units=True)):
        state = model.init()
        for n, reward in enumerate(rewards, start=1):
            state = model.learnt(state, reward, n, np.zeros(1), partial(list, rewards[:n]))
        found.append(state)
    assert all(is_on(state) for state in found)
    assert all(len(rows) == 10 for rows in found[1].data)
    np.testing.assert_array_equal(found[1].model.sums[:, 0], 40)
    a, b = (state.model.fits[:, :, -1] for state in found)
    np.testing.assert_allclose(a, b, atol=0.1)
    sums = found[1].model.sums.copy()
    for arm in range(2):
        kernels.recount(found[1].model, found[1].data[arm], arm)
    np.testing.assert_allclose(found[1].model.sums, sums, rtol=1e-9, atol=1e-9)


def test_kernels_equal_their_plain_twins() -> None:
    one, two = learnt(drawn(30, 8)), learnt(drawn(30, 8))
    x, fast, slow = np.array([0.4]), np.ones((2, 2)), np.ones((2, 2))
    kernels.visit(one.model, one.data[0], 0, 8, 5)
    kernels.share(one.model, HYPERPRIOR)
    kernels.judge(one.model, one.weights, one.density_weights, 1, x, 25.0, 10.0, 0.02)
    kernels.moments(one.model, one.weights, x, fast)
    plain(kernels.visit)(two.model, two.data[0], 0, 8, 5)
    plain(kernels.share)(two.model, HYPERPRIOR)
    plain(kernels.judge)(two.model, two.weights, two.density_weights, 1, x, 25.0, 10.0, 0.02)
    plain(kernels.moments)(two.model, two.weights, x, slow)
    np.testing.assert_allclose(fast, slow, rtol=1e-12)
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-12)
    np.testing.assert_allclose(one.density_weights, two.density_weights, rtol=1e-12)
    for a, b in zip(one.model, two.model, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_amounts_far_below_their_origin_are_the_same_amounts() -> None:
    """Costs are amounts with the sign turned."""
    rewards = drawn(60, 9)
    other = [Reward(reward.arm, reward.context, 7.0 - 3 * reward.value) for reward in rewards]
    one = learnt(rewards)
    unit = one.model.level[AMOUNT_UNIT]
    two = AmountModel(2, 1, fixed_units=True)._begun(other, 7.0, -3 * unit, 0.5)
    np.testing.assert_allclose(one.model.fits, two.model.fits, rtol=1e-9, atol=1e-12)
    a, b = np.zeros((2, 2)), np.zeros((2, 2))
    for state, out in ((one, a), (two, b)):
        kernels.moments(state.model, np.array([0.0, 1.0]), np.array([0.4]), out)
    np.testing.assert_allclose(b[0], 7.0 - 3 * a[0], rtol=1e-9)
    np.testing.assert_allclose(b[1], 3 * a[1], rtol=1e-6)
    assert two.model.level[ORIGIN] == 7.0
