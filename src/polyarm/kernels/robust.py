"""One reward into the robust model: moves in its arm and in another, then everything the arms share.

tables (A, rows, C)  labels (A, 2, C)  sizes (A, 3)    seating and components of every arm (robust_moves.py)
centres (A, D, D + 2)                                  posterior of every arm's centre (robust_means.py)
hyper (15,)  columns (11, D)  reservoir (64,)           what the arms share (robust_scales.py)
law (25,)                                              the settings
"""

import math

import numpy as np

from polyarm.kernels._jit import Stream, generator, kernel, loop, step
from polyarm.kernels.finite import finite_robust
from polyarm.kernels.forgetting import FORGOTTEN
from polyarm.kernels.gibbs import NEXT, ROWS, close_place
from polyarm.kernels.robust_component import (
    COUNT,
    VAR,
    fade,
    information,
    keep,
    recount,
    shift_rewards,
    solve,
    squared_errors,
    sxy_row,
    w_row,
)
from polyarm.kernels.robust_evidence import Arms, Scratch, propose_noise, propose_scales, scratch
from polyarm.kernels.robust_means import features, find_centre
from polyarm.kernels.robust_moves import make_moves, move
from polyarm.kernels.robust_scales import (
    ARM_VAR,
    CENTRE,
    GAMMA,
    LAM,
    LEARNED,
    NOISE,
    NONZERO,
    OFF,
    ORIGIN,
    PART_VAR,
    RESERVOIR,
    SEEN,
    SHARED,
    SPREAD,
    STEPS,
    SUM,
    TAU,
    draw_inverse_gamma,
    draw_shape,
    draw_shared,
    least_noise,
    set_variances,
    update_units,
)
from polyarm.kernels.triangle import solve_lower, solve_upper
from polyarm.types import Array, IntArray, Rng

DEEP = 6  # scales are drawn without slopes in one of (arms x features / 6) steps, at most every second


@loop
def prepare(T: Array, K: int, centre: Array, columns: Array, M: Array, B: Array, v: Array) -> None:
    """Compute U and V of an arm's components and the posterior of its centre for the shared values of now."""
    w0 = centre[:, columns.shape[1] + 1]
    for k in range(K):
        solve(T, k, w0, columns[PART_VAR], M, B, v)
    find_centre(T, K, centre, columns)


@step
def draw_centre(centre: Array, v: Array, rng: Rng) -> None:
    """Draw w0 from its posterior, mu + F^-T N(0, I)."""
    D = v.shape[0]
    for i in range(D):
        v[i] = rng.standard_normal()
    solve_upper(centre, v, D)
    for i in range(D):
        centre[i, D + 1] = centre[i, D] + v[i]


@step
def draw_slopes(T: Array, k: int, w0: Array, R: Array, M: Array, v: Array, rng: Rng) -> None:
    """Draw w_k given w0 and its noise variance."""
    D = v.shape[0]
    information(T, k, R, M)
    for i in range(D):
        v[i] = T[sxy_row(D) + i, k] / T[VAR, k] + w0[i] / R[i]
    solve_lower(M, v, D)
    for i in range(D):
        v[i] += rng.standard_normal()
    solve_upper(M, v, D)
    for i in range(D):
        T[w_row(D) + i, k] = v[i]


@loop
def redraw_arm(arms: Arms, arm: int, deep: bool, room: Scratch, rng: Rng) -> None:
    """Draw an arm's centre, then every component's slopes, then their noise variances.

    deep: U and V are out of date, and noise variances are first drawn without slopes.
    """
    T, K, centre, columns = arms.tables[arm], arms.sizes[arm, 0], arms.centres[arm], arms.columns
    b, least = arms.hyper[NOISE], least_noise(arms.hyper)
    D = columns.shape[1]
    R, w0 = columns[PART_VAR], centre[:, D + 1]
    if deep:
        for k in range(K):
            solve(T, k, w0, R, room.M, room.B, room.v)
    find_centre(T, K, centre, columns)
    draw_centre(centre, room.v, rng)
    for k in range(K):
        if deep:
            propose_noise(T, k, w0, arms, room, rng)
        draw_slopes(T, k, w0, R, room.M, room.v, rng)
        a = draw_shape(T[VAR, k] / b, arms.law, rng)
        shape, scale = a + 0.5 * T[COUNT, k], b + 0.5 * squared_errors(T, k, D)
        T[VAR, k] = max(draw_inverse_gamma(shape, scale, rng), least)


@kernel
def rebuild_posteriors(
    tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array, law: Array
) -> None:
    """Bring every arm up to date with the shared values."""
    D = columns.shape[1]
    M, B, v = np.empty((D, D)), np.empty((D, D)), np.empty(D)
    set_variances(hyper, columns, law)
    for arm in range(tables.shape[0]):
        if law[SHARED] == 0.0 or sizes[arm, 0] == 0:
            for j in range(D):
                centres[arm, j, D + 1] = columns[CENTRE, j]
        prepare(tables[arm], sizes[arm, 0], centres[arm], columns, M, B, v)


@kernel
def finish(
    tables: Array,
    sizes: IntArray,
    centres: Array,
    hyper: Array,
    columns: Array,
    law: Array,
    arm: int,
    other: int,
    source: Stream,
) -> bool:
    """Refresh the arms that moved, draw what the arms share, and bring every arm up to date; tell if all is finite.

    On a share of the steps scales are first drawn with centres and slopes integrated out, and then every arm is
    refreshed.  The share falls with arms and columns: its cost stays about a tenth of the rest.
    """
    rng = generator(source)
    A, D = sizes.shape[0], columns.shape[1]
    arms = Arms(tables, sizes, centres, hyper, columns, law)
    room = scratch(arms)
    deep = hyper[STEPS] < RESERVOIR or int(hyper[STEPS]) % max(2, A * D // DEEP) == 0
    moved = deep and law[LEARNED] > 0.0 and propose_scales(arms, LAM, NOISE + 1, room, rng)
    for i in range(A):
        if sizes[i, 0] > 0 and (moved or i in (arm, other)):
            redraw_arm(arms, i, deep, room, rng)
    draw_shared(tables, sizes, centres, hyper, columns, law, rng)
    rebuild_posteriors(tables, sizes, centres, hyper, columns, law)
    return finite_robust(tables, sizes, centres, hyper, columns)


@kernel
def moves_of(
    tables: Array,
    labels: IntArray,
    sizes: IntArray,
    centres: Array,
    hyper: Array,
    columns: Array,
    law: Array,
    data: Array,
    z: IntArray,
    arm: int,
    n_moves: int,
    source: Stream,
) -> int:
    """Move rewards of an arm, at most 4 n times; return how many moves are left.

    Moves are left over where the table was full: make room and call again.
    """
    rng = generator(source)
    C, D = tables.shape[2], columns.shape[1]
    work, M, B, v = np.empty((4, C)), np.empty((D, D)), np.empty((D, D)), np.empty(D)
    T, label, place, size = tables[arm], labels[arm, 0], labels[arm, 1], sizes[arm]
    w0 = centres[arm, :, D + 1]
    gamma, tau, b = hyper[GAMMA], hyper[TAU], hyper[NOISE]
    n_moves = min(n_moves, 4 * size[ROWS])
    return make_moves(T, label, place, size, w0, columns, gamma, tau, b, law, data, z, n_moves, work, M, B, v, rng)


@kernel
def take_in(
    tables: Array,
    labels: IntArray,
    sizes: IntArray,
    centres: Array,
    hyper: Array,
    columns: Array,
    law: Array,
    data: Array,
    z: IntArray,
    arm: int,
    reservoir: Array,
    x: Array,
    y: float,
    known: bool,
    source: Stream,
) -> bool:
    """Take a reward into the units, write it to its arm's next row and seat it; a reward that had the row stays put.

    An arm without a reward draws its centre.  False: rewards or columns must be counted from elsewhere first; call
    again with a reward that the units know.
    """
    rng = generator(source)
    C, D = tables.shape[2], columns.shape[1]
    T, label, place, size = tables[arm], labels[arm, 0], labels[arm, 1], sizes[arm]
    if not known:
        early = hyper[STEPS] < RESERVOIR  # units change at every step
        update_units(tables, sizes, centres, hyper, columns, reservoir, law, x, y, rng)
        if hyper[OFF] > 0.0:
            return False
        if early:
            rebuild_posteriors(tables, sizes, centres, hyper, columns, law)
    i = size[NEXT]
    if i < size[ROWS]:
        keep(T, place[z[i]], data, i)
    f = features(x, columns)
    for j in range(D):
        data[i, j] = f[j]
    data[i, D] = y - hyper[ORIGIN]
    w0 = centres[arm, :, D + 1]
    if size[0] == 0 and law[SHARED] > 0.0:
        for j in range(D):
            w0[j] = columns[CENTRE, j] + math.sqrt(columns[ARM_VAR, j]) * rng.standard_normal()
    work, M, B, v = np.empty((4, C)), np.empty((D, D)), np.empty((D, D)), np.empty(D)
    gamma, tau, b = hyper[GAMMA], hyper[TAU], hyper[NOISE]
    move(T, label, place, size, w0, columns, gamma, tau, b, law, data, z, i, work, M, B, v, rng, True)
    size[ROWS] = max(size[ROWS], i + 1)
    size[NEXT] = i + 1
    return True


@kernel
def count_from(T: Array, label: IntArray, K: int, data: Array, z: IntArray, n: int, shift: Array) -> None:
    """Count an arm's columns and rewards from elsewhere: `shift` (D,) is what they lose, the rewards' last."""
    D = shift.shape[0]
    for i in range(n):
        for j in range(D - 1):
            data[i, j] -= shift[j]
        data[i, D] -= shift[D - 1]
    for k in range(K):
        shift_rewards(T, k, shift)
        recount(T, k, data, z, n, label[k])


@kernel
def forget(
    tables: Array,
    labels: IntArray,
    sizes: IntArray,
    centres: Array,
    hyper: Array,
    columns: Array,
    law: Array,
    share: float,
) -> None:
    """Let only a share of every arm's past remain, for good, and drop the components that hold next to nothing."""
    hyper[SEEN] *= share
    columns[SPREAD] *= share
    columns[SUM] *= share
    columns[NONZERO] *= share
    for arm in range(tables.shape[0]):
        T, label, place, size = tables[arm], labels[arm, 0], labels[arm, 1], sizes[arm]
        size[ROWS] = size[NEXT] = 0
        for k in range(size[0] - 1, -1, -1):
            fade(T, k, columns.shape[1], share)
            if T[COUNT, k] <= FORGOTTEN:
                close_place(T, label, place, size, k)
    rebuild_posteriors(tables, sizes, centres, hyper, columns, law)
