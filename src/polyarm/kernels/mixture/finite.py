"""Whether the numbers that would carry a failure are finite.

A number times 0 is 0 unless it is infinite or none, and sums keep what is none.
T (rows, C)  components, side by side (component.py);  K  components in use
"""

from polyarm.kernels._jit import kernel, no_refcount
from polyarm.kernels.mixture.component import LOG_DET, MEAN, SCALE
from polyarm.kernels.mixture.records import K_USED
from polyarm.types import Array, IntArray


@no_refcount
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
    return finite_columns(tables[arm], sizes[arm, K_USED])
