"""Copies of numbers from one array to another.

Loops of our own: what Numba compiles for `out[:] = values` takes two seconds, most of them for the words of an error
that cannot happen here.
"""

from polyarm.kernels._jit import inlined
from polyarm.types import Array


@inlined
def copy_row(values: Array, out: Array) -> None:
    """Write the values (n,) to the first n places of out."""
    for i in range(values.shape[0]):
        out[i] = values[i]


@inlined
def copy_rows(values: Array, out: Array) -> None:
    """Write the rows (m, n) to the first m rows of out."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            out[i, j] = values[i, j]
