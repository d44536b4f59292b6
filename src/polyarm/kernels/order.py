"""A few numbers in order, and the place of the least and the greatest.

Loops of our own: what Numba compiles for `np.sort` or `np.argmin` takes a second each.
"""

import numpy as np

from polyarm.kernels._jit import inlined, kernel
from polyarm.types import Array


@kernel
def in_order(values: Array) -> Array:
    """A copy in ascending order, by insertion: for a hundred numbers or so."""
    ordered = np.empty(values.shape[0])
    for i in range(values.shape[0]):
        value, j = values[i], i
        while j > 0 and ordered[j - 1] > value:
            ordered[j] = ordered[j - 1]
            j -= 1
        ordered[j] = value
    return ordered


@inlined
def place_of_least(values: Array) -> int:
    """Index of the least value, the first of equals."""
    least = 0
    for i in range(1, values.shape[0]):
        if values[i] < values[least]:
            least = i
    return least


@inlined
def place_of_greatest(values: Array) -> int:
    """Index of the greatest value, the first of equals."""
    greatest = 0
    for i in range(1, values.shape[0]):
        if values[i] > values[greatest]:
            greatest = i
    return greatest
