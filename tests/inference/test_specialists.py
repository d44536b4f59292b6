"""Posteriors of the models that know the kind of reward, against quadrature over a grid of coefficients."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from polyarm.errors import PolyarmError
from polyarm.inference import ConjugateEngine
from polyarm.inference import generalized as engines
from polyarm.inference.beta import BetaEngine
from polyarm.inference.generalized import Family, GeneralizedEngine, GeneralizedState, gamma_shape
from polyarm.inference.hurdle import HurdleEngine
from polyarm.kernels import generalized as kernels
from polyarm.kernels._jit import plain
from polyarm.models import LinearGaussian, NormalInverseGamma
from polyarm.policies import make_policy
from polyarm.types import Array

FAMILIES: tuple[Family, ...] = ("logistic", "ordinal", "poisson", "gamma")
POINTS = [np.array([1.0, 1.0]), np.array([-0.7, 1.0])]


def draw_reward(family: Family, eta: float, rng: np.random.Generator) -> float:
    if family == "logistic":
        return float(rng.random() < expit(eta))
    if family == "ordinal":
        return 1.0 + float((rng.random() < expit(eta - np.array([-1.5, -0.5, 0.8, 1.5]))).sum())
    return float(rng.poisson(np.exp(eta))) if family == "poisson" else float(rng.gamma(2.0, np.exp(eta) / 2))


def data_of(family: Family, n: int, seed: int) -> list[tuple[Array, float]]:
    rng = np.random.default_rng(seed)
    contexts = np.column_stack([rng.standard_normal(n), np.ones(n)])
    return [(x, draw_reward(family, float(x @ [0.8, -0.4]), rng)) for x in contexts]


def learnt(engine: GeneralizedEngine, data: list[tuple[Array, float]]) -> GeneralizedState:
    state, rng = engine.init(), np.random.default_rng(0)
    for x, y in data:
        state = engine.update(state, x, 0, y, rng)
    return state


def log_likelihood(family: Family, extra: Array, eta: Array, y: float) -> Array:
    if family == "poisson":
        return np.asarray(y * eta - np.exp(eta))
    if family == "gamma":
        return np.asarray(-extra[0] * (eta + y * np.exp(-eta)))
    if family == "logistic":
        return np.asarray(log_expit(eta if y else -eta))
    cuts = np.concatenate([[-np.inf], extra, [np.inf]])
    k = int(y) - 1
    return np.asarray(np.log(expit(eta - cuts[k]) - expit(eta - cuts[k + 1]) + 1e-300))


def exact(family: Family, extra: Array, data: list[tuple[Array, float]], var: float) -> tuple[Array, Array, Array]:
    """Mean (2,) and covariance of the coefficients, and moments (2, points) of the mean rewards, on a grid."""
    axis = np.linspace(-7, 7, 561) * var**0.5
    a, b = np.meshgrid(axis, axis, indexing="ij")
    log_p = -0.5 * (a**2 + b**2) / var
    for x, y in data:
        log_p += log_likelihood(family, extra, a * x[0] + b * x[1], y)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = np.array([(p * a).sum(), (p * b).sum()])
    gaps = np.stack([a - mean[0], b - mean[1]])
    covariance = np.einsum("iab,jab,ab->ij", gaps, gaps, p)
    found = []
    for x in POINTS:
        eta = a * x[0] + b * x[1]
        if family in ("logistic", "ordinal"):
            cuts = extra if family == "ordinal" else np.zeros(1)
            mu = expit(eta[..., None] - cuts).sum(axis=2) + (family == "ordinal")
        else:
            mu = np.exp(eta)
        centre = (p * mu).sum()
        found.append((centre, ((p * (mu - centre) ** 2).sum()) ** 0.5))
    return mean, covariance, np.array(found).T


def error(engine: GeneralizedEngine, data: list[tuple[Array, float]], state: GeneralizedState, var: float) -> float:
    """Largest error of means in posterior sds, and of sds as shares, of coefficients and mean rewards."""
    mean, covariance, moments = exact(engine.family, state.extra, data, var)
    sd = np.sqrt(np.diag(covariance))
    errors = [np.abs(state.centres[0] - mean) / sd, np.abs(np.sqrt(np.diag(state.covariances[0])) / sd - 1)]
    for x, (centre, spread) in zip(POINTS, moments.T, strict=True):
        found = engine.moments(state, x)[:, 0]
        errors.append(np.array([abs(found[0] - centre) / spread, abs(found[1] / spread - 1)]))
    return float(np.concatenate(errors).max())


def limit(family: Family, n: int) -> float:
    """A twentieth; with a logarithmic link and a handful of rewards the sd of e^eta hangs on a tail."""
    return 0.3 if family in ("poisson", "gamma") and n < 40 else 0.05


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [1, 6, 40, 150])
def test_coefficients_and_mean_rewards_against_quadrature(family: Family, n: int) -> None:
    engine, data = GeneralizedEngine(1, 2, family, prior_var=1.0), data_of(family, n, seed=n)
    assert error(engine, data, learnt(engine, data), 1.0) < limit(family, n)


@pytest.mark.parametrize("family", FAMILIES)
def test_planted_bugs_are_seen(family: Family) -> None:
    data = data_of(family, 40, seed=1)
    engine, twice, narrow = (GeneralizedEngine(1, 2, family, prior_var=var) for var in (1.0, 1.0, 0.04))
    assert error(engine, data, learnt(engine, data), 1.0) < 0.05
    assert error(twice, data, learnt(twice, data + data), 1.0) > 0.05  # every reward counted twice
    assert error(narrow, data, learnt(narrow, data), 1.0) > 0.05  # a wrong prior
    short = learnt(engine, data[:-6])
    assert error(engine, data, short, 1.0) > 0.05  # rewards forgotten


@pytest.mark.parametrize("family", FAMILIES)
def test_rank_one_updates_between_fits_stay_close(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, data = GeneralizedEngine(1, 2, family), data_of(family, 300, seed=2)
    whole = learnt(engine, data)
    monkeypatch.setattr(engines, "WORK", 50)
    lazy = learnt(engine, data)
    assert lazy.stale[0] > 0 or family in ("ordinal", "gamma")
    sd = np.sqrt(np.diag(whole.covariances[0]))
    assert (np.abs(lazy.centres[0] - whole.centres[0]) < 0.1 * sd).all()
    assert np.sqrt(np.diag(lazy.covariances[0])) == pytest.approx(sd, rel=0.03)


@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_equal_their_plain_twins(family: Family) -> None:
    engine, data = GeneralizedEngine(1, 2, family), data_of(family, 8, seed=3)
    state = learnt(engine, data)
    law = (engines.FAMILIES[family], state.extra)
    U, V = state.centres[0].copy(), state.covariances[0].copy()
    U += 0.3
    u, v = U.copy(), V.copy()
    kernels.fit(*law, engine._prior, state.rows[0], 8, U, V)
    plain(kernels.fit)(*law, engine._prior, state.rows[0], 8, u, v)
    np.testing.assert_allclose(U, u, rtol=1e-12)
    np.testing.assert_allclose(V, v, rtol=1e-12)


def test_draws_have_the_moments() -> None:
    for family in FAMILIES:
        engine = GeneralizedEngine(1, 2, family)
        state = learnt(engine, data_of(family, 60, seed=4))
        draws = engine.draw_means(state, POINTS[0], 40_000, np.random.default_rng(5))[:, 0]
        mean, sd = engine.moments(state, POINTS[0])[:, 0]
        assert draws.mean() == pytest.approx(mean, abs=4.5 * sd / 200)
        assert draws.std() == pytest.approx(sd, rel=0.04)


def test_cut_points_go_to_their_mode_and_to_the_truth() -> None:
    rng = np.random.default_rng(6)
    eta, truth = rng.standard_normal(4000), np.array([-1.5, -0.5, 0.8, 1.5])
    y = (rng.random(4000)[:, None] < expit(eta[:, None] - truth)).sum(axis=1)
    start = GeneralizedEngine(1, 1, "ordinal").init().extra

    def loss(cuts: Array) -> float:
        edges = np.concatenate([[-np.inf], cuts, [np.inf]])
        p, guess = expit(eta - edges[y]) - expit(eta - edges[y + 1]), np.diff(expit(edges))
        return float(-np.log(np.maximum(p, 1e-300)).sum() - 0.5 * np.log(np.maximum(guess, 1e-300)).sum())

    cuts = start.copy()
    for _ in range(20):
        kernels.cut_step(cuts, 0.5, eta, y)
    assert cuts == pytest.approx(minimize(loss, start, method="BFGS").x, abs=1e-3)
    assert cuts == pytest.approx(truth, abs=0.15)


def test_gamma_shape_is_found() -> None:
    rng = np.random.default_rng(7)
    for shape in (0.5, 2.0, 20.0):
        ratio = np.log(rng.gamma(shape, 1 / shape, 4000))
        assert gamma_shape(ratio, np.array([4000]), 2) == pytest.approx(shape, rel=0.08)


def test_beta_posterior() -> None:
    engine, rng = BetaEngine(2, 1), np.random.default_rng(8)
    state, one = engine.init(), np.ones(1)
    for y in [1, 0, 0, 1, 0, 0, 0]:
        state = engine.update(state, one, 0, y, rng)
    assert engine.moments(state, one)[:, 0] == pytest.approx([stats.beta(3, 6).mean(), stats.beta(3, 6).std()])
    draws = engine.draw_means(state, one, 5000, rng)
    assert stats.kstest(draws[:, 0], stats.beta(3, 6).cdf).pvalue > 1e-4
    assert stats.kstest(draws[:, 1], "uniform").pvalue > 1e-4
    assert stats.kstest(draws[:, 0], stats.beta(6, 3).cdf).pvalue < 1e-4  # zeros and ones swapped


def test_linear_moments_are_those_of_the_draws() -> None:
    engine = ConjugateEngine([LinearGaussian(NormalInverseGamma(2)), LinearGaussian(NormalInverseGamma(2), 0.5)])
    state, rng = engine.init(), np.random.default_rng(9)
    for t in range(60):
        state = engine.update(state, rng.standard_normal(2), t % 2, rng.normal(), rng)
    draws = engine.draw_means(state, POINTS[0], 100_000, rng)
    mean, sd = engine.moments(state, POINTS[0])
    assert draws.mean(axis=0) == pytest.approx(mean, abs=0.01)
    assert draws.std(axis=0) == pytest.approx(sd, rel=0.015)


def hurdle_learnt(engine: HurdleEngine, n: int) -> object:
    state, rng = engine.init(), np.random.default_rng(10)
    for _ in range(n):
        x = np.array([rng.standard_normal(), 1.0])
        y = float(np.exp(x @ [0.3, 1.0] + 0.6 * rng.standard_normal())) if rng.random() < expit(x @ [0.5, 0.0]) else 0.0
        state = engine.update(state, x, 0, y, rng)
    return state


@pytest.mark.parametrize("amounts", ["log-normal", "gamma", "normal"])
def test_hurdle_mean_is_share_times_amount(amounts: str) -> None:
    engine = HurdleEngine(1, 2, amounts)  # type: ignore[arg-type]
    state = hurdle_learnt(engine, 400)
    draws = engine.draw_means(state, POINTS[0], 50_000, np.random.default_rng(11))[:, 0]  # type: ignore[arg-type]
    mean, sd = engine.moments(state, POINTS[0])[:, 0]  # type: ignore[arg-type]
    assert draws.mean() == pytest.approx(mean, rel=0.01)
    assert draws.std() == pytest.approx(sd, rel=0.05)
    truth = expit(0.5) * np.exp(1.3 + 0.18)
    if amounts != "normal":  # whose mean is no line here
        assert abs(mean - truth) < 4 * sd


def test_log_normal_amounts_against_quadrature() -> None:
    """One coefficient, and the noise variance: the law of the drawn mean of an amount that is always paid."""
    engine, rng = HurdleEngine(1, 1), np.random.default_rng(12)
    state, one, amounts = engine.init(), np.ones(1), np.exp(rng.normal(1.0, 0.5, 12))
    for y in amounts:
        state = engine.update(state, one, 0, float(y), rng)
    share = engine._hurdle.draw_means(state.hurdle, one, 20_000, np.random.default_rng(13))[:, 0]
    draws = np.log(engine.draw_means(state, one, 20_000, np.random.default_rng(13))[:, 0] / share)
    w, log_s2 = np.meshgrid(np.linspace(-3, 5, 1601), np.linspace(-5, 5, 801), indexing="ij")
    s2 = np.exp(log_s2)
    log_p = -0.5 * (w**2 / s2) - 0.5 * log_s2 - 2 * log_s2 - 1 / s2 + log_s2  # N(w | 0, s2) IG(s2 | 1, 1), in log s2
    for y in np.log(amounts):
        log_p += -0.5 * (y - w) ** 2 / s2 - 0.5 * log_s2
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    level = w + 0.5 * s2

    def cdf(t: Array) -> Array:
        order = np.argsort(level, axis=None)
        return np.asarray(np.interp(t, level.ravel()[order], p.ravel()[order].cumsum()))

    assert stats.kstest(draws, cdf).pvalue > 1e-4
    assert stats.kstest(draws - 0.05, cdf).pvalue < 1e-4  # half of the noise variance forgotten, about


@pytest.mark.parametrize(
    ("name", "reward", "rule"),
    [
        ("beta", 0.5, "0 or 1"),
        ("logistic", 2.0, "0 or 1"),
        ("ordinal", 0.0, "a whole number from 1 to 5"),
        ("ordinal", 2.5, "a whole number from 1 to 5"),
        ("poisson", -1.0, "a whole number of at least 0"),
        ("poisson", 1.5, "a whole number of at least 0"),
        ("hurdle", -1.0, "0 or an amount above 0"),
    ],
)
def test_rewards_of_another_kind_are_refused(name: str, reward: float, rule: str) -> None:
    policy = make_policy(name, 2, 1)
    with pytest.raises(PolyarmError, match=f"reward must be {rule}, got "):
        policy.update(policy.init(), np.ones(1), 0, reward, np.random.default_rng(0))


@pytest.mark.parametrize("name", ["logistic-information", "poisson", "ordinal", "hurdle", "hurdle-information"])
def test_states_stay_finite_whatever_comes(name: str) -> None:
    """Huge and collinear contexts, the same reward for ever, the largest rewards."""
    kinds: dict[str, Callable[[int], float]] = {
        "logistic-information": lambda t: 1.0,
        "poisson": lambda t: 1e12 if t % 7 == 0 else 0.0,
        "ordinal": lambda t: 5.0,
        "hurdle": lambda t: 1e90 if t % 5 == 0 else 0.0,
        "hurdle-information": lambda t: 1e-90 if t % 5 == 0 else 0.0,
    }
    policy, rng = make_policy(name, 2, 3), np.random.default_rng(14)
    state = policy.init()
    for t in range(120):
        x = np.array([1.0, 1e7 if t % 3 == 0 else 1e-7, 1.0])
        choice = policy.choose(state, x, rng)
        assert np.isfinite(choice.scores).all()
        state = policy.update(state, x, t % 2, kinds[name](t), rng)
