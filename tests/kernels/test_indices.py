"""Scores from rewards, and numbers in order, against NumPy."""

from itertools import pairwise

import numpy as np
import pytest

from polyarm.kernels import indices, order
from polyarm.kernels._jit import plain
from polyarm.types import Array
from tests.kernels.script import Script

Y = np.array([0.3, -1.0, 0.9, 2.0, 5.0, -0.4, 1.1])


def test_a_dirichlet_mean_weighs_the_anchor_first() -> None:
    drawn = np.array([0.4, 1.2, 0.7, 2.5, 0.1, 0.9, 1.6, 0.3])
    found = plain(indices.dirichlet_mean)(Y, 9.0, Script(exponentials=drawn))
    assert found == pytest.approx(drawn @ np.append(9.0, Y) / drawn.sum())


@pytest.mark.parametrize("n_blocks", [1, 2, 3, 4, 7])
def test_medians_of_means_are_those_of_consecutive_blocks(n_blocks: int) -> None:
    edges = [k * len(Y) // n_blocks for k in range(n_blocks + 1)]
    means = [Y[low:high].mean() for low, high in pairwise(edges)]
    assert plain(indices.median_of_means)(Y, n_blocks) == pytest.approx(np.median(means))
    assert plain(indices.block_mean)(Y, 2, 3) == pytest.approx(Y[2:5].mean())


def test_central_moments() -> None:
    for power in (1.0, 1.5, 2.0):
        assert plain(indices.central_moment)(Y, 0.7, power) == pytest.approx(np.mean(np.abs(Y - 0.7) ** power))


def test_upper_bounds_are_so_many_spreads_above_the_lines() -> None:
    rng, x, widths, out = np.random.default_rng(0), np.array([0.7, -1.3]), np.array([0.5, 2.0]), np.empty(2)
    sqrt_information = np.triu(rng.standard_normal((2, 3, 3))) + 2.0 * np.eye(3)
    plain(indices.upper_bounds)(sqrt_information, x, widths, out)
    for arm, whole in enumerate(sqrt_information):
        R = whole[:2, :2]
        spread = np.linalg.norm(np.linalg.solve(R.T, x))
        assert out[arm] == pytest.approx(x @ np.linalg.solve(R, whole[:2, 2]) + widths[arm] * spread)


@pytest.mark.parametrize("n_pseudo", [1, 3])
def test_a_perturbed_mean_is_least_squares_of_perturbed_rewards(n_pseudo: int) -> None:
    rng, x, ridge, size = np.random.default_rng(1), np.array([0.7, -1.3]), 0.4, 0.8
    rows, uniforms = rng.standard_normal((6, 3)), rng.random(6 * n_pseudo)
    before = rows.copy()
    found = plain(indices.perturbed_mean)(rows, x, ridge, n_pseudo, size, Script(uniforms=uniforms))
    noise = np.where(uniforms < 0.5, size, -size).reshape(6, n_pseudo).sum(axis=1)
    X, y = rows[:, :2], (rows[:, 2] + noise) / (n_pseudo + 1)
    assert found == pytest.approx(x @ np.linalg.solve(ridge * np.eye(2) + X.T @ X, X.T @ y))
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("values", [Y, Y[:1], np.array([2.0, 2.0, -1.0, -1.0, 3.0, 3.0]), np.arange(9.0)[::-1].copy()])
def test_numbers_are_put_in_order_and_the_first_of_equals_is_found(values: Array) -> None:
    before = values.copy()
    np.testing.assert_array_equal(plain(order.in_order)(values), np.sort(values))
    assert plain(order.place_of_least)(values) == values.argmin()
    assert plain(order.place_of_greatest)(values) == values.argmax()
    np.testing.assert_array_equal(values, before)
