"""Counts and marks with a link: probabilities, posteriors and weights against quadrature and enumeration."""

from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import nbinom, norm, poisson

from polyarm.inference.links import DISPERSIONS, HYPERPRIORS, LinkModels, LinkState, Reward
from polyarm.kernels import links as kernels
from polyarm.kernels._jit import plain
from polyarm.kernels.links import COUNTS, LAM, LEVEL, MARKS, MEAN, SWITCH, VARIANCE
from polyarm.types import Array

FAMILIES = {"counts": COUNTS, "marks": MARKS}


def drawn(n: int, seed: int, n_arms: int = 2, marks: int = 5) -> list[Reward]:
    """Whole numbers below `marks` that grow with the only column."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 1))
    y = np.minimum(rng.poisson(np.exp(0.4 + 0.4 * x[:, 0])), marks - 1)
    return [Reward(i % n_arms, x[i], float(y[i])) for i in range(n)]


def learnt(rewards: list[Reward], n_arms: int = 2, dispersion: float = 0.0) -> LinkState:
    """Models of these rewards, begun at once."""
    models = LinkModels(n_arms, 1, fixed_units=True)
    grid = models.init().models.grid
    values = [reward.value for reward in rewards]
    grid[kernels.LOWEST], grid[kernels.HIGHEST], grid[kernels.STEP] = min(values), max(values), 1.0
    state = models._begun(grid, (True, True), rewards)
    state.models.level[kernels.DISPERSION] = dispersion
    return state


def settled(state: LinkState, n_rounds: int = 30) -> LinkState:
    """State whose rewards were all visited again and again."""
    for _ in range(n_rounds):
        for arm, rows in enumerate(state.data):
            kernels.visit(state.models, rows, arm, len(rows), 0)
    return state


def probability(state: LinkState, family: int, eta: float, k: int) -> float:
    """Probability of a number given the predictor, by SciPy."""
    links = state.models
    if family == MARKS:
        edges = np.concatenate([[-np.inf], links.cuts, [np.inf]])
        return float(expit(eta - edges[k]) - expit(eta - edges[k + 1]))
    mu, r = np.exp(eta + links.level[LEVEL]), links.level[kernels.DISPERSION]
    return float(poisson.pmf(k, mu) if r == 0 else nbinom.pmf(k, 1 / r, 1 / (1 + r * mu)))


def predictor(state: LinkState, family: int, arm: int, x: float) -> tuple[float, float]:
    fit = state.models.fits[arm, family]
    F, f = np.tril(fit[:, :-1]), np.array([x, 1.0])
    return float(f @ fit[:, -1]), float(np.linalg.norm(np.linalg.solve(F, f)))


@pytest.mark.parametrize("dispersion", [0.0, 0.7])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("n", "tolerance"), [(6, 2e-3), (200, 1e-6)])
def test_predictive_probabilities_are_those_of_quadrature(
    family: str, dispersion: float, n: int, tolerance: float
) -> None:
    state, number = learnt(drawn(n, 0), dispersion=dispersion), FAMILIES[family]
    found = np.empty(5)
    kernels.probabilities(state.models, number, 1, np.array([0.7]), found)
    m, sd = predictor(state, number, 1, 0.7)
    for k in range(5):
        wanted, _ = quad(lambda t, k=k: norm.pdf(t) * probability(state, number, m + sd * t, k), -8, 8, limit=200)
        assert found[k] == pytest.approx(wanted, abs=tolerance)
    known = np.array([probability(state, number, m, k) for k in range(5)])
    if n == 6:  # the line taken for known is found out
        assert np.abs(known - found).max() > 5 * tolerance


@pytest.mark.parametrize("family", FAMILIES)
def test_the_posterior_of_a_line_is_near_the_exact_one(family: str) -> None:
    """Mean and spread of slope and intercept against sums over a fine grid of both."""
    number, rewards = FAMILIES[family], drawn(60, 1)
    state = settled(learnt(rewards))
    exact_mean, exact_sd = exact(state, number, [reward for reward in rewards if reward.arm == 0])
    U, V = normal_of(state, number)
    assert (np.abs(U - exact_mean) < 0.1 * exact_sd).all()
    np.testing.assert_allclose(np.sqrt(np.diag(V)), exact_sd, rtol=0.06)
    twice = [Reward(0, reward.context, reward.value) for reward in rewards if reward.arm == 0] * 2
    bugged_mean, bugged_sd = exact(state, number, twice)
    assert (np.abs(bugged_sd / exact_sd - 1) > 0.12).any()  # rewards counted twice are found out
    assert np.isfinite(bugged_mean).all()


def normal_of(state: LinkState, family: int) -> tuple[Array, Array]:
    fit = state.models.fits[0, family]
    F = np.tril(fit[:, :-1])
    return fit[:, -1], np.linalg.inv(F @ F.T)


def exact(state: LinkState, family: int, rewards: list[Reward]) -> tuple[Array, Array]:
    """Posterior mean and standard deviation of slope and intercept given cut points, dispersion and prior."""
    U, V = normal_of(state, family)
    guess, sd = state.models.guess[family], np.sqrt(np.diag(V))
    slope, height = (U[i] + sd[i] * np.linspace(-6, 6, 121) for i in range(2))
    log_p = -0.5 * (slope[:, None] - guess[MEAN, 0]) ** 2 / guess[VARIANCE, 0]
    log_p = log_p - 0.5 * (height[None] - guess[MEAN, 1]) ** 2 / guess[VARIANCE, 1]
    for reward in rewards:
        eta, k = slope[:, None] * reward.context[0] + height[None], int(reward.value)
        if family == MARKS:
            edges = np.concatenate([[-np.inf], state.models.cuts, [np.inf]])
            log_p = log_p + np.log(expit(eta - edges[k]) - expit(eta - edges[k + 1]))
        else:
            log_p = log_p + poisson.logpmf(k, np.exp(eta + state.models.level[LEVEL]))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    sums = [(p.sum(axis=1 - i), values) for i, values in enumerate((slope, height))]
    mean = np.array([weights @ values for weights, values in sums])
    return mean, np.sqrt([weights @ (values - m) ** 2 for (weights, values), m in zip(sums, mean, strict=True)])


def test_weights_are_those_of_all_sequences_of_models() -> None:
    """Which model the next reward comes from, summed over all models that the earlier ones may have come from."""
    rng = np.random.default_rng(2)
    p, M = rng.random((6, 3)) ** 3, 3
    stay = (1 - SWITCH) * np.eye(M) + SWITCH / M
    wanted = np.zeros(M)
    for sequence in product(range(M), repeat=len(p) + 1):
        weight = 1.0 / M
        for t, (now, after) in enumerate(pairwise(sequence)):
            weight *= p[t, now] * stay[now, after]
        wanted[sequence[-1]] += weight
    found = np.full(M, 1 / M)
    for row in p:
        plain(kernels.weigh)(found, row, SWITCH)
    np.testing.assert_allclose(found, wanted / wanted.sum(), rtol=1e-12)
    for_ever = p.prod(axis=0) / p.prod(axis=0).sum()
    assert np.abs(for_ever - found).max() > 1e-6  # a model that is never left is another posterior


def test_a_model_of_no_weight_stays_without_one_and_no_probability_is_too_small() -> None:
    weights = np.array([0.5, 0.0, 0.5])
    plain(kernels.weigh)(weights, np.array([0.0, 1.0, np.nan]), SWITCH)
    np.testing.assert_allclose(weights, [0.5, 0.0, 0.5])


@pytest.mark.parametrize("value", [0.0, 2.0, 4.0, 9.0])
def test_rewards_are_judged_by_their_predictive_probabilities(value: float) -> None:
    state = learnt(drawn(60, 3))
    x, links = np.array([0.3]), state.models
    wanted = np.empty(3)
    by_dispersion = np.empty(len(DISPERSIONS))
    for j, r in enumerate(DISPERSIONS):
        links.level[kernels.DISPERSION], found = r, np.empty(10)
        kernels.probabilities(links, COUNTS, 0, x, found)
        by_dispersion[j] = found[int(value)]
    marks = np.empty(5)
    kernels.probabilities(links, MARKS, 0, x, marks)
    escape = 0.5 / 61
    wanted[0], wanted[1] = 0.05, state.dispersions @ by_dispersion
    wanted[2] = (1 - escape) * marks[int(value)] if value <= 4 else escape
    weights, dispersions = state.weights.copy(), state.dispersions.copy()
    plain(kernels.weigh)(weights, wanted, SWITCH)
    plain(kernels.weigh)(dispersions, by_dispersion, kernels.NEVER)
    kernels.judge(links, state.weights, state.dispersions, DISPERSIONS, 0, x, value, 0.05)
    np.testing.assert_allclose(state.weights, weights, rtol=1e-9)
    np.testing.assert_allclose(state.dispersions, dispersions, rtol=1e-9)
    assert links.level[kernels.DISPERSION] == pytest.approx(dispersions @ DISPERSIONS)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_arms_share_is_where_every_part_fits_the_others(family: str) -> None:
    """The updates of variational Bayes, written out: first beta_0, then lam."""
    number, hyperprior = FAMILIES[family], HYPERPRIORS[FAMILIES[family]]
    state = settled(learnt(drawn(90, 4, n_arms=3), n_arms=3))
    links, lam = state.models, state.models.guess[number, LAM].copy()
    U = links.fits[:, number, :, -1].copy()
    V = np.array([np.linalg.inv(np.tril(fit[:, :-1]) @ np.tril(fit[:, :-1]).T) for fit in links.fits[:, number]])
    spread = 1 / (1 / hyperprior[4:6] + 3 / lam)
    centre = U.sum(axis=0) / lam * spread
    squares = ((U - centre) ** 2 + np.diagonal(V, axis1=1, axis2=2) + spread).sum(axis=0)
    wanted = np.minimum((hyperprior[2:4] + squares / 2) / (hyperprior[:2] + 1.5), hyperprior[6:])
    kernels.share(links, HYPERPRIORS)
    np.testing.assert_allclose(links.guess[number, MEAN], centre, rtol=1e-9)
    np.testing.assert_allclose(links.guess[number, LAM], wanted, rtol=1e-9)
    np.testing.assert_allclose(links.guess[number, VARIANCE], wanted + spread, rtol=1e-9)


def test_moments_are_those_of_draws_of_all_models() -> None:
    state = learnt(drawn(40, 5))
    models, x, rng = LinkModels(2, 1), np.array([0.5]), np.random.default_rng(0)
    state.weights[:] = 0.2, 0.5, 0.3
    out = np.array([[3.0, 1.0], [0.5, 0.1]])
    draws = out[0] + out[1] * rng.standard_normal((200_000, 2))
    models.draw_means(state, x, draws, rng)
    kernels.moments(state.models, state.weights, x, out)
    np.testing.assert_allclose(draws.mean(axis=0), out[0], atol=5 * out[1].max() / 450)
    np.testing.assert_allclose(draws.std(axis=0), out[1], rtol=0.01)


def test_models_that_begin_late_learn_every_reward() -> None:
    state = learnt(drawn(6000, 8))
    for rows, n in zip(state.data, state.models.sizes[:, 0], strict=True):
        assert n == 3000
        assert (rows[:n, 3:5] > 0).all()  # every reward has a curvature in both families


def test_frozen_rewards_stay_in_the_sums() -> None:
    rewards = drawn(80, 6)
    whole, bounded = LinkModels(2, 1, fixed_units=True), LinkModels(2, 1, memory=10, fixed_units=True)
    found = []
    for models in (whole, bounded):
        state = models.init()
        for n in range(len(rewards)):
            state = models.learnt(state, rewards[n], n + 1, n > 10, partial(list, rewards[: n + 1]))
        found.append(state)
    assert all(len(rows) == 10 for rows in found[1].data)
    np.testing.assert_array_equal(found[1].models.sums[:, :, 0], 40)
    a, b = (state.models.fits[:, :, :, -1] for state in found)
    np.testing.assert_allclose(a, b, atol=0.2)
    sums = found[1].models.sums.copy()
    for arm in range(2):
        kernels.recount(found[1].models, found[1].data[arm], arm)
    np.testing.assert_allclose(found[1].models.sums, sums, rtol=1e-9, atol=1e-9)


def test_kernels_equal_their_plain_twins() -> None:
    one, two = learnt(drawn(30, 7)), learnt(drawn(30, 7))
    x, fast, slow = np.array([0.4]), np.ones((2, 2)), np.ones((2, 2))
    kernels.visit(one.models, one.data[0], 0, 8, 5)
    kernels.share(one.models, HYPERPRIORS)
    kernels.judge(one.models, one.weights, one.dispersions, DISPERSIONS, 1, x, 2.0, 0.1)
    kernels.moments(one.models, one.weights, x, fast)
    plain(kernels.visit)(two.models, two.data[0], 0, 8, 5)
    plain(kernels.share)(two.models, HYPERPRIORS)
    plain(kernels.judge)(two.models, two.weights, two.dispersions, DISPERSIONS, 1, x, 2.0, 0.1)
    plain(kernels.moments)(two.models, two.weights, x, slow)
    np.testing.assert_allclose(fast, slow, rtol=1e-12)
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-12)
    for a, b in zip(one.models, two.models, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
