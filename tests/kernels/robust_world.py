"""A state of the robust model written down by hand: two columns and an intercept, four arms, one of them empty.

Everything in it has a value of its own, so that no term of a formula can be left out, or taken twice, unnoticed.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gamma

from polyarm.kernels import robust_component as component
from polyarm.kernels import robust_scales as scales
from polyarm.kernels._jit import plain
from polyarm.kernels.robust_component import COUNT, MEAN, SYY, VAR
from polyarm.kernels.robust_places import AT, PRECISION
from polyarm.types import Array, IntArray

D = 3
PAIRS = D * (D + 1) // 2
CAPACITY = 8
SEATS: tuple[list[int], ...] = (
    [0, 0, 1, 2, 1, 0, 0, 2],
    [],
    [1, 0, 0, 1],
    [0, 0, 0],
)  # component of every reward, by arm
LOWER = np.tril_indices(D)
WILD = (0.15, 0.5, gamma(1.3) / gamma(1.8), gamma(1.3) / gamma(0.5))  # share and shape, Gamma(a) / Gamma(a + 1/2), ...
ROWS_OF = (component.sxx_row, component.sxy_row, component.w_row, component.kept_row, component.n_rows)
X_ROW, XY_ROW, W_ROW, KEPT, N_ROWS = (plain(row)(D) for row in ROWS_OF)


class Known(NamedTuple):
    """A component as NumPy has it."""

    n: float
    s2: float
    syy: float
    Sxx: Array
    Sxy: Array
    U: Array
    V: Array
    w: Array


class World(NamedTuple):
    """Arrays as kernels take them, the rewards behind them, and every component by itself."""

    tables: Array
    sizes: IntArray
    centres: Array
    hyper: Array
    columns: Array
    law: Array
    data: tuple[Array, ...]
    known: tuple[tuple[Known, ...], ...]

    @property
    def shared(self) -> tuple[Array, IntArray, Array, Array, Array, Array]:
        """What kernels of the shared values take."""
        return self.tables, self.sizes, self.centres, self.hyper, self.columns, self.law


def symmetric(values: Array) -> Array:
    """Matrix from the rows of its lower triangle."""
    M = np.zeros((D, D))
    M[LOWER] = values
    return M + np.tril(M, -1).T


def rows_of(T: Array, k: int, first: int, count: int) -> Array:
    return T[first : first + count, k]


def regression(n: float, s2: float, syy: float, Sxx: Array, Sxy: Array, w0: Array, R: Array, w: Array) -> Known:
    """The component with these sums: V = (Sxx/s2 + Q)^-1, U = V (Sxy/s2 + Q w0)."""
    V = np.linalg.inv(Sxx / s2 + np.diag(1 / R))
    return Known(n, s2, syy, Sxx, Sxy, V @ (Sxy / s2 + w0 / R), np.asarray(V, dtype=np.float64), w)


def write(T: Array, k: int, known: Known) -> None:
    """Write a component into its column."""
    T[[COUNT, VAR, SYY], k] = known.n, known.s2, known.syy
    T[MEAN : MEAN + D, k] = known.U
    T[MEAN + D : MEAN + D + PAIRS, k] = known.V[LOWER]
    rows_of(T, k, X_ROW, PAIRS)[:] = known.Sxx[LOWER]
    rows_of(T, k, XY_ROW, D)[:] = known.Sxy
    rows_of(T, k, W_ROW, D)[:] = known.w


def make_world(shared: bool = True) -> World:
    rng = np.random.default_rng(5)
    A = len(SEATS)
    tables, sizes = np.zeros((A, N_ROWS, CAPACITY)), np.zeros((A, 3), np.int64)
    centres, hyper, columns = rng.standard_normal((A, D, D + 2)), np.zeros(15), np.zeros((11, D))
    law = np.array(
        [1.1, 1.2, 0.3, 0.4, 1.5, 1.6, 0.7, 0.8, 1.3, 1.7, 0.9, 3.1, 2.1, 2.2, shared, 1, 1, 0, 1.9, 0.6, 0, *WILD]
    )
    hyper[[scales.LAM, scales.LAM + 1, scales.RHO, scales.RHO + 1]] = 0.5, 0.8, 0.35, 0.25
    hyper[[scales.NOISE, scales.GAMMA, scales.SQUARE, scales.MEDIAN]] = 0.45, 0.75, 1.44, 0.65
    hyper[[scales.ORIGIN, scales.STEPS, scales.SCALED, scales.TAU]] = 2.5, 15.0, 1.0, 0.55
    columns[scales.CENTRE] = 0.15, -0.25, 0.4
    columns[scales.UNIT] = 0.6, 1.7, 1.0
    columns[AT], columns[PRECISION] = (0.3, -0.2, 0.0), (1.4, 0.9, 0.0)
    wide = hyper[[scales.LAM, scales.LAM, scales.LAM + 1]] * columns[scales.UNIT]
    columns[scales.ARM_VAR] = wide if shared else scales.NO_SHARE * wide
    columns[scales.PART_VAR] = wide * hyper[[scales.RHO, scales.RHO, scales.RHO + 1]] if shared else wide
    data, known = [], []
    for arm, seats in enumerate(SEATS):
        rows = np.column_stack(
            [rng.standard_normal((len(seats), D - 1)), np.ones(len(seats)), rng.standard_normal(len(seats))]
        )
        parts = []
        for k in range(max(seats, default=-1) + 1):
            X, y = rows[np.array(seats) == k, :D], rows[np.array(seats) == k, D]
            sums = (float(len(y)), 0.4 + 0.3 * k + 0.1 * arm, float(y @ y), X.T @ X, X.T @ y)
            w0 = centres[arm, :, D + 1]
            parts.append(regression(*sums, w0, columns[scales.PART_VAR], rng.standard_normal(D)))
            write(tables[arm], k, parts[-1])
        sizes[arm] = len(parts), len(seats), len(seats)
        data.append(rows)
        known.append(tuple(parts))
    return World(tables, sizes, centres, hyper, columns, law, tuple(data), tuple(known))
