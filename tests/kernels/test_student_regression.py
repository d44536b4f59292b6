"""Regression with Student-t noise: weights, residuals and precisions, number by number."""

import math

import numpy as np
import pytest

from polyarm.kernels import student_regression
from polyarm.kernels._jit import plain
from polyarm.models import NormalInverseGamma
from polyarm.types import Array
from tests.kernels.script import Script

BASE = NormalInverseGamma(2, [0.5, -1.0], [[4.0, 1.0], [1.0, 2.0]], 1.5, 0.7)
DOF = 3.5


def rewards() -> Array:
    """Context, value and precision of five rewards."""
    rng = np.random.default_rng(0)
    return np.column_stack([rng.standard_normal((5, 3)), rng.uniform(0.3, 2.0, 5)])


def information(rows: Array) -> Array:
    """R'R of the prior and of every row at its precision."""
    sqrt_information = BASE.sqrt_information
    return sqrt_information.T @ sqrt_information + (rows[:, :3].T * rows[:, 3]) @ rows[:, :3]


def root_of(rows: Array) -> Array:
    """The factor of that information."""
    return np.ascontiguousarray(np.linalg.cholesky(information(rows)).T, dtype=np.float64)


def test_rows_count_by_their_precisions() -> None:
    rows, sqrt_information, prior = rewards(), np.full((3, 3), 9.0), BASE.sqrt_information
    plain(student_regression.weigh)(rows, prior, sqrt_information)
    np.testing.assert_allclose(sqrt_information.T @ sqrt_information, information(rows))
    np.testing.assert_array_equal(prior, BASE.sqrt_information)


def drawn_precisions(
    sqrt_information: Array, rows: Array, noise_prior: list[float], n: int, numbers: list[float]
) -> list[float]:
    """w ~ N(U, s2 V) from R w = r + s z, last entry first; then 2 Gamma((v + 1)/2) / (v + (y - x'w)^2 / s2)."""
    z, gammas = numbers[:2], numbers[2:]
    variance = noise_prior[2] or (noise_prior[1] + 0.5 * sqrt_information[2, 2] ** 2) / gammas.pop(0)
    R, rest = sqrt_information[:2, :2], sqrt_information[:2, 2]
    w = np.linalg.solve(R, rest + math.sqrt(variance) * np.array(z[::-1]))
    return [2 * g / (DOF + (y - x @ w) ** 2 / variance) for g, (*x, y) in zip(gammas, rows[:, :3], strict=False)]


@pytest.mark.parametrize("known", [0.0, 0.6])
@pytest.mark.parametrize("first", [0, 3])
def test_precisions_are_drawn_given_one_line(known: float, first: int) -> None:
    rows, noise_prior = rewards(), [1.5, 0.7, known]
    before = rows.copy()
    sqrt_information = root_of(rows)
    normals, gammas = [0.4, -1.2], [0.8, 1.3, 0.5, 2.1, 0.9, 1.7]
    script = Script(normals, gammas)
    plain(student_regression.draw_precisions)(rows, first, 9, sqrt_information, np.array(noise_prior), DOF, script)
    expected = drawn_precisions(sqrt_information, before[first:], noise_prior, 9, [*normals, *gammas])
    np.testing.assert_allclose(rows[first:, 3], expected)
    np.testing.assert_array_equal(rows[:first], before[:first])
    np.testing.assert_array_equal(rows[:, :3], before[:, :3])
    shapes = [] if known else [(1.5 + 0.5 * 9,)]
    assert script.asked == [*shapes, *[((DOF + 1) / 2,)] * (5 - first)]


@pytest.mark.parametrize("n_sweeps", [0, 2])
def test_a_new_row_is_weighed_by_the_others_then_all_are_drawn_again(n_sweeps: int) -> None:
    rows, noise_prior = rewards(), np.array([1.5, 0.7, 0.0])
    old, again = rewards(), rewards()
    sqrt_information = root_of(rows[:4])
    numbers = np.linspace(-1, 1.4, 20), np.linspace(0.4, 2.2, 40)
    script, other = Script(*numbers), Script(*numbers)
    before = sqrt_information.copy()
    plain(student_regression.learn)(rows, BASE.sqrt_information, sqrt_information, noise_prior, DOF, n_sweeps, script)
    plain(student_regression.draw_precisions)(again, 4, 4, before, noise_prior, DOF, other)
    held = root_of(np.vstack([old[:4], again[4:]]))
    for _ in range(n_sweeps):
        plain(student_regression.draw_precisions)(again, 0, 5, held, noise_prior, DOF, other)
        plain(student_regression.weigh)(again, BASE.sqrt_information, held)
    assert script.asked == other.asked
    np.testing.assert_allclose(rows, again)
    np.testing.assert_allclose(sqrt_information.T @ sqrt_information, held.T @ held)
