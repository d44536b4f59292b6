"""A number that is none is seen wherever it would be read, and nowhere else."""

from collections.abc import Iterator

import numpy as np
import pytest

from polyarm.kernels._jit import plain
from polyarm.kernels.mixture import finite
from polyarm.kernels.mixture.component import LOG_DET, MEAN, SCALE

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
