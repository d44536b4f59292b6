"""Objectives of mixtures against numerical integration."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import integrate
from scipy.special import ndtr

from polyarm import ExpectedShortfall, ExponentialUtility, Objective, ProbabilityAbove, Quantile
from polyarm.errors import InvalidArgument, UnknownName
from polyarm.kernels import objectives as kernels
from polyarm.kernels._jit import plain
from polyarm.models import MEAN, as_objective
from polyarm.types import Array
from tests.statistics.mutants import mutant

RNG = np.random.default_rng(0)
OBJECTIVES: dict[str, Objective] = {
    str(o): o
    for o in (
        MEAN,
        Quantile(0.001),
        Quantile(0.1),
        Quantile(0.5),
        Quantile(0.97),
        ExpectedShortfall(0.01),
        ExpectedShortfall(0.1),
        ExpectedShortfall(0.9),
        ProbabilityAbove(1.0),
        ExponentialUtility(1.5),
        ExponentialUtility(-0.3),
    )
}


def mixture(n: int, n_values: int, spread: float = 3.0) -> tuple[Array, Array, Array]:
    """Weights, means and variances of n normals and some single values."""
    variances = np.append(RNG.random(n) * 2 + 0.05, np.zeros(n_values))
    return RNG.dirichlet(np.ones(n + n_values)), spread * RNG.standard_normal(n + n_values), variances


MIXTURES = {
    "one normal": mixture(1, 0),
    "three normals": mixture(3, 0),
    "far apart": mixture(3, 0, 100.0),
    "normals and a single value": mixture(2, 1),
    "a normal and three single values": mixture(1, 3),
    "tiny and wide": (np.array([0.6, 0.3, 0.1]), np.array([0.0, 1.0, 1.0]), np.array([1e-8, 1.0, 1e4])),
    "seven": mixture(4, 3),
}


def distribution(y: float, weights: Array, means: Array, variances: Array) -> float:
    normal = variances > 0
    below = ndtr((y - means[normal]) / np.sqrt(variances[normal]))
    return float(weights[normal] @ below + weights[~normal] @ (means[~normal] <= y))


def quantile(p: float, *parts: Array) -> float:
    """Smallest y whose distribution function reaches p, by halving."""
    _, means, variances = parts
    low, high = (means - 40 * np.sqrt(variances)).min() - 1, (means + 40 * np.sqrt(variances)).max() + 1
    for _ in range(120):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if distribution(middle, *parts) >= p else (middle, high)
    return float(high)


def expectation(function: Any, parts: tuple[Array, ...], *breaks: float) -> float:
    """E[function(Y)] by quadrature, component by component."""
    total = 0.0
    for w, m, v in zip(*parts, strict=True):
        if v == 0:
            total += w * function(m)
            continue
        s = np.sqrt(v)
        ends = sorted({m - 40 * s, m - 8 * s, m - 2 * s, m, m + 2 * s, m + 8 * s, m + 40 * s, *breaks})
        scale = 1 / np.sqrt(2 * np.pi * v)
        for a, b in pairwise(ends):
            total += (
                w
                * integrate.quad(
                    lambda y, m=m, v=v, scale=scale: function(y) * scale * math.exp(-0.5 * (y - m) ** 2 / v),
                    *(a, b),
                    epsabs=1e-13,
                    epsrel=1e-11,
                )[0]
            )
    return float(total)


def by_integration(objective: Objective, *parts: Array) -> float:
    if isinstance(objective, Quantile):
        return quantile(objective.p, *parts)
    if isinstance(objective, ExpectedShortfall):
        q = quantile(objective.p, *parts)
        return q + expectation(lambda y: min(y - q, 0.0), parts, q) / objective.p
    if isinstance(objective, ProbabilityAbove):
        v = objective.value
        return expectation(lambda y: float(y > v), parts, v)
    if isinstance(objective, ExponentialUtility):
        r = objective.risk_aversion
        return float(-np.log(expectation(lambda y: math.exp(-r * y), parts)) / r)
    return expectation(lambda y: y, parts)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("kind", MIXTURES)
@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
def test_formulas_agree_with_numerical_integration(name: str, kind: str) -> None:
    objective, parts = OBJECTIVES[name], MIXTURES[kind]
    if isinstance(objective, ExponentialUtility) and kind in ("far apart", "tiny and wide"):
        pytest.skip("the integrand overflows")
    assert float(objective.of_mixture(*parts)) == pytest.approx(by_integration(objective, *parts), rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_compiled_equals_plain_and_weights_need_no_sum(name: str) -> None:
    functional = OBJECTIVES[name].functional
    for parts in MIXTURES.values():
        one, other = np.empty(1), np.empty(1)
        kernels.worth_of_rows(parts[0][None], parts[1][None], parts[2][None], functional, one)
        plain(kernels.worth_of_rows)(7 * parts[0][None], parts[1][None], parts[2][None], functional, other)
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


def test_single_values_are_counted_exactly() -> None:
    dice = (np.full(6, 1 / 6), np.arange(1.0, 7.0), np.zeros(6))
    assert float(Quantile(0.5).of_mixture(*dice)) == pytest.approx(3)
    assert float(Quantile(0.51).of_mixture(*dice)) == pytest.approx(4)
    assert float(ExpectedShortfall(1 / 3).of_mixture(*dice)) == pytest.approx(1.5)
    assert float(ExpectedShortfall(0.25).of_mixture(*dice)) == pytest.approx((1 / 6 * 1 + 1 / 12 * 2) / 0.25)
    assert float(ProbabilityAbove(4).of_mixture(*dice)) == pytest.approx(2 / 6)


def test_values_move_and_stretch_with_the_rewards() -> None:
    w, m, v = MIXTURES["normals and a single value"]
    for objective in (MEAN, Quantile(0.2), ExpectedShortfall(0.2)):
        moved = objective.of_mixture(w, 1000 + 50 * m, 2500 * v)
        assert float(moved) == pytest.approx(1000 + 50 * float(objective.of_mixture(w, m, v)))
    near = ExponentialUtility(1e-7).of_mixture(w, m, v)
    assert float(near) == pytest.approx(float(MEAN.of_mixture(w, m, v)), abs=1e-5)


def test_many_mixtures_at_once_broadcast() -> None:
    means = RNG.standard_normal((5, 3, 2))
    values = Quantile(0.3).of_mixture([0.4, 0.6], means, 1.0)
    assert values.shape == (5, 3)
    assert values[4, 1] == pytest.approx(float(Quantile(0.3).of_mixture([0.4, 0.6], means[4, 1], [1.0, 1.0])))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_names_are_read_back(name: str) -> None:
    assert as_objective(name) == OBJECTIVES[name]
    assert as_objective(OBJECTIVES[name]) is OBJECTIVES[name]
    assert as_objective(str(ProbabilityAbove(1 / 3))) == ProbabilityAbove(1 / 3)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("median", UnknownName),
        ("quantile", InvalidArgument),
        ("quantile:x", InvalidArgument),
        ("quantile:1", InvalidArgument),
        ("shortfall:0", InvalidArgument),
        ("above:inf", InvalidArgument),
        ("utility:0", InvalidArgument),
        ("mean:1", UnknownName),
        (None, UnknownName),
    ],
)
def test_bad_objectives(text: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"must be .*, got"):
        as_objective(text)


@pytest.mark.parametrize("kind", ["one normal", "three normals"])
def test_a_quantile_takes_a_few_steps(kind: str) -> None:
    """Newton's method doubles the digits at every step; halving an interval would need forty."""
    parts, asked = kernels.Parts(*MIXTURES[kind]), list[float]()

    def below(parts: kernels.Parts, n: int, y: float) -> tuple[float, float]:
        asked.append(y)
        return plain(kernels.below)(parts, n, y)

    n = len(parts.weight)
    for p, z in ((0.1, -1.2815515655446004), (0.5, 0.0), (0.97, 1.8807936081512509)):
        asked.clear()
        mutant(kernels.quantile, {"below": below})(parts, n, p, z)
        assert len(asked) < 12


def test_shares_and_densities_below_a_reward() -> None:
    for weights, means, variances in MIXTURES.values():
        parts, normal = kernels.Parts(weights, means, variances), variances > 0
        for y in (-2.0, 0.4, 3.0):
            share, density = plain(kernels.below)(parts, len(weights), y)
            assert share == pytest.approx(distribution(y, weights, means, variances))
            sd = np.sqrt(variances[normal])
            heights = np.exp(-0.5 * ((y - means[normal]) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
            assert density == pytest.approx(weights[normal] @ heights)
