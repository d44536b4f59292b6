"""Units of columns for models of a link: clicks, counts, marks and amounts (notation of kernels.sticks)."""

import numpy as np

from polyarm.kernels import sticks as kernels
from polyarm.kernels._jit import trusted
from polyarm.types import Array

JUMP = 1e8  # a column that is so many times, squared, what it was


def observe(columns: Array, context: Array, fits: Array) -> None:
    """Take a context into the columns' units; where a column is now quite another, its slopes are in the new unit.

    Newton's steps are held back, so that they would never come from slopes of a column of 10^-16 to those of one of 1.
    fits (..., D, any): its columns from D on hold slopes.
    """
    unit = columns[kernels.UNIT]
    before = unit.copy()
    trusted(kernels.observe)(columns, context)
    if (before > JUMP * unit).any():
        d = len(context)
        factor = np.where(before > JUMP * unit, np.sqrt(unit / before), 1.0)
        fits[..., :d, d + 1 :] *= factor[:d, None]
