"""Whether all rewards so far lie on a grid, lowest + k step; the layout of a grid is that of kernels.links."""

import numpy as np

from polyarm.kernels.links import HIGHEST, LOWEST, STATUS, STEP, TAKEN
from polyarm.types import Array

WATCHED, OFF = 0, 1  # whether rewards are on a grid so far
CELLS = 1000  # steps from the lowest to the highest value at most: beyond, rewards are as good as continuous
MOST_MARKS = 11  # marks from 0 to 10 are the longest scale that people are asked for
NEAR = 1e-9  # of a step: rewards so near to the grid are on it


def common_step(one: float, other: float, tolerance: float) -> float:
    """The largest step that both lengths are multiples of (Euclid), with what rounding leaves taken for nothing."""
    one, other = max(one, other), min(one, other)
    while other > tolerance:
        one, other = other, one % other
        if one - other <= tolerance:  # a remainder just below the divisor is none
            other = 0.0
    return one


def place(grid: Array, y: float) -> bool:
    """Take a reward into the grid, in place; tell whether the step is another than before."""
    grid[TAKEN] += 1
    if grid[TAKEN] == 1:
        grid[LOWEST] = grid[HIGHEST] = y
        return True
    low, high, step = float(grid[LOWEST]), float(grid[HIGHEST]), float(grid[STEP])
    away = abs(y - low)
    rounding = 4 * float(np.finfo(np.float64).eps) * max(abs(y), abs(low), abs(high))
    finer = step
    if step == 0.0:
        finer = away
    elif abs(away - step * round(away / step)) > NEAR * step + rounding:
        finer = common_step(step, away, NEAR * step + 4 * rounding)
    grid[LOWEST], grid[HIGHEST], grid[STEP] = min(low, y), max(high, y), finer
    if grid[HIGHEST] - grid[LOWEST] > CELLS * finer or 1e6 * rounding > finer > 0.0:
        grid[STATUS] = OFF
    return finer != step


def n_cells(grid: Array) -> int:
    """Values of the grid from the lowest to the highest."""
    return 1 + round((float(grid[HIGHEST]) - float(grid[LOWEST])) / float(grid[STEP]))


def applicable(grid: Array) -> tuple[bool, bool]:
    """Whether rewards may be counts, and whether they may be marks."""
    low, step = float(grid[LOWEST]), float(grid[STEP])
    from_zero = low >= 0 and abs(low - step * round(low / step)) <= 1e-6 * step and grid[HIGHEST] <= CELLS * step
    return from_zero, n_cells(grid) <= MOST_MARKS
