"""Every formula of the generalised linear kernels against derivatives, quadrature and dense algebra."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from polyarm.kernels import generalized
from polyarm.kernels._jit import plain
from polyarm.kernels.generalized import CLOSE, EDGE, GAMMA, LARGEST, MARKS, NARROW, POISSON
from polyarm.types import Array
from tests.kernels.script import Script

CUTS = np.array([-1.3, 0.2, 1.7])
SHAPE = np.array([2.5])
PRIOR = np.array([[0.3, -0.5, 0.1], [2.0, 0.7, 1.3]])
U = np.array([0.4, -0.2, 0.9])
V = np.array([[0.5, 0.1, -0.2], [0.1, 0.3, 0.05], [-0.2, 0.05, 0.7]])
DATA = np.array([[1.0, 0.0, -0.6, 2.0], [0.3, -1.2, 0.8, 0.0], [-0.7, 0.4, 1.1, 3.0], [0.5, 0.9, -0.2, 1.0]])


def log_probability(extra: Array, eta: float, mark: int) -> float:
    above = np.array([1.0, *expit(eta - extra), 0.0])
    return float(np.log(above[mark] - above[mark + 1]))


def derivatives(f: Callable[[float], float], at: float, h: float = 1e-4) -> tuple[float, float]:
    return (f(at + h) - f(at - h)) / (2 * h), (f(at + h) - 2 * f(at) + f(at - h)) / h**2


def log_density(family: int, extra: Array, eta: float, y: float) -> float:
    if family == POISSON:
        return y * eta - math.exp(eta)
    if family == GAMMA:
        return float(-extra[0] * (eta + y * math.exp(-eta)))
    return log_probability(extra, eta, int(y))


def normal_mean(f: Callable[[float], float], m: float, v: float) -> float:
    sd = math.sqrt(v)
    return float(quad(lambda t: f(m + sd * t) * math.exp(-t * t / 2) / math.sqrt(2 * math.pi), -9, 9, epsabs=1e-10)[0])


@pytest.mark.parametrize("t", [-800.0, -699.0, -3.0, 0.0, 5.0])
def test_the_logistic_function(t: float) -> None:
    assert plain(generalized.sigmoid)(t) == pytest.approx(float(expit(t)) if t > -700 else 0.0, rel=1e-12, abs=0)


@pytest.mark.parametrize("mark", [0, 1, 2, 3])
@pytest.mark.parametrize("eta", [-0.8, 1.9])
def test_slopes_of_marks_are_derivatives(mark: int, eta: float) -> None:
    slope, bend = plain(generalized.mark_slope)(CUTS, eta, float(mark))
    first, second = derivatives(lambda t: log_probability(CUTS, t, mark), eta)
    assert slope == pytest.approx(first, abs=1e-7)
    assert bend == pytest.approx(-second, abs=1e-6)


@pytest.mark.parametrize("family", [MARKS, POISSON, GAMMA])
@pytest.mark.parametrize("y", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("v", [0.2, 0.9])
def test_expected_slopes_are_those_of_quadrature(family: int, y: float, v: float) -> None:
    extra, m = (CUTS if family == MARKS else SHAPE), 0.7
    assert (v < NARROW) == (v == 0.2)

    def at(order: int) -> Callable[[float], float]:
        return lambda eta: (-1.0) ** order * derivatives(lambda t: log_density(family, extra, t, y), eta, 1e-3)[order]

    s, w = plain(generalized.expected_slope)(family, extra, m, v, y)
    tolerance = 2e-4 if family == MARKS and v < NARROW else 1e-5
    assert s == pytest.approx(normal_mean(at(0), m, v), abs=tolerance)
    assert w == pytest.approx(normal_mean(at(1), m, v), abs=tolerance)


def test_means_are_cut_off_before_they_overflow() -> None:
    s, w = plain(generalized.expected_slope)(POISSON, SHAPE, 700.0, 300.0, 4.0)
    assert (s, w) == (4.0 - math.exp(LARGEST), math.exp(LARGEST))
    s, w = plain(generalized.expected_slope)(GAMMA, SHAPE, -700.0, 300.0, 4.0)
    assert w == pytest.approx(2.5 * 4.0 * math.exp(LARGEST), rel=1e-12)
    assert s == pytest.approx(w - 2.5, rel=1e-12)
    assert plain(generalized.mean_at)(POISSON, SHAPE, 1e3) == math.exp(LARGEST)
    out = np.empty((2, 1))
    plain(generalized.moments)(GAMMA, SHAPE, np.array([[200.0]]), np.array([[[1e3]]]), np.ones(1), out)
    assert out[:, 0] == pytest.approx([math.exp(LARGEST), math.exp(LARGEST) * math.sqrt(math.expm1(LARGEST))], rel=1e-9)


def test_the_predictor_reads_the_lower_triangle() -> None:
    f = np.array([0.7, 0.0, -1.3])
    lower = np.tril(V) + 100.0 * np.triu(np.ones((3, 3)), 1)
    m, v = plain(generalized.predictor)(U, lower, f)
    assert m == pytest.approx(f @ U, rel=1e-12)
    assert v == pytest.approx(f @ V @ f, rel=1e-12)
    assert plain(generalized.predictor)(U, -V, f)[1] == 0.0


@pytest.mark.parametrize("D", [1, 2, 5])
def test_inverses(D: int) -> None:
    root = np.random.default_rng(D).standard_normal((D, D + 1))
    H = root @ root.T
    found = np.empty((D, D))
    plain(generalized.invert)(np.tril(H), found)
    np.testing.assert_allclose(found, np.linalg.inv(H), rtol=1e-8)


def test_a_pivot_that_is_gone_is_put_back() -> None:
    found = np.empty((2, 2))
    plain(generalized.invert)(np.array([[9.0, 0.0], [6.0, 4.0]]), found)  # (3, 2)(3, 2)'
    low = 1e-14 * 4.0
    np.testing.assert_allclose(found, [[1 / 9 + (4 / 9) / low, -2 / 3 / low], [-2 / 3 / low, 1 / low]], rtol=1e-9)


def expected_step(family: int, extra: Array, start: Array, spread: Array, n: int) -> tuple[Array, Array]:
    """The step of U and the new V by dense algebra."""
    H, g = np.diag(PRIOR[1]), PRIOR[1] * (PRIOR[0] - start)
    for *features, y in DATA[:n]:
        f = np.array(features)
        s, w = plain(generalized.expected_slope)(family, extra, float(f @ start), float(f @ spread @ f), y)
        H, g = H + w * np.outer(f, f), g + s * f
    covariance = np.linalg.inv(H)
    return covariance @ g, covariance


@pytest.mark.parametrize("family", [MARKS, POISSON])
@pytest.mark.parametrize("far", [False, True])
def test_a_newton_step_is_that_of_dense_algebra(family: int, far: bool) -> None:
    extra = CUTS if family == MARKS else SHAPE
    start, wide = U.copy(), V.copy()
    plain(generalized.fit)(family, extra, PRIOR, DATA, 3, start, wide)
    start += 4.0 if far else 0.1
    found, spread = start.copy(), V.copy()
    length = plain(generalized.newton_step)(family, extra, PRIOR, DATA, 3, found, spread)
    step, covariance = expected_step(family, extra, start, V, 3)
    expected = math.sqrt(step @ np.linalg.solve(covariance, step))
    assert (expected > 1.0) == far
    assert length == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(spread, covariance, rtol=1e-9)
    np.testing.assert_allclose(found, start + step / max(1.0, expected), rtol=1e-9)


@pytest.mark.parametrize(("family", "extra"), [(MARKS, CUTS), (POISSON, SHAPE)])
def test_a_fit_ends_where_steps_are_short(family: int, extra: Array) -> None:
    found, spread = U + 3.0, V.copy()
    plain(generalized.fit)(family, extra, PRIOR, DATA, 4, found, spread)
    step, covariance = expected_step(family, extra, found, spread, 4)
    assert math.sqrt(step @ np.linalg.solve(covariance, step)) < CLOSE**2  # a step more, and its error is squared
    alone, before = U + 3.0, V.copy()
    steps = 0
    while plain(generalized.newton_step)(family, extra, PRIOR, DATA, 4, alone, before) >= CLOSE:
        steps += 1
    assert steps > 2
    np.testing.assert_array_equal(found, alone)


def test_one_reward_by_a_rank_one_update() -> None:
    found, spread = U.copy(), V.copy()
    plain(generalized.add)(POISSON, SHAPE, DATA[2], found, spread)
    f = DATA[2, :3]
    v = f @ V @ f
    s, w = plain(generalized.expected_slope)(POISSON, SHAPE, float(f @ U), float(v), 3.0)
    np.testing.assert_allclose(spread, np.linalg.inv(np.linalg.inv(V) + w * np.outer(f, f)), rtol=1e-9)
    np.testing.assert_allclose(found, U + V @ f * s / (1 + w * v), rtol=1e-9)


def test_draws_are_means_at_drawn_predictors() -> None:
    centres, spreads, f = np.stack([U, -U]), np.stack([V, 2 * V]), DATA[1, :3]
    out, normals = np.empty((2, 2)), [0.3, -1.1, 0.8, 2.0]
    plain(generalized.draw_means)(MARKS, CUTS, centres, spreads, f, out, Script(normals=normals))
    for arm in range(2):
        eta = f @ centres[arm] + math.sqrt(f @ spreads[arm] @ f) * np.array(normals[2 * arm : 2 * arm + 2])
        np.testing.assert_allclose(out[:, arm], expit(eta[:, None] - CUTS).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("family", [MARKS, GAMMA])
def test_moments_of_mean_rewards_are_those_of_quadrature(family: int) -> None:
    extra, f = (CUTS if family == MARKS else SHAPE), DATA[2, :3]
    out = np.empty((2, 2))
    plain(generalized.moments)(family, extra, np.stack([U, -U]), np.stack([V, 0.5 * V]), f, out)
    for arm, (m, v) in enumerate([(f @ U, f @ V @ f), (-f @ U, 0.5 * f @ V @ f)]):

        def reward(eta: float, power: int) -> float:
            return float(expit(eta - CUTS).sum() if family == MARKS else math.exp(eta)) ** power

        first = normal_mean(lambda eta: reward(eta, 1), m, v)
        second = normal_mean(lambda eta: reward(eta, 2), m, v)
        assert out[0, arm] == pytest.approx(first, rel=1e-5)
        assert out[1, arm] == pytest.approx(math.sqrt(second - first**2), rel=1e-4)


@pytest.mark.parametrize("mark", [0, 1, 2, 3])
def test_cut_points_have_the_gradient_and_hessian_of_their_log_likelihood(mark: int) -> None:
    eta, weight, h = 0.6, 1.7, 1e-4
    g, H = np.full(3, 5.0), np.full((3, 3), 7.0)
    plain(generalized.add_mark)(CUTS, eta, mark, weight, g, H)
    steps = h * np.eye(3)

    def f(cuts: Array) -> float:
        return weight * log_probability(cuts, eta, mark)

    gradient = [(f(CUTS + d) - f(CUTS - d)) / (2 * h) for d in steps]
    hessian = [
        [(f(CUTS + a + b) - f(CUTS + a - b) - f(CUTS - a + b) + f(CUTS - a - b)) / (4 * h * h) for b in steps]
        for a in steps
    ]
    np.testing.assert_allclose(g - 5.0, gradient, atol=1e-6)
    np.testing.assert_allclose(np.tril(H - 7.0), np.tril(-np.array(hessian)), atol=1e-5)


def test_a_mark_that_cannot_be_keeps_the_cut_points_finite() -> None:
    g, H = np.zeros(2), np.zeros((2, 2))
    plain(generalized.add_mark)(np.array([0.0, 1e-300]), 900.0, 1, 1.0, g, H)
    assert np.isfinite(g).all()
    assert np.isfinite(H).all()


@pytest.mark.parametrize("close", [False, True])
def test_a_step_of_the_cut_points(close: bool) -> None:
    """Newton's step, but no cut goes more than half of the way to its neighbour."""
    cuts = np.array([-2.0, 0.4, 0.5])
    eta = np.array([0.3, -1.0, 2.0, 0.7, 0.1, 0.4])
    y = np.array([0, 0, 3, 3, 0, 3])
    if not close:  # near the mode
        for _ in range(20):
            plain(generalized.cut_step)(cuts, 0.5, eta, y)
        cuts += np.array([-0.02, 0.02, 0.02])
    g, H = np.zeros(3), np.zeros((3, 3))
    for mark in range(4):
        plain(generalized.add_mark)(cuts, 0.0, mark, 0.5, g, H)
    for at, mark in zip(eta, y, strict=True):
        plain(generalized.add_mark)(cuts, at, mark, 1.0, g, H)
    step = np.linalg.solve(np.tril(H) + np.tril(H, -1).T, g)
    closing = step[:-1] - step[1:]
    share = min(1.0, *(0.5 * np.diff(cuts)[closing > 0] / closing[closing > 0]), 1.0)
    assert (share < 1.0) == close
    found = cuts.copy()
    size = plain(generalized.cut_step)(found, 0.5, eta, y)
    np.testing.assert_allclose(found, cuts + share * step, rtol=1e-8)
    assert size == pytest.approx(share * np.abs(step).max(), rel=1e-8)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_cut_points_stay_within_the_edges(side: float) -> None:
    """Where all rewards say the same the log posterior is a plane far out: steps end half way to the edge."""
    cuts = np.array([-1.0, 0.5, 2.0])
    eta, y = np.full(40, 25.0 * side), np.full(40, 0 if side > 0 else 3)
    for _ in range(200):
        before = cuts.copy()
        plain(generalized.cut_step)(cuts, 1e-9, eta, y)
        assert np.abs(cuts).max() <= EDGE
        assert np.diff(cuts).min() > 0.0
        if side > 0:
            assert cuts[2] <= before[2] + 0.5 * (EDGE - before[2]) + 1e-12
        else:
            assert cuts[0] >= before[0] - 0.5 * (EDGE + before[0]) - 1e-12
    assert np.abs(cuts).max() > 20.0


def test_every_arm_has_as_many_draws_as_asked_for() -> None:
    centres, spreads, f = np.stack([U, -U, 0.5 * U]), np.stack([V, 2 * V, 0.3 * V]), DATA[1, :3]
    out, normals = np.empty((2, 3)), [0.3, -1.1, 0.8, 2.0, -0.6, 1.3]
    plain(generalized.draw_means)(MARKS, CUTS, centres, spreads, f, out, Script(normals=normals))
    for arm in range(3):
        eta = f @ centres[arm] + math.sqrt(f @ spreads[arm] @ f) * np.array(normals[2 * arm : 2 * arm + 2])
        np.testing.assert_allclose(out[:, arm], expit(eta[:, None] - CUTS).sum(axis=1), rtol=1e-12)
