"""Whether the numbers that would carry a failure are finite.

A number times 0 is 0 unless it is infinite or none, and sums keep what is none.
T (rows, C)  components, side by side (component.py, robust_component.py);  K  components in use
"""

from polyarm.kernels._jit import kernel, loop
from polyarm.kernels.component import LOG_DET, MEAN, SCALE
from polyarm.kernels.robust_component import MEAN as SLOPES
from polyarm.kernels.robust_component import VAR, sxx_row
from polyarm.types import Array, IntArray


@loop
def finite_columns(T: Array, K: int) -> bool:
    """Whether scale, determinant and slopes of the components in use are finite."""
    total = 0.0
    for k in range(K):
        total += 0.0 * T[SCALE, k] + 0.0 * T[LOG_DET, k]
    for row in range(MEAN, T.shape[0]):
        for k in range(K):
            total += 0.0 * T[row, k]
    return total == 0.0


@kernel
def finite_components(tables: Array, sizes: IntArray, arm: int) -> bool:
    """Whether the components in use of an arm are finite."""
    return finite_columns(tables[arm], sizes[arm, 0])


@kernel
def finite_robust(tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array) -> bool:
    """Whether what the arms share, every centre, and slopes and noise of every component in use are finite."""
    D = columns.shape[1]
    total = 0.0
    for value in hyper:
        total += 0.0 * value
    for row in range(columns.shape[0]):
        for j in range(D):
            total += 0.0 * columns[row, j]
    for arm in range(tables.shape[0]):
        for i in range(D):
            for j in range(D + 2):
                total += 0.0 * centres[arm, i, j]
        for k in range(sizes[arm, 0]):
            total += 0.0 / tables[arm, VAR, k]
        for row in range(SLOPES, sxx_row(D)):
            for k in range(sizes[arm, 0]):
                total += 0.0 * tables[arm, row, k]
    return total == 0.0
