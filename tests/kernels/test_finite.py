"""A number that is none is seen wherever it would be read, and nowhere else."""

from collections.abc import Iterator

import numpy as np
import pytest

from polyarm.kernels import finite
from polyarm.kernels._jit import plain
from polyarm.kernels.component import LOG_DET, MEAN, SCALE
from polyarm.kernels.robust_component import MEAN as SLOPES
from polyarm.kernels.robust_component import VAR, sxx_row
from polyarm.types import Array, IntArray

BAD = [np.nan, np.inf, -np.inf]


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Compiled kernels do not warn; their plain twins need not either."""
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("bad", BAD)
def test_components_in_use_are_looked_at(bad: float) -> None:
    sizes = np.array([[3, 0], [0, 0]])
    for row in range(12):
        for k in range(4):
            tables = np.full((2, 12, 5), 2.0)
            tables[0, row, k] = bad
            seen = row in (SCALE, LOG_DET) or row >= MEAN
            expected = not (seen and k < 3)
            assert plain(finite.finite_components)(tables, sizes, 0) == expected, (row, k)
            assert plain(finite.finite_components)(tables, sizes, 1)


def robust() -> tuple[Array, IntArray, Array, Array, Array]:
    D = 3
    return (
        np.full((2, 40, 4), 2.0),
        np.array([[2, 0], [1, 0]]),
        np.full((2, D, D + 2), 2.0),
        np.full(9, 2.0),
        np.full((5, D), 2.0),
    )


@pytest.mark.parametrize("bad", BAD)
def test_everything_that_robust_arms_share_is_looked_at(bad: float) -> None:
    assert plain(finite.finite_robust)(*robust())
    for which in (2, 3, 4):
        for at in np.ndindex(robust()[which].shape):
            parts = robust()
            parts[which][at] = bad
            assert not plain(finite.finite_robust)(*parts), (which, at)


@pytest.mark.parametrize("bad", BAD)
def test_slopes_and_noise_of_robust_components_in_use_are_looked_at(bad: float) -> None:
    last = plain(sxx_row)(3)
    for arm, used in ((0, 2), (1, 1)):
        for row in range(40):
            for k in range(4):
                parts = robust()
                parts[0][arm, row, k] = bad
                slope, noise = SLOPES <= row < last, row == VAR and np.isnan(bad)
                assert plain(finite.finite_robust)(*parts) == (not ((slope or noise) and k < used)), (row, k)


def test_a_noise_variance_of_nothing_is_seen() -> None:
    parts = robust()
    parts[0][1, VAR, 0] = 0.0
    assert not plain(finite.finite_robust)(*parts)
