"""Sticks of logistic regressions, shared between arms: which single value a reward takes, if any.

P(kind = j | kind >= j, x) = sigmoid(f'beta_aj) in arm a, f = (x, 1);  kinds below m are values, kind m is the rest
beta_aj ~ N(beta_0j, Lambda_j):  slopes have variance lam_j0 u_i, the height at `at` has variance lam_j1
beta_0j ~ N(0, wide) in the same units,  lam_jg ~ IG(shape_g, scale_g)

u_i   unit of column i: 1 / mean square of its non-zero entries;  at_i  0, or the mean of a column far from 0
omega ~ PG(1, f'beta) of every reward that reaches a stick: given them beta is normal (polya_gamma.py)
eta   f'mode when the reward was last visited: the log likelihood is expanded there to second order, and `mode` is
      the maximum of all expansions together: Newton's method, some rewards at a time

sums (A, m, 1 + 2 D + 2 P)   of an arm and stick, P = D (D + 1) / 2 for the lower triangle of a symmetric matrix:
    n | h = sum (k - 1/2) f | g = sum (k - p + w eta) f | S = sum omega f f' | W = sum w f f'
    with k = 1[kind = j], p = sigmoid(eta), w = p (1 - p)
kept                         the same, of the rewards that can move no more
fits (A, m, D, D + 2)        factor of W + Lambda^-1 (lower triangle), then mode, then beta as last drawn
shared (m, 2, D)             beta_0, its last entry the height at `at`, and the variances lam around it, without units
guess (m, 2, D)              mean and variance of beta as the modes take them, likewise: at first N(0, 1), then
                             averages over many of the latest draws of shared
columns (6, D)               units, `at`, and the columns' sums;  sizes (A, 2)  rows that can move, next row
data (N, D + 2 + 2 m)        rewards of one arm: f, y, kind, omega of every stick, eta of every stick
hyperprior (8,)              shape and scale of lam, variance `wide` of beta_0, largest lam, each for slopes and height
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm.errors import COLUMN_NOTHING
from polyarm.kernels import polya_gamma
from polyarm.kernels._jit import RngHandle, inlined, kernel, no_refcount, rng_from
from polyarm.kernels.copying import copy_row, copy_rows
from polyarm.kernels.linalg.triangle import factorise, solve_lower, solve_upper
from polyarm.types import Array, IntArray, Rng

UNIT, AT, SQUARES, NONZERO, TOTAL, SEEN = 0, 1, 2, 3, 4, 5
SHAPE, SCALE, WIDE, HIGH = 0, 2, 4, 6
ROWS, NEXT = 0, 1
STEPS = 64  # units are estimated at every step up to here, then at powers of two
WILD = 64.0  # squared distance from where a column is counted, in its unit, at which columns are measured at once
FAR = 9.0  # squared distance of a column's mean from 0, in variances, from which it is measured around its mean
ENOUGH = 16  # contexts that can tell this: two or three that happen to be alike seem to have no spread
CONSTANT = 1e-9  # a column whose variance is below this share of its squared mean is constant
LAM_LOW = 1e-6  # no data reach this
STEEP = 30.0  # |eta| at most: beyond it a probability is 0 or 1 to all digits that matter
FIRST = 2000.0  # draws of what the arms share that the guess counts for when nothing has been learnt yet
ARMS = 6  # arms from which this holds for variances too: fewer say little about how arms differ, and it counts for more
LATEST = 2000.0  # draws that it is an average of besides
STRIDE = 3.0  # Newton's step changes the log odds of no reward visited by more
STRIDES = 8  # steps of a visit at most: one that was held back is followed by another


class Sticks(NamedTuple):
    """All sticks of all arms, as kernels take them."""

    sums: Array
    kept: Array
    fits: Array
    shared: Array
    guess: Array
    columns: Array
    sizes: IntArray

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Axes that change with the number of kinds."""
        return {"sums": (1,), "kept": (1,), "fits": (1,), "shared": (0,), "guess": (0,)}


@inlined
def sigmoid(z: float) -> float:
    """1 / (1 + exp(-z))."""
    return 1.0 / (1.0 + math.exp(-z)) if z > -700.0 else 0.0


@inlined
def along(f: Array, fit: Array, column: int) -> float:
    """The product of f and a column of a fit: f'mode or f'beta."""
    total = 0.0
    for i in range(fit.shape[0]):
        total += f[i] * fit[i, column]
    return total


@inlined
def expand(eta: float, k: float) -> tuple[float, float]:
    """Curvature w and k - p + w eta of a reward's log likelihood at eta."""
    p = sigmoid(eta)
    w = p * (1.0 - p)
    return w, k - p + w * eta


@inlined
def count_in(s: Array, f: Array, D: int, k: float, omega: float, eta: float) -> None:
    """Add a reward to the sums of a stick."""
    w, g = expand(eta, k)
    P = D * (D + 1) // 2
    s[0] += 1.0
    r = 1 + 2 * D
    for i in range(D):
        s[1 + i] += (k - 0.5) * f[i]
        s[1 + D + i] += g * f[i]
        for j in range(i + 1):
            t = f[i] * f[j]
            s[r] += omega * t
            s[r + P] += w * t
            r += 1


@inlined
def change(s: Array, f: Array, D: int, omega: float, w: float, g: float) -> None:
    """Change what a reward adds to the sums of a stick by these amounts."""
    P = D * (D + 1) // 2
    r = 1 + 2 * D
    for i in range(D):
        s[1 + D + i] += g * f[i]
        for j in range(i + 1):
            t = f[i] * f[j]
            s[r] += omega * t
            s[r + P] += w * t
            r += 1


@no_refcount
def move(sticks: Sticks, data: Array, arm: int, i: int, rng: Rng) -> None:
    """Draw the omegas of reward i again, given beta, and expand its log likelihood at the mode of now."""
    m, D = sticks.fits.shape[1], sticks.fits.shape[2]
    row = data[i]
    kind = int(row[D + 1])
    for j in range(min(kind + 1, m)):
        fit = sticks.fits[arm, j]
        k = 1.0 if kind == j else 0.0
        w_old, g_old = expand(row[D + 2 + m + j], k)
        omega = polya_gamma.draw(along(row, fit, D + 1), rng)
        eta = min(max(along(row, fit, D), -STEEP), STEEP)
        w, g = expand(eta, k)
        change(sticks.sums[arm, j], row, D, omega - row[D + 2 + j], w - w_old, g - g_old)
        row[D + 2 + j] = omega
        row[D + 2 + m + j] = eta


@no_refcount
def expand_again(sticks: Sticks, row: Array, arm: int, j: int) -> None:
    """Expand the log likelihood of a reward of a stick at the mode of now, if it reaches that stick."""
    m, D = sticks.fits.shape[1], sticks.fits.shape[2]
    kind = int(row[D + 1])
    if kind >= j:
        k = 1.0 if kind == j else 0.0
        w_old, g_old = expand(row[D + 2 + m + j], k)
        row[D + 2 + m + j] = min(max(along(row, sticks.fits[arm, j], D), -STEEP), STEEP)
        w, g = expand(row[D + 2 + m + j], k)
        change(sticks.sums[arm, j], row, D, 0.0, w - w_old, g - g_old)


@inlined
def add_prior(prior: Array, columns: Array, M: Array, v: Array, variance: Array) -> None:
    """Add the information of a prior to the lower triangle of M, and times its mean to v; write its variances."""
    D = v.shape[0]
    unit, at = columns[UNIT], columns[AT]
    last = D - 1
    height = 1.0 / prior[1, last]
    variance[last] = prior[1, last]
    for i in range(last):
        variance[i] = prior[1, i] * unit[i]
        q = 1.0 / variance[i]
        M[i, i] += q
        v[i] += q * prior[0, i] + at[i] * height * prior[0, last]
        if at[i] != 0.0:
            variance[last] += at[i] * at[i] * variance[i]
            for h in range(i + 1):
                M[i, h] += at[i] * at[h] * height
            M[last, i] += at[i] * height
    M[last, last] += height
    v[last] += height * prior[0, last]


@inlined
def unpack(s: Array, first: int, M: Array, D: int) -> None:
    """Copy a packed lower triangle."""
    r = first
    for i in range(D):
        for j in range(i + 1):
            M[i, j] = s[r]
            r += 1


@inlined
def go_to_centre(prior: Array, columns: Array, fit: Array, v: Array, variance: Array) -> None:
    """From information (the lower triangle of fit) and its product with the centre (v) of what rewards say, write
    factor and centre of the posterior to fit, and the step to the new centre to v.
    """
    D = v.shape[0]
    add_prior(prior, columns, fit, v, variance)
    factorise(fit, variance, D)
    solve_lower(fit, v, D)
    solve_upper(fit, v, D)
    for i in range(D):
        v[i] -= fit[i, D]
        fit[i, D] += v[i]


class Chosen(NamedTuple):
    """Rewards of an arm that are visited: the latest, and a run of neighbours, which is quick to read."""

    n_chosen: int
    latest: int
    first: int  # before the run
    n: int  # rewards in all


@inlined
def visited(rows: Chosen, turn: int) -> int:
    """The reward that is visited at a turn."""
    return rows.latest if turn == 0 else (rows.first + turn) % rows.n


@inlined
def hold_back(fit: Array, data: Array, rows: Chosen, stride: Array, most: float) -> bool:
    """Take back so much of a step that the predictor of no reward visited changes by more than `most`, and tell
    whether there was something to take back.
    """
    D = stride.shape[0]
    far = 0.0
    for turn in range(rows.n_chosen):
        i = visited(rows, turn)
        change = 0.0
        for h in range(D):
            change += data[i, h] * stride[h]
        far = max(far, abs(change))
    if far > most:
        for h in range(D):
            fit[h, D] -= (1.0 - most / far) * stride[h]
    return far > most


@no_refcount
def fit_mode(sticks: Sticks, arm: int, j: int, work: Array) -> None:
    """Write factor and maximum of the expanded posterior of beta, and the step to it into the first row of work."""
    v, variance = work[0], work[1]
    D = v.shape[0]
    s, fit = sticks.sums[arm, j], sticks.fits[arm, j]
    unpack(s, 1 + 2 * D + D * (D + 1) // 2, fit, D)
    for i in range(D):
        v[i] = s[1 + D + i]
    go_to_centre(sticks.guess[j], sticks.columns, fit, v, variance)


@no_refcount
def go_to_mode(sticks: Sticks, data: Array, arm: int, j: int, rows: Chosen, work: Array) -> None:
    """Go to the maximum of the expanded posterior, in strides, between which some rewards are expanded at the mode so
    far: one stride to where old expansions point may lead so far that the next ones say nothing there.
    """
    for strides in range(STRIDES):
        for turn in range(rows.n_chosen if strides > 0 else 0):
            expand_again(sticks, data[visited(rows, turn)], arm, j)
        fit_mode(sticks, arm, j, work)
        if not hold_back(sticks.fits[arm, j], data, rows, work[0], STRIDE):
            break


@no_refcount
def visit(sticks: Sticks, data: Array, arm: int, n_moves: int, work: Array, rng: Rng) -> None:
    """Move some rewards of an arm, then go to the new modes."""
    n = sticks.sizes[arm, ROWS]
    latest = (sticks.sizes[arm, NEXT] - 1) % max(n, 1)
    rows = Chosen(n_moves, latest, int(rng.random() * n), n)
    for turn in range(n_moves):
        move(sticks, data, arm, visited(rows, turn), rng)
    for j in range(sticks.fits.shape[1]):
        go_to_mode(sticks, data, arm, j, rows, work)


@no_refcount
def draw_beta(sticks: Sticks, arm: int, j: int, M: Array, work: Array, rng: Rng) -> None:
    """Draw beta given the omegas and what the arms share."""
    v, variance = work[0], work[1]
    D = v.shape[0]
    s = sticks.sums[arm, j]
    unpack(s, 1 + 2 * D, M, D)
    for i in range(D):
        v[i] = s[1 + i]
    add_prior(sticks.shared[j], sticks.columns, M, v, variance)
    factorise(M, variance, D)
    solve_lower(M, v, D)
    for i in range(D):
        v[i] += rng.standard_normal()
    solve_upper(M, v, D)
    for i in range(D):
        sticks.fits[arm, j, i, D + 1] = v[i]


@inlined
def height_of(sticks: Sticks, arm: int, j: int) -> float:
    """The drawn log odds at `at`."""
    D = sticks.fits.shape[2]
    total = sticks.fits[arm, j, D - 1, D + 1]
    for i in range(D - 1):
        total += sticks.columns[AT, i] * sticks.fits[arm, j, i, D + 1]
    return total


@no_refcount
def draw_shared(sticks: Sticks, j: int, hyperprior: Array, rng: Rng) -> None:
    """Draw beta_0 and lam of a stick given the beta of every arm that has a reward there, and follow with the guess.

    The guess takes in the distributions that are drawn from rather than the draws.
    """
    A, D = sticks.fits.shape[0], sticks.fits.shape[2]
    shared, guess = sticks.shared[j], sticks.guess[j]
    last = D - 1
    n, count, squares = 0.0, 0.0, 0.0
    for arm in range(A):
        n += sticks.sums[arm, j, 0]
        if sticks.sums[arm, j, 0] > 0.0:
            count += 1.0
    slow = FIRST * max((ARMS - 1.0) / max(A - 1, 1), 1.0)
    rate = 1.0 / (FIRST + min(n, LATEST)) if n >= STEPS else 0.0  # units are guesses themselves at first
    var_rate = 1.0 / (slow + min(n, LATEST)) if n >= STEPS else 0.0
    for i in range(D):
        g = 0 if i < last else 1
        unit = sticks.columns[UNIT, i] if i < last else 1.0
        lam = shared[1, i]
        total = 0.0
        for arm in range(A):
            if sticks.sums[arm, j, 0] > 0.0:
                total += sticks.fits[arm, j, i, D + 1] if i < last else height_of(sticks, arm, j)
        spread = 1.0 / (1.0 / hyperprior[WIDE + g] + count / lam)
        mean = total / lam * spread
        away = (mean - guess[0, i]) ** 2 / unit
        guess[0, i] += rate * (mean - guess[0, i])
        guess[1, i] += var_rate * (spread + (1.0 - rate) * away - guess[1, i])
        shared[0, i] = mean + math.sqrt(spread * unit) * rng.standard_normal()
        if i == last:
            lam = draw_lam(hyperprior, 0, shared[1, 0], last * count, squares, rng)
            typical = min(
                (hyperprior[SCALE] + 0.5 * squares) / (hyperprior[SHAPE] + 0.5 * last * count), hyperprior[HIGH]
            )
            for h in range(last):
                shared[1, h] = lam
                guess[1, h] += var_rate * typical
            squares = 0.0
        for arm in range(A):
            if sticks.sums[arm, j, 0] > 0.0:
                own = sticks.fits[arm, j, i, D + 1] if i < last else height_of(sticks, arm, j)
                squares += (own - shared[0, i]) * (own - shared[0, i]) / unit
    shared[1, last] = draw_lam(hyperprior, 1, shared[1, last], count, squares, rng)
    guess[1, last] += var_rate * min(
        (hyperprior[SCALE + 1] + 0.5 * squares) / (hyperprior[SHAPE + 1] + 0.5 * count), hyperprior[HIGH + 1]
    )


@inlined
def draw_lam(hyperprior: Array, g: int, lam: float, count: float, squares: float, rng: Rng) -> float:
    """Draw a variance given the sum of so many squares and its largest value, or let it be."""
    drawn = (hyperprior[SCALE + g] + 0.5 * squares) / rng.standard_gamma(hyperprior[SHAPE + g] + 0.5 * count)
    return drawn if LAM_LOW < drawn < hyperprior[HIGH + g] else lam


@kernel
def redraw_shared(sticks: Sticks, arm: int, other: int, hyperprior: Array, handle: RngHandle) -> None:
    """Draw beta of two arms, then what the arms share, and bring every arm's mode up to date with it."""
    rng = rng_from(handle)
    m, D = sticks.fits.shape[1], sticks.fits.shape[2]
    M, work = np.empty((D, D)), np.empty((2, D))
    for j in range(m):
        draw_beta(sticks, arm, j, M, work, rng)
        if other != arm:
            draw_beta(sticks, other, j, M, work, rng)
        draw_shared(sticks, j, hyperprior, rng)
    fit_all(sticks)


@kernel
def fit_all(sticks: Sticks) -> None:
    """Bring every arm's mode up to date with the guess."""
    work = np.empty((2, sticks.fits.shape[2]))
    for arm in range(sticks.fits.shape[0]):
        for j in range(sticks.fits.shape[1]):
            fit_mode(sticks, arm, j, work)


@kernel
def visits(sticks: Sticks, data: Array, arm: int, n_moves: int, n_rounds: int, handle: RngHandle) -> None:
    """Visit an arm's rewards in rounds of n_moves, at most all of them once in each round."""
    rng = rng_from(handle)
    n = min(n_moves, sticks.sizes[arm, ROWS])
    work = np.empty((2, sticks.fits.shape[2]))
    if n > 0:
        for _ in range(n_rounds):
            visit(sticks, data, arm, n, work, rng)


@kernel
def add_reward(sticks: Sticks, data: Array, arm: int, x: Array, y: float, kind: int, handle: RngHandle) -> None:
    """Write a reward to its arm's next row and add it to the sums; a reward that had the row stays in them for good."""
    rng = rng_from(handle)
    m, D = sticks.fits.shape[1], sticks.fits.shape[2]
    i = sticks.sizes[arm, NEXT]
    row = data[i]
    if i < sticks.sizes[arm, ROWS]:
        old = int(row[D + 1])
        for j in range(min(old + 1, m)):
            count_in(sticks.kept[arm, j], row, D, 1.0 if old == j else 0.0, row[D + 2 + j], row[D + 2 + m + j])
    copy_row(x, row)
    row[D - 1] = 1.0
    row[D] = y
    row[D + 1] = kind
    for j in range(min(kind + 1, m)):
        fit = sticks.fits[arm, j]
        row[D + 2 + j] = polya_gamma.draw(along(row, fit, D + 1), rng)
        row[D + 2 + m + j] = min(max(along(row, fit, D), -STEEP), STEEP)
        count_in(sticks.sums[arm, j], row, D, 1.0 if kind == j else 0.0, row[D + 2 + j], row[D + 2 + m + j])
    sticks.sizes[arm, ROWS] = max(sticks.sizes[arm, ROWS], i + 1)
    sticks.sizes[arm, NEXT] = i + 1


@kernel
def recount(sticks: Sticks, data: Array, arm: int) -> None:
    """Compute an arm's sums afresh from what is kept and the rewards that can move."""
    m, D = sticks.fits.shape[1], sticks.fits.shape[2]
    copy_rows(sticks.kept[arm], sticks.sums[arm])
    for i in range(sticks.sizes[arm, ROWS]):
        row = data[i]
        kind = int(row[D + 1])
        for j in range(min(kind + 1, m)):
            count_in(sticks.sums[arm, j], row, D, 1.0 if kind == j else 0.0, row[D + 2 + j], row[D + 2 + m + j])


@inlined
def is_wild(columns: Array, x: Array) -> bool:
    """Whether an entry is far beyond the unit of its column, as where one that always had one value takes another."""
    for i in range(x.shape[0]):
        gap = x[i] - columns[AT, i]
        if gap * gap * columns[UNIT, i] > WILD:
            return True
    return False


@kernel
def observe(columns: Array, x: Array) -> None:
    """Take a context into the columns' units, which are estimated at every step up to STEPS, then at powers of two and
    whenever an entry is wild.
    """
    columns[SEEN, 0] += 1.0
    n = int(columns[SEEN, 0])
    for i in range(x.shape[0]):
        columns[TOTAL, i] += x[i]
        if x[i] != 0.0:
            columns[SQUARES, i] += x[i] * x[i]
            columns[NONZERO, i] += 1.0
    if n > STEPS and n & (n - 1) != 0 and not is_wild(columns, x):
        return
    for i in range(x.shape[0]):
        square = columns[SQUARES, i] / columns[NONZERO, i] if columns[NONZERO, i] > 0.0 else 0.0
        if square > COLUMN_NOTHING:
            mean = columns[TOTAL, i] / columns[NONZERO, i]
            spread = square - mean * mean
            settled = n >= ENOUGH and columns[NONZERO, i] == n and CONSTANT * square < spread
            far = settled and FAR * spread < mean * mean
            columns[AT, i] = mean if far else 0.0
            columns[UNIT, i] = 1.0 / (spread if far else square)
