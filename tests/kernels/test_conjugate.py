"""Shares of draws in which a line is best, draw by draw."""

import numpy as np
import pytest

from polyarm.kernels import conjugate
from polyarm.kernels._jit import plain
from tests.kernels.script import Script

X = np.array([[0.7, -1.3], [0.2, 0.9], [0.0, 0.0]])


@pytest.mark.parametrize("known", [0.0, 0.6])
@pytest.mark.parametrize("among", [(True, True, True), (False, True, True)])
def test_wins_are_counted_draw_by_draw(known: float, among: tuple[bool, ...]) -> None:
    """x'w = m + sd e: m = x'U and sd = |R'^-1 x|, e = sqrt(s2) z with s2 = b / gamma or as known; ties go first."""
    rng, n_draws = np.random.default_rng(0), 60
    roots = np.triu(rng.standard_normal((3, 3, 3))) + 2.0 * np.eye(3)
    counts, laws = np.array([3, 0, 7]), np.array([[1.5, 0.7, known]] * 3)
    gammas, normals = rng.uniform(0.3, 2.0, 180), rng.standard_normal(180)
    out = np.full((3, 3), np.nan)
    script = Script(normals, gammas)
    plain(conjugate.count_wins)(roots, counts, laws, X, np.array(among), n_draws, out, script)
    shapes = [] if known else [(1.5 + 0.5 * n,) for n in counts for _ in range(n_draws)]
    assert script.asked == shapes
    for x, found in zip(X, out, strict=True):
        values = np.full((3, n_draws), -np.inf)
        for arm in range(3):
            R, rest = roots[arm, :2, :2], roots[arm, :2, 2]
            b = 0.7 + 0.5 * roots[arm, 2, 2] ** 2
            variance = known or b / gammas[arm * n_draws : (arm + 1) * n_draws]
            e = np.sqrt(variance) * normals[arm * n_draws : (arm + 1) * n_draws]
            if among[arm]:
                values[arm] = x @ np.linalg.solve(R, rest) + np.linalg.norm(np.linalg.solve(R.T, x)) * e
        expected = np.bincount(values.argmax(axis=0), minlength=3) / n_draws
        np.testing.assert_allclose(found, expected)
