"""A state of the robust model written down by hand: two columns and an intercept, four arms, one of them empty.

Everything in it has a value of its own, so that no term of a formula can be left out, or taken twice, unnoticed.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gamma

from polyarm.kernels._jit import plain
from polyarm.kernels.robust import component, records
from polyarm.kernels.robust.component import COUNT, MEAN, SYY, VAR
from polyarm.kernels.robust.records import N_FEATURES, N_SHARED, Arms, Books, Features, Hyperprior, Room, Shared
from polyarm.kernels.robust.shared import NO_SHARE
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
LABEL = np.roll(np.arange(CAPACITY), 2)  # of every slot, not in order
CENTRE_RATIO = 3.1  # kappa, which is fixed and that of the intercept, too
GROUP = [0, 0, 1]  # of every feature
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
    slots: IntArray
    sizes: IntArray
    centres: Array
    hyper: Array
    columns: Array
    reservoir: Array
    centre_ratio: Array
    hyperprior: Array
    data: tuple[Array, ...]
    known: tuple[tuple[Known, ...], ...]

    @property
    def shared(self) -> Shared:
        return plain(records.shared_of)(self.hyper)

    @property
    def features(self) -> Features:
        return plain(records.features_of)(self.columns)

    @property
    def prior(self) -> Hyperprior:
        return plain(records.hyperprior_of)(self.hyperprior)

    @property
    def books(self) -> Books:
        """The arrays as a state keeps them."""
        shared = self.hyper, self.columns, self.reservoir, self.centre_ratio, self.hyperprior
        return Books(self.tables, self.slots, self.sizes, self.centres, *shared)

    @property
    def arms(self) -> Arms:
        """The same by name."""
        return plain(records.arms_of)(self.books)

    @property
    def room(self) -> Room:
        return plain(records.room_for)(self.arms)


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
    centres, hyper, columns = rng.standard_normal((A, D, D + 2)), np.zeros(N_SHARED), np.zeros((N_FEATURES, D))
    model = (1.1, 1.2, 0.3, 0.4, 1.5, 1.6, 0.7, 0.8, 1.3, 1.7, 0.9, 3.1, 2.1, 2.2)
    hyperprior = np.array([*model, shared, 1, 1, 0, 1.9, 0.6, 0, *WILD, 1, 0, 0.7])
    common, features = plain(records.shared_of)(hyper), plain(records.features_of)(columns)
    common.arm_var[:], common.part_ratio[:] = (0.5, 0.8), (0.35, 0.25)
    common.noise_scale, common.concentration, common.reward_square, common.median = 0.45, 0.75, 1.44, 0.65
    common.origin, common.n_steps, common.scaled, common.location_var = 2.5, 15.0, 1.0, 0.55
    features.centre[:] = 0.15, -0.25, 0.4
    features.unit[:] = 0.6, 1.7, 1.0
    features.mean[:], features.precision[:] = (0.3, -0.2, 0.0), (1.4, 0.9, 0.0)
    wide = common.arm_var[GROUP] * features.unit
    features.arm_var[:] = wide if shared else NO_SHARE * wide
    features.part_var[:] = wide * common.part_ratio[GROUP] if shared else wide
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
            parts.append(regression(*sums, w0, features.part_var, rng.standard_normal(D)))
            write(tables[arm], k, parts[-1])
        sizes[arm] = len(parts), len(seats), len(seats)
        data.append(rows)
        known.append(tuple(parts))
    slots = np.array([[LABEL, np.argsort(LABEL)]] * A)
    arrays = tables, slots, sizes, centres, hyper, columns, np.zeros(64), np.array([CENTRE_RATIO]), hyperprior
    return World(*arrays, tuple(data), tuple(known))
