"""Numbers that only rounding tells apart: a shift there and back may not end where it began."""

import numpy as np

from polyarm.types import Array

SAME = 1e-12  # relative difference that sums and differences of a few numbers make
LAST_DIGITS = 4.0 * float(np.finfo(np.float64).eps)  # relative difference that one sum and one difference make


def snapped(values: Array, known: Array, within: Array | float) -> Array:
    """Values, those within a distance of a known one replaced by it."""
    out = values.copy()
    for value in known:
        out[np.abs(values - value) <= within] = value
    return out


def shortest(values: Array, sizes: Array) -> Array:
    """Values, those replaced by a decimal number of twelve digits that only the last digits of numbers of these sizes
    tell from it, as people write prices.
    """
    short = np.array([float(f"{value:.12g}") for value in values.tolist()])
    return np.where(np.abs(short - values) <= LAST_DIGITS * sizes, short, values)
