"""What the robust mixture keeps, as kernels take it; the arrays are those of inference.robust.RobustState.

A arms, each with room for C components; D features: the columns of a context and, last, a 1 where there is an intercept
u_j  = 1 / mean square of the non-zero entries of column j (the intercept: 1): slopes are measured in its inverse root
S2   squared robust scale of the rewards;  m  their median
Slopes are group 0 and the intercept is group 1 of what comes in pairs.

field                 prior                          what it is
arm_var (lam2_g)      IG(shape_g, scale_g S2)        spread of the arms' centres:   L_j = lam2 u_j
part_ratio (rho_g)    IG(shape_g, scale_g) or fixed  spread of an arm's components: R_j = rho L_j
centre (c_j)          N(0 or m, ratio_j S2 u_j)      centre of all
centre_ratio (kappa)  IG(shape, scale lam2_0 / S2)   ratio_j, or fixed; in columns that hold the level centre_var
noise_scale (b)       Gamma(shape, rate / S2)        s2_k ~ (1 - wild) IG(a, b) + wild IG(a', b)
concentration (gamma) Gamma(shape, rate) or fixed    of every arm's seating
location_var (tau)    IG(shape, scale) or fixed      spread of the components' locations (gating.py)
"""

from typing import Any, NamedTuple, Protocol, get_type_hints

import numpy as np

from polyarm.kernels._jit import expanded, inlined, kernel, record_at
from polyarm.kernels.lanes import LANES
from polyarm.kernels.linalg.triangle import WIDE
from polyarm.kernels.robust.component import sxx_row
from polyarm.types import Array, IntArray


class Shared(Protocol):
    """What the arms share, drawn or measured: numbers of one array, by name."""

    arm_var: Array
    part_ratio: Array
    noise_scale: float
    concentration: float
    reward_square: float  # S2
    median: float
    origin: float  # rewards are counted from here
    n_steps: float
    scaled: float  # 0 before rewards have a scale, 2 where they have quite another one than before
    location_var: float
    tied_sd: float  # standard deviation of the reservoir where many of its rewards are equal, else 0
    n_seen: float  # contexts in the columns' sums, less what was forgotten
    off_centre: float  # 1 where rewards or columns must be counted from somewhere else


class Hyperprior(Protocol):
    """The settings: shapes, scales and rates of the priors, and switches, which are 0 or 1."""

    arm_shape: Array
    arm_scale: Array
    part_shape: Array  # 0: the ratio is fixed
    part_scale: Array
    noise_shape: float  # a
    noise_rate_shape: float
    noise_rate: float
    centre_var: float
    concentration_shape: float  # 0: the concentration is fixed
    concentration_rate: float
    shared_centre: float
    learned: float
    intercept: float
    fixed_units: float
    location_shape: float  # 0: the spread of locations is fixed
    location_scale: float
    window: float
    wild_share: float
    wild_shape: float  # a'
    bulk: float  # Gamma(a) / Gamma(a + 1/2)
    wild_bulk: float  # Gamma(a) / Gamma(a')
    thinning: float  # steps between draws of what the arms share
    centre_shape: float  # 0: kappa is fixed
    centre_scale: float


class Features(NamedTuple):
    """Rows over the features: what is drawn for them, and what is known of the contexts' columns."""

    centre: Array
    arm_var: Array  # L
    part_var: Array  # R
    unit: Array  # u
    square_sum: Array  # of the non-zero entries
    n_nonzero: Array
    mean: Array  # of the column, counted from its base
    precision: Array  # 1 / variance, less where entries are outlying, 0 for a column that says nothing, as a constant
    raw_mean: Array
    base: Array  # where the column is counted from: 0 or, for a column far from 0, its mean
    spread: Array  # sum of squares around the mean


class Books(NamedTuple):
    """The arrays of a state, and the settings."""

    components: Array  # (A, rows, C): component.py
    slots: IntArray  # (A, 2, C): label of the component in each slot, slot of each label
    sizes: IntArray  # (A, 3)
    centres: Array  # (A, D, D + 2): factor of the information about w0, its mean, and w0 as last drawn
    shared: Array
    features: Array  # (11, D)
    reservoir: Array  # a sample of past rewards of all arms
    centre_ratio: Array  # (1,)
    hyperprior: Array


class Arms(NamedTuple):
    """Components and centres of the arms, what they share and the settings, every number by its name."""

    components: Array
    sizes: IntArray
    centres: Array
    shared: Shared
    features: Features
    centre_ratio: Array
    prior: Hyperprior


class Rewards(NamedTuple):
    """An arm's rewards: features and reward of each, (N, D + 1), and the label of its component."""

    data: Array
    z: IntArray


class Arm(NamedTuple):
    """One arm; the first size[USED] slots are in use.  Labels stay when slots change, so rewards are not relabelled."""

    components: Array  # (rows, C)
    label: IntArray
    slot: IntArray
    size: IntArray
    w0: Array  # (D,): centre of the components
    data: Array
    z: IntArray


class Solver(NamedTuple):
    """Room to solve equations in: a factor, its inverse, and two vectors; then the same for LANES components at a time
    (triangles.py), factors only where they are narrow, as are U and V (rows of component.py).
    """

    M: Array
    B: Array
    v: Array
    row: Array
    factors: Array
    inverses: Array
    inverse_diagonal: Array
    vectors: Array
    means: Array
    solved: Array


class Room(NamedTuple):
    """Room to work in: for every slot weight, gap, q and e of a reward; noise variances of all arms; a solver."""

    weight: Array
    gap: Array
    q: Array
    e: Array
    s2: Array
    solver: Solver


def layout(record: type) -> np.dtype[Any]:
    """One array of floats with the names of the record; what is an array in it holds a pair."""
    hints = get_type_hints(record)
    return np.dtype((np.record, [(name, "f8", (2,) if hint is not float else ()) for name, hint in hints.items()]))


SHARED, HYPERPRIOR = layout(Shared), layout(Hyperprior)
N_SHARED, N_FEATURES = SHARED.itemsize // 8, len(Features._fields)


@expanded
def shared_of(values: Array) -> Shared:
    """The values by name: what is written there is written to the array."""
    return record_at(values, SHARED)


@expanded
def hyperprior_of(values: Array) -> Hyperprior:
    """The settings by name."""
    return record_at(values, HYPERPRIOR)


@expanded
def features_of(rows: Array) -> Features:
    """The rows by name."""
    a, b, c, d, e, f = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]
    return Features(a, b, c, d, e, f, rows[6], rows[7], rows[8], rows[9], rows[10])


@expanded
def arms_of(books: Books) -> Arms:
    """The books, every number by its name."""
    shared, prior = shared_of(books.shared), hyperprior_of(books.hyperprior)
    features, ratio = features_of(books.features), books.centre_ratio
    return Arms(books.components, books.sizes, books.centres, shared, features, ratio, prior)


@expanded
def arm_of(books: Books, arm: int, rewards: Rewards) -> Arm:
    """One of the arms, with its rewards."""
    T, size, w0 = books.components[arm], books.sizes[arm], books.centres[arm, :, books.features.shape[1] + 1]
    return Arm(T, books.slots[arm, 0], books.slots[arm, 1], size, w0, rewards.data, rewards.z)


@inlined
def n_features(arms: Arms) -> int:
    """D."""
    return arms.features.unit.shape[0]


@kernel
def solver_for(D: int) -> Solver:
    """Room for D features."""
    N = D if D < WIDE else 0
    M, v, rows = np.empty((2, D, D)), np.empty((2, D)), np.empty((3, D, LANES))
    L, solved = np.empty((2, N, D, LANES)), np.empty((sxx_row(N), LANES))
    return Solver(M[0], M[1], v[0], v[1], L[0], L[1], rows[0], rows[1], rows[2], solved)


@kernel
def room_for(arms: Arms) -> Room:
    """Room for these arms."""
    A, _, C = arms.components.shape
    D = n_features(arms)
    work = np.empty((4 + A, C))
    return Room(work[0], work[1], work[2], work[3], work[4:], solver_for(D))
