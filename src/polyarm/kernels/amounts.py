"""Amounts whose mean is the exponential of a line: a gamma regression, each arm's line around one that all arms share.

f  (D,)  a context and a trailing 1       t   an amount, t = (y - origin) / unit > 0;  unit < 0 where y is below origin
t ~ gamma of shape c and mean mu = exp(eta),  eta = f'beta_a
beta_a ~ N(beta_0, Lambda), beta_0 ~ N(0, wide), lam ~ IG(shape, scale): see kernels.sticks

beta_a is N(U, V), the normal nearest to its posterior, as in kernels.links.  Here slope and curvature have closed
forms: with m = f'U, v = f'Vf and r = E[t / mu] = t exp(v / 2 - m), slope c (r - 1) and negative curvature c r, so
    V^-1 = Lambda^-1 + c sum r f f',      V^-1 U = Lambda^-1 beta_0 + c sum z f,      z = r - 1 + r m
Every reward keeps the r and z of its last visit.

weights (2,)        of another model of the same amounts and of this one: they are judged by the *mean* that each
                    predicts.  exp(-c (log m + t / m)) is a gamma likelihood, and for any distribution of t its
                    logarithm is expected to be highest where m is the mean of t.  Weights move as in kernels.links.
density_weights (2,)  the same by the density that each gave to an amount: what is said of a distribution, not of a mean

sums (A, 1 + D + P)   of an arm, P = D (D + 1) / 2:  n | sum z f | sum r f f' (lower triangle)
fits (A, D, D + 1)    factor of V^-1 (lower triangle), then U;  kept, guess (3, D), columns, sizes as in kernels.links
level (5,)            whether there is a model, c, origin, unit, the largest t so far
data (N, D + 3)       amounts of one arm: f, y, r, z
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm.kernels._jit import RngHandle, inlined, kernel, no_refcount, rng_from
from polyarm.kernels.copying import copy_row
from polyarm.kernels.generalized import NODES, WEIGHTS
from polyarm.kernels.links import SWITCH, choose_rows, count_in, predictor, share_line, weigh
from polyarm.kernels.sticks import NEXT, ROWS, STRIDES, Chosen, go_to_centre, hold_back, unpack, visited
from polyarm.types import Array, IntArray

STATUS, GAMMA_SHAPE, ORIGIN, AMOUNT_UNIT, HIGHEST = 0, 1, 2, 3, 4
WAITING, OFF, ON = 0, 1, 2  # whether there is a model
STRIDE = 1.0  # Newton's step changes the predictor of no reward visited by more
BEYOND = 3.0  # no mean amount is above so many times the largest amount seen
LEAST_MEAN = 0.1  # of the unit: the least mean that a model is taken by its word for
NEXT_TO_NOTHING = 1e-3  # of the unit: what an amount of nothing counts as
STEEP = 30.0  # logarithm of the largest r


class Amounts(NamedTuple):
    """The model of all arms, as kernels take it; without arms while there is none."""

    sums: Array
    kept: Array
    fits: Array
    guess: Array
    level: Array
    columns: Array
    sizes: IntArray

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Axes that there is nothing on before there are amounts."""
        return {"sums": (0,), "kept": (0,), "fits": (0,)}


@inlined
def mean_at(amounts: Amounts, eta: float) -> float:
    """Mean amount given the predictor, in units."""
    return math.exp(min(max(eta, -700.0), math.log(BEYOND * amounts.level[HIGHEST])))


@inlined
def expected_mean(amounts: Amounts, arm: int, f: Array, v: Array) -> float:
    """Mean amount of an arm in units; v is scratch."""
    m, square = predictor(amounts.fits[arm], f, v)
    mean = 0.0
    for i in range(NODES.shape[0]):
        mean += WEIGHTS[i] * mean_at(amounts, m + math.sqrt(square) * NODES[i])
    return mean


@inlined
def expected_density(amounts: Amounts, arm: int, f: Array, v: Array, t: float) -> float:
    """Predictive density of an amount t of an arm, in units; v is scratch."""
    m, square = predictor(amounts.fits[arm], f, v)
    shape, density = amounts.level[GAMMA_SHAPE], 0.0
    for i in range(NODES.shape[0]):
        part = shape * t / mean_at(amounts, m + math.sqrt(square) * NODES[i])
        density += WEIGHTS[i] * math.exp(shape * math.log(part) - part - math.lgamma(shape)) / t
    return density


@no_refcount
def fit_arm(amounts: Amounts, arm: int, work: Array) -> None:
    """Write factor and centre of an arm's coefficients, and the step to the centre into the first row of work."""
    v, variance = work[0], work[1]
    D = v.shape[0]
    s, fit, shape = amounts.sums[arm], amounts.fits[arm], amounts.level[GAMMA_SHAPE]
    unpack(s, 1 + D, fit, D)
    for i in range(D):
        v[i] = shape * s[1 + i]
        for j in range(i + 1):
            fit[i, j] *= shape
    go_to_centre(amounts.guess, amounts.columns, fit, v, variance)


@kernel
def fit_all(amounts: Amounts) -> None:
    """Bring every arm's coefficients up to date with the shape and with what the arms share."""
    work = np.empty((2, amounts.fits.shape[1]))
    for arm in range(amounts.fits.shape[0]):
        fit_arm(amounts, arm, work)


@kernel
def recount(amounts: Amounts, data: Array, arm: int) -> None:
    """Compute an arm's sums afresh from what is kept and the amounts that can move."""
    D = data.shape[1] - 3
    n = amounts.sums[arm, 0]
    copy_row(amounts.kept[arm], amounts.sums[arm])
    amounts.sums[arm, 0] = n
    for i in range(amounts.sizes[arm, ROWS]):
        count_in(amounts.sums[arm], data[i], D, data[i, D + 1], data[i, D + 2])


@no_refcount
def stride(amounts: Amounts, data: Array, arm: int, rows: Chosen, work: Array) -> bool:
    """Expand some amounts of an arm anew, then go to the new centre, no further than STRIDE for these amounts; tell
    whether it is further away.  With all of them visited the sums are new, too.
    """
    D = amounts.fits.shape[1]
    fit, s = amounts.fits[arm], amounts.sums[arm]
    for turn in range(rows.n_chosen):
        row = data[visited(rows, turn)]
        t = (row[D] - amounts.level[ORIGIN]) / amounts.level[AMOUNT_UNIT]
        m, v = predictor(fit, row, work[1])
        r = math.exp(min(math.log(t) + 0.5 * v - m, STEEP))
        z = r - 1.0 + r * m
        count_in(s, row, D, r - row[D + 1], z - row[D + 2])
        row[D + 1] = r
        row[D + 2] = z
    if rows.n_chosen == rows.n:
        recount(amounts, data, arm)
    fit_arm(amounts, arm, work)
    return hold_back(fit, data, rows, work[0], STRIDE)


@kernel
def visit(amounts: Amounts, data: Array, arm: int, n_moves: int, start: int) -> None:
    """Expand the latest amount of an arm and a run of others from `start` anew, and stride to the new centre."""
    rows, work = choose_rows(amounts.sizes[arm], n_moves, start), np.empty((2, amounts.fits.shape[1]))
    for _ in range(STRIDES if rows.n_chosen > 0 else 0):
        if not stride(amounts, data, arm, rows, work):
            break


@kernel
def add_reward(amounts: Amounts, data: Array, arm: int, x: Array, y: float) -> None:
    """Write a reward to its arm's next row; one that had the row stays in the sums for good."""
    D, i = amounts.fits.shape[1], amounts.sizes[arm, NEXT]
    row = data[i]
    if i < amounts.sizes[arm, ROWS]:
        count_in(amounts.kept[arm], row, D, row[D + 1], row[D + 2])
    amounts.sums[arm, 0] += 1.0
    row[:] = 0.0
    copy_row(x, row)
    row[D - 1] = 1.0
    row[D] = y
    amounts.sizes[arm, ROWS] = max(amounts.sizes[arm, ROWS], i + 1)
    amounts.sizes[arm, NEXT] = i + 1
    t = (y - amounts.level[ORIGIN]) / amounts.level[AMOUNT_UNIT]
    amounts.level[HIGHEST] = max(amounts.level[HIGHEST], t)


@kernel
def share(amounts: Amounts, hyperprior: Array) -> None:
    """Bring what the arms share up to date, then every arm's coefficients with it."""
    work = np.empty((2, amounts.fits.shape[1]))
    share_line(amounts.sums[:, 0], amounts.fits, amounts.guess, amounts.columns, hyperprior, work)
    fit_all(amounts)


@kernel
def is_finite(amounts: Amounts, weights: Array, density_weights: Array) -> bool:
    """Whether all that predictions are made from is finite: a sum keeps what is none."""
    total = weights[0] + weights[1] + density_weights[0] + density_weights[1]
    for i in range(amounts.level.shape[0]):
        total += amounts.level[i]
    for arm in range(amounts.fits.shape[0]):
        for i in range(amounts.sums.shape[1]):
            total += amounts.sums[arm, i]
        for i in range(amounts.fits.shape[1]):
            for j in range(amounts.fits.shape[2]):
                total += amounts.fits[arm, i, j]
    return math.isfinite(total)


@kernel
def moments(amounts: Amounts, weights: Array, x: Array, out: Array) -> None:
    """Turn mean and standard deviation of every arm's mean amount, (2, n_arms), into those of a mixture of models."""
    D = amounts.fits.shape[1]
    f, v = np.ones(D), np.empty(D)
    copy_row(x, f)
    for arm in range(out.shape[1]):
        base = out[0, arm]
        first, second = 0.0, weights[0] * out[1, arm] * out[1, arm]
        m, square = predictor(amounts.fits[arm], f, v)
        for i in range(NODES.shape[0]):
            t = mean_at(amounts, m + math.sqrt(square) * NODES[i])
            gap = amounts.level[ORIGIN] + amounts.level[AMOUNT_UNIT] * t - base
            first += weights[1] * WEIGHTS[i] * gap
            second += weights[1] * WEIGHTS[i] * gap * gap
        out[0, arm] = base + first
        out[1, arm] = math.sqrt(max(second - first * first, 0.0))


@kernel
def moments_many(amounts: Amounts, weights: Array, contexts: Array, out: Array) -> None:
    """The same in many contexts (n, d), out (n, 2, n_arms)."""
    for i in range(contexts.shape[0]):
        moments(amounts, weights, contexts[i], out[i])


@kernel
def draw_means(amounts: Amounts, x: Array, out: Array, handle: RngHandle) -> None:
    """Fill out (n_draws, n_arms) with draws of every arm's mean amount, in units."""
    rng = rng_from(handle)
    D = amounts.fits.shape[1]
    f, v = np.ones(D), np.empty(D)
    copy_row(x, f)
    for arm in range(out.shape[1]):
        m, square = predictor(amounts.fits[arm], f, v)
        for draw in range(out.shape[0]):
            out[draw, arm] = mean_at(amounts, m + math.sqrt(square) * rng.standard_normal())


@kernel
def node_means(amounts: Amounts, arm: int, x: Array, out: Array) -> None:
    """Fill out with an arm's mean amounts, in units, at the nodes that its line is integrated over."""
    D = amounts.fits.shape[1]
    f, v = np.ones(D), np.empty(D)
    copy_row(x, f)
    m, square = predictor(amounts.fits[arm], f, v)
    for i in range(NODES.shape[0]):
        out[i] = mean_at(amounts, m + math.sqrt(square) * NODES[i])


@kernel
def judge(
    amounts: Amounts, weights: Array, density_weights: Array, arm: int, x: Array, y: float, base: float, density: float
) -> None:
    """Weigh the models by the means that they predicted, and by the densities, base and density being the other's."""
    D = amounts.fits.shape[1]
    f, v = np.ones(D), np.empty(D)
    copy_row(x, f)
    unit = amounts.level[AMOUNT_UNIT]
    t = (y - amounts.level[ORIGIN]) / unit
    p = np.empty(2)
    p[0] = (base - amounts.level[ORIGIN]) / unit
    p[1] = expected_mean(amounts, arm, f, v)
    for i in range(2):
        mean = max(p[i], LEAST_MEAN)
        p[i] = -amounts.level[GAMMA_SHAPE] * (math.log(mean) + t / mean)
    best = max(p[0], p[1])
    for i in range(2):
        p[i] = math.exp(p[i] - best)
    weigh(weights, p, SWITCH)
    p[0] = density * abs(unit)
    p[1] = expected_density(amounts, arm, f, v, t if t > 0.0 else NEXT_TO_NOTHING)
    best = max(p[0], p[1])
    if best > 0.0:
        p[0] /= best
        p[1] /= best
        weigh(density_weights, p, SWITCH)
