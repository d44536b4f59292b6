"""Lines: what a reward adds, draws of means and worths number by number, shares of draws in which each is best."""

import numpy as np
import pytest
from scipy import stats

from polyarm.kernels import conjugate
from polyarm.kernels._jit import plain
from polyarm.kernels.objectives import ABOVE, EXPECTATION, Functional
from polyarm.types import Array, IntArray
from tests.kernels.script import Script

X = np.array([[0.7, -1.3], [0.2, 0.9], [0.0, 0.0]])


@pytest.mark.parametrize("known", [0.0, 0.6])
@pytest.mark.parametrize("among", [(True, True, True), (False, True, True)])
def test_wins_are_counted_draw_by_draw(known: float, among: tuple[bool, ...]) -> None:
    """x'w = m + sd e: m = x'U and sd = |R'^-1 x|, e = sqrt(s2) z with s2 = b / gamma or as known; ties go first."""
    rng, n_draws = np.random.default_rng(0), 60
    sqrt_information = np.triu(rng.standard_normal((3, 3, 3))) + 2.0 * np.eye(3)
    counts, noise_priors = np.array([3, 0, 7]), np.array([[1.5, 0.7, known]] * 3)
    gammas, normals = rng.uniform(0.3, 2.0, 180), rng.standard_normal(180)
    out = np.full((3, 3), np.nan)
    script = Script(normals, gammas)
    plain(conjugate.count_wins)(sqrt_information, counts, noise_priors, X, np.array(among), n_draws, out, script)
    shapes = [] if known else [(1.5 + 0.5 * n,) for n in counts for _ in range(n_draws)]
    assert script.asked == shapes
    for x, found in zip(X, out, strict=True):
        values = np.full((3, n_draws), -np.inf)
        for arm in range(3):
            R, rest = sqrt_information[arm, :2, :2], sqrt_information[arm, :2, 2]
            b = 0.7 + 0.5 * sqrt_information[arm, 2, 2] ** 2
            variance = known or b / gammas[arm * n_draws : (arm + 1) * n_draws]
            e = np.sqrt(variance) * normals[arm * n_draws : (arm + 1) * n_draws]
            if among[arm]:
                values[arm] = x @ np.linalg.solve(R, rest) + np.linalg.norm(np.linalg.solve(R.T, x)) * e
        expected = np.bincount(values.argmax(axis=0), minlength=3) / n_draws
        np.testing.assert_allclose(found, expected)


def lines() -> tuple[Array, IntArray, Array]:
    """Square-root information, counts and noise priors of three arms; the noise of the last is known."""
    rng = np.random.default_rng(0)
    sqrt_information = np.triu(rng.standard_normal((3, 3, 3))) + 2.0 * np.eye(3)
    return sqrt_information, np.array([3, 0, 7]), np.array([[1.5, 0.7, 0.0], [2.5, 0.4, 0.0], [1.5, 0.7, 0.6]])


def moments(sqrt_information: Array, x: Array) -> tuple[float, float]:
    """x'U and x'Vx."""
    R, rest = sqrt_information[:2, :2], sqrt_information[:2, 2]
    return float(x @ np.linalg.solve(R, rest)), float(np.sum(np.linalg.solve(R.T, x) ** 2))


def test_a_reward_is_information_about_its_arm() -> None:
    sqrt_information, counts, _ = lines()
    before, n = sqrt_information.copy(), counts.copy()
    plain(conjugate.learn)(sqrt_information, counts, 2, X[0], 1.7)
    row = np.append(X[0], 1.7)
    np.testing.assert_allclose(
        sqrt_information[2].T @ sqrt_information[2], before[2].T @ before[2] + np.outer(row, row)
    )
    np.testing.assert_array_equal(sqrt_information[:2], before[:2])
    assert (counts - n).tolist() == [0, 0, 1]


@pytest.mark.parametrize("functional", [Functional(EXPECTATION, 0.0, 0.0), Functional(ABOVE, 0.3, 0.0)])
def test_means_and_worths_are_drawn_around_the_lines(functional: Functional) -> None:
    """s2 = b / Gamma(a) or as known, x'w = m + sqrt(s2 q) z: the mean, or what N(x'w, s2) is worth."""
    rng, (sqrt_information, counts, noise_priors), out = np.random.default_rng(1), lines(), np.full((4, 3), np.nan)
    gammas, normals = rng.uniform(0.3, 2.0, 8).tolist(), rng.standard_normal(12).tolist()
    script = Script(normals, gammas)
    if functional.kind == EXPECTATION:
        plain(conjugate.draw_means)(sqrt_information, counts, noise_priors, X[0], out, script)
    else:
        plain(conjugate.draw_worths)(sqrt_information, counts, noise_priors, X[0], functional, out, script)
    assert script.asked == [(1.5 + 1.5,)] * 4 + [(2.5,)] * 4
    drawn, z = iter(gammas), iter(normals)
    for arm in range(3):
        m, q = moments(sqrt_information[arm], X[0])
        b = noise_priors[arm, 1] + 0.5 * sqrt_information[arm, 2, 2] ** 2
        for draw in range(4):
            variance = 0.6 if arm == 2 else b / next(drawn)
            mean = m + np.sqrt(variance * q) * next(z)
            worth = mean if functional.kind == EXPECTATION else stats.norm.sf(0.3, mean, np.sqrt(variance))
            assert out[draw, arm] == pytest.approx(worth)


def test_the_worth_of_an_expectation_is_the_mean() -> None:
    (sqrt_information, counts, noise_priors), means, worths = lines(), np.empty((5, 3)), np.empty((5, 3))
    plain(conjugate.draw_means)(sqrt_information, counts, noise_priors, X[1], means, np.random.default_rng(2))
    functional = Functional(EXPECTATION, 0.0, 0.0)
    plain(conjugate.draw_worths)(
        sqrt_information, counts, noise_priors, X[1], functional, worths, np.random.default_rng(2)
    )
    np.testing.assert_allclose(worths, means)


def test_expectations_and_predictors_are_those_of_the_lines() -> None:
    (sqrt_information, _, _), expected, predicted = lines(), np.empty(3), np.empty((2, 3))
    plain(conjugate.expected_means)(sqrt_information, X[0], expected)
    plain(conjugate.predictors)(sqrt_information, X[0], predicted)
    exact = np.array([moments(one, X[0]) for one in sqrt_information]).T
    np.testing.assert_allclose(expected, exact[0])
    np.testing.assert_allclose(predicted, exact)
