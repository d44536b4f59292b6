"""Rewards on a grid whose mean is a link of a line: counts and marks, each arm's line around one that all arms share.

f  (D,)  a context and a trailing 1       k   number of the grid's value, y = lowest + k step or y = k step
COUNTS   k ~ negative binomial of mean mu = exp(eta) and variance mu + r mu^2;  r = 0 is Poisson
MARKS    P(k > j) = sigmoid(eta - c_j), the cut points c shared by all arms (proportional odds)
eta      f'beta_a, for counts plus the logarithm of a typical count
beta_a ~ N(beta_0, Lambda), beta_0 ~ N(0, wide), lam ~ IG(shape, scale): see kernels.sticks

beta_a is N(U, V), the normal nearest to its posterior (Opper & Archambeau 2009; see kernels.generalized): with slope s
and negative curvature w of log p(k | eta), expected over eta ~ N(m, v), m = f'U, v = f'Vf,
    V^-1 = Lambda^-1 + sum w f f',      V^-1 U = Lambda^-1 beta_0 + sum z f,      z = s + w m
Every reward keeps the w and z of its last visit: Newton's method, some rewards at a time.

weights (M,)             of models, by w_m <- (1 - SWITCH) w_m p_m / sum + SWITCH / M, p_m being the probability that
                         model m gave to a reward before it was learnt: the posterior of the model that rewards come
                         from, where now and then they begin to come from another one (Herbster & Warmuth 1998)

sums (A, F, 1 + D + P)   of an arm and family, P = D (D + 1) / 2:  n | sum z f | sum w f f' (lower triangle)
kept                     the same, of the rewards that can move no more
fits (A, F, D, D + 1)    factor of V^-1 (lower triangle), then U
guess (F, 3, D)          mean and variance of a new arm's beta, and lam, as in kernels.sticks
level (2,)               r, and the logarithm of a typical count
grid (7,)                whether rewards are still on a grid, its lowest and highest value so far, its step, how many
                         rewards it was found from, and for every family whether it is a model of these rewards
columns, sizes           as in kernels.sticks
data (N, D + 1 + 2 F)    rewards of one arm: f, y, w of every family, z of every family
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm.kernels._jit import RngHandle, inlined, kernel, no_refcount, rng_from
from polyarm.kernels.copying import copy_row
from polyarm.kernels.generalized import NODES, WEIGHTS, mark_slope, sigmoid
from polyarm.kernels.linalg.triangle import solve_lower
from polyarm.kernels.sticks import (
    AT,
    HIGH,
    NEXT,
    ROWS,
    SCALE,
    SHAPE,
    STRIDES,
    UNIT,
    WIDE,
    Chosen,
    go_to_centre,
    hold_back,
    unpack,
    visited,
)
from polyarm.types import Array, IntArray

COUNTS, MARKS = 0, 1
FAMILIES = 2
STATUS, LOWEST, HIGHEST, STEP, TAKEN, ALIVE = 0, 1, 2, 3, 4, 5
DISPERSION, LEVEL = 0, 1
MEAN, VARIANCE, LAM = 0, 1, 2
NARROW = 0.3  # up to this variance of the predictor three nodes see a slope to 1e-3
STRIDE = 1.0  # Newton's step changes the predictor of no reward visited by more
BEYOND = 8.0  # no mean count is above so many times the largest count seen
SWITCH = 0.001  # probability that rewards begin to come from another model
NEVER = 1e-9  # the same for the dispersion of counts, so that no value is lost for good
LEAST = 1e-12  # probability of any reward, whatever a model says
ROOT_3 = 1.7320508075688772


class Links(NamedTuple):
    """Both families of all arms, as kernels take them; without families before rewards are found to be on a grid."""

    sums: Array
    kept: Array
    fits: Array
    guess: Array
    cuts: Array
    level: Array
    grid: Array
    columns: Array
    sizes: IntArray

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Axes that there is nothing on before rewards are found to be on a grid, and the cut points."""
        return {"sums": (1,), "kept": (1,), "fits": (1,), "guess": (0,), "cuts": (0,)}


@inlined
def number_of(links: Links, family: int, y: float) -> float:
    """The number k of a reward."""
    origin = links.grid[LOWEST] if family == MARKS else 0.0
    return math.floor((y - origin) / links.grid[STEP] + 0.5)


@inlined
def lives(links: Links, family: int) -> bool:
    """Whether a family is a model of these rewards."""
    return links.fits.shape[1] > 0 and links.grid[ALIVE + family] > 0.0


@inlined
def highest_eta(links: Links) -> float:
    """The logarithm of the largest mean count that is believed."""
    return math.log(BEYOND * (links.grid[HIGHEST] / links.grid[STEP] + 1.0))


@inlined
def slope_at(links: Links, family: int, eta: float, k: float) -> tuple[float, float]:
    """Slope and negative curvature of a reward's log probability."""
    if family == MARKS:
        return mark_slope(links.cuts, eta, min(max(k, 0.0), float(links.cuts.shape[0])))
    mu = math.exp(min(eta + links.level[LEVEL], highest_eta(links)))
    t = 1.0 / (1.0 + links.level[DISPERSION] * mu)
    return (k - mu) * t, mu * (1.0 + links.level[DISPERSION] * k) * t * t


@inlined
def expected_slope(links: Links, family: int, m: float, v: float, k: float) -> tuple[float, float]:
    """The pair s and w."""
    sd = math.sqrt(v)
    if v < NARROW:
        s, w = slope_at(links, family, m, k)
        low_s, low_w = slope_at(links, family, m - ROOT_3 * sd, k)
        high_s, high_w = slope_at(links, family, m + ROOT_3 * sd, k)
        return (4.0 * s + low_s + high_s) / 6.0, (4.0 * w + low_w + high_w) / 6.0
    s, w = 0.0, 0.0
    for i in range(NODES.shape[0]):
        slope, bend = slope_at(links, family, m + sd * NODES[i], k)
        s += WEIGHTS[i] * slope
        w += WEIGHTS[i] * bend
    return s, w


@inlined
def predictor(fit: Array, f: Array, v: Array) -> tuple[float, float]:
    """Mean and variance of f'beta; v is scratch."""
    D = fit.shape[0]
    mean, square = 0.0, 0.0
    for i in range(D):
        v[i] = f[i]
        mean += f[i] * fit[i, D]
    solve_lower(fit, v, D)
    for i in range(D):
        square += v[i] * v[i]
    return mean, square


@inlined
def count_in(s: Array, f: Array, D: int, w: float, z: float) -> None:
    """Add w f f' and z f to sums."""
    r = 1 + D
    for i in range(D):
        s[1 + i] += z * f[i]
        for j in range(i + 1):
            s[r] += w * f[i] * f[j]
            r += 1


@no_refcount
def fit_arm(links: Links, family: int, arm: int, work: Array) -> None:
    """Write factor and centre of an arm's coefficients, and the step to the centre into the first row of work."""
    v, variance = work[0], work[1]
    D = v.shape[0]
    s, fit = links.sums[arm, family], links.fits[arm, family]
    unpack(s, 1 + D, fit, D)
    for i in range(D):
        v[i] = s[1 + i]
    go_to_centre(links.guess[family], links.columns, fit, v, variance)


@kernel
def fit_all(links: Links) -> None:
    """Bring every arm's coefficients up to date with what the arms share."""
    work = np.empty((2, links.fits.shape[2]))
    for arm in range(links.fits.shape[0]):
        for family in range(links.fits.shape[1]):
            fit_arm(links, family, arm, work)


@kernel
def recount(links: Links, data: Array, arm: int) -> None:
    """Compute an arm's sums afresh from what is kept and the rewards that can move."""
    D = links.fits.shape[2]
    for family in range(links.fits.shape[1]):
        n = links.sums[arm, family, 0]
        copy_row(links.kept[arm, family], links.sums[arm, family])
        links.sums[arm, family, 0] = n
        for i in range(links.sizes[arm, ROWS]):
            row = data[i]
            count_in(links.sums[arm, family], row, D, row[D + 1 + family], row[D + 1 + FAMILIES + family])


@no_refcount
def stride(links: Links, data: Array, arm: int, rows: Chosen, work: Array) -> bool:
    """Expand some rewards of an arm anew, then go to the new centres, no further than STRIDE for these rewards; tell
    whether one is further away.

    With all rewards visited the sums are new, too: the first slopes of an arm can be steep, and differences of large
    numbers would stay in them for good.
    """
    D = links.fits.shape[2]
    for family in range(FAMILIES):
        if not lives(links, family):
            continue
        fit, s = links.fits[arm, family], links.sums[arm, family]
        for turn in range(rows.n_chosen):
            row = data[visited(rows, turn)]
            k = number_of(links, family, row[D])
            m, v = predictor(fit, row, work[1])
            slope, w = expected_slope(links, family, m, v, k)
            z = slope + w * m
            count_in(s, row, D, w - row[D + 1 + family], z - row[D + 1 + FAMILIES + family])
            row[D + 1 + family] = w
            row[D + 1 + FAMILIES + family] = z
    if rows.n_chosen == rows.n:
        recount(links, data, arm)
    held = False
    for family in range(FAMILIES):
        if lives(links, family):
            fit_arm(links, family, arm, work)
            if hold_back(links.fits[arm, family], data, rows, work[0], STRIDE):
                held = True
    return held


@inlined
def choose_rows(size: IntArray, n_moves: int, start: int) -> Chosen:
    """The latest reward of an arm of that size and a run of others from `start`, or all from the latest on."""
    n = size[ROWS]
    count, latest = min(n_moves, n), (size[NEXT] - 1) % max(n, 1)
    return Chosen(count, latest, latest if count == n else start % n, n)


@kernel
def visit(links: Links, data: Array, arm: int, n_moves: int, start: int) -> None:
    """Expand the latest reward of an arm and a run of others from `start` anew, and stride to the new centres."""
    rows, work = choose_rows(links.sizes[arm], n_moves, start), np.empty((2, links.fits.shape[2]))
    for _ in range(STRIDES if rows.n_chosen > 0 else 0):
        if not stride(links, data, arm, rows, work):
            break


@kernel
def add_reward(links: Links, data: Array, arm: int, x: Array, y: float) -> None:
    """Write a reward to its arm's next row; a reward that had the row stays in the sums for good."""
    D, i = links.fits.shape[2], links.sizes[arm, NEXT]
    row = data[i]
    for family in range(links.fits.shape[1]):
        if i < links.sizes[arm, ROWS]:
            count_in(links.kept[arm, family], row, D, row[D + 1 + family], row[D + 1 + FAMILIES + family])
        links.sums[arm, family, 0] += 1.0
    row[:] = 0.0
    copy_row(x, row)
    row[D - 1] = 1.0
    row[D] = y
    links.sizes[arm, ROWS] = max(links.sizes[arm, ROWS], i + 1)
    links.sizes[arm, NEXT] = i + 1


@no_refcount
def share_line(counts: Array, fits: Array, guess: Array, columns: Array, hyperprior: Array, work: Array) -> None:
    """Bring what the arms share to where the bound of variational Bayes is highest, given every arm's coefficients.

    beta_0 and lam are taken as independent; lam is its expected size, at most its largest value.  counts (A,), fits
    (A, D, D + 1) and guess (3, D) are those of one family; an arm of no rewards says nothing.
    """
    A, D = fits.shape[0], fits.shape[1]
    last = D - 1
    e = work[0]
    squares, count = 0.0, 0.0
    for i in range(D):
        g = 0 if i < last else 1
        unit = columns[UNIT, i] if i < last else 1.0
        n, total, own = 0.0, 0.0, 0.0
        for arm in range(A):
            if counts[arm] > 0.0:
                n += 1.0
                for h in range(D):
                    e[h] = (columns[AT, h] if i == last else 0.0) if h != i else 1.0
                mean, variance = predictor(fits[arm], e, work[1])
                total += mean
                own += mean * mean + variance
        spread = 1.0 / (1.0 / hyperprior[WIDE + g] + n / guess[LAM, i])
        centre = total / guess[LAM, i] * spread
        guess[MEAN, i] = centre
        guess[VARIANCE, i] = spread
        count += n
        squares += (own - 2.0 * centre * total + n * centre * centre) / unit + n * spread
        if i >= last - 1:
            lam = min(
                (hyperprior[SCALE + g] + 0.5 * squares) / (hyperprior[SHAPE + g] + 0.5 * count), hyperprior[HIGH + g]
            )
            for h in range(last if i == last else 0, i + 1):
                guess[LAM, h] = lam
                guess[VARIANCE, h] += lam
            squares, count = 0.0, 0.0


@kernel
def share(links: Links, hyperpriors: Array) -> None:
    """Bring what the arms share up to date, then every arm's coefficients with it; hyperpriors (F, 8)."""
    work = np.empty((2, links.fits.shape[2]))
    for family in range(FAMILIES):
        if lives(links, family):
            counts, fits = links.sums[:, family, 0], links.fits[:, family]
            share_line(counts, fits, links.guess[family], links.columns, hyperpriors[family], work)
    fit_all(links)


@inlined
def mean_at(links: Links, family: int, eta: float) -> float:
    """Mean reward given the predictor."""
    if family == COUNTS:
        return math.exp(min(eta + links.level[LEVEL], highest_eta(links))) * links.grid[STEP]
    mean = 0.0
    for j in range(links.cuts.shape[0]):
        mean += sigmoid(eta - links.cuts[j])
    return links.grid[LOWEST] + links.grid[STEP] * mean


@kernel
def moments(links: Links, weights: Array, x: Array, out: Array) -> None:
    """Turn mean and standard deviation of every arm's mean reward, (2, n_arms), into those of a mixture of models.

    weights (1 + F,) are those of the model that out comes from and of the families; means are counted from out's.
    """
    D = links.fits.shape[2]
    f, v = np.ones(D), np.empty(D)
    copy_row(x, f)
    for arm in range(out.shape[1]):
        base = out[0, arm]
        first, second = 0.0, weights[0] * out[1, arm] * out[1, arm]
        for family in range(FAMILIES):
            if lives(links, family):
                m, square = predictor(links.fits[arm, family], f, v)
                sd = math.sqrt(square)
                for i in range(NODES.shape[0]):
                    gap = mean_at(links, family, m + sd * NODES[i]) - base
                    first += weights[1 + family] * WEIGHTS[i] * gap
                    second += weights[1 + family] * WEIGHTS[i] * gap * gap
        out[0, arm] = base + first
        out[1, arm] = math.sqrt(max(second - first * first, 0.0))


@kernel
def moments_many(links: Links, weights: Array, contexts: Array, out: Array) -> None:
    """The same in many contexts (n, d), out (n, 2, n_arms)."""
    for i in range(contexts.shape[0]):
        moments(links, weights, contexts[i], out[i])


@kernel
def draw_predictors(links: Links, family: int, x: Array, out: Array, handle: RngHandle) -> None:
    """Fill out (n_draws, n_arms) with draws of every arm's predictor."""
    rng = rng_from(handle)
    D = links.fits.shape[2]
    f, v = np.ones(D), np.empty(D)
    copy_row(x, f)
    for arm in range(out.shape[1]):
        m, square = predictor(links.fits[arm, family], f, v)
        for draw in range(out.shape[0]):
            out[draw, arm] = m + math.sqrt(square) * rng.standard_normal()


@kernel
def means_at(links: Links, family: int, eta: Array, out: Array) -> None:
    """Fill out with the mean rewards of predictors, both (n_draws, n_arms)."""
    for draw in range(eta.shape[0]):
        for arm in range(eta.shape[1]):
            out[draw, arm] = mean_at(links, family, eta[draw, arm])


@inlined
def count_probability(mu: float, r: float, k: float) -> float:
    """Negative binomial probability of a count."""
    if r * mu < 1e-9:
        return math.exp(k * math.log(mu) - mu - math.lgamma(k + 1.0))
    a = 1.0 / r
    ways = math.lgamma(k + a) - math.lgamma(a) - math.lgamma(k + 1.0)
    return math.exp(ways - (a + k) * math.log1p(r * mu) + k * math.log(r * mu))


@inlined
def mark_probability(cuts: Array, eta: float, k: float) -> float:
    """Probability of a mark; of one beyond the cut points none."""
    j = int(k)
    if j < 0 or j > cuts.shape[0]:
        return 0.0
    above = sigmoid(eta - cuts[j - 1]) if j > 0 else 1.0
    beyond = sigmoid(eta - cuts[j]) if j < cuts.shape[0] else 0.0
    return max(above - beyond, 0.0)


@kernel
def probabilities_at(links: Links, family: int, eta: float, out: Array) -> None:
    """Fill out with the probabilities of k = 0, 1, ... given the predictor."""
    mu = math.exp(min(max(eta + links.level[LEVEL], -700.0), highest_eta(links)))
    for k in range(out.shape[0]):
        if family == COUNTS:
            out[k] = count_probability(mu, links.level[DISPERSION], float(k))
        else:
            out[k] = mark_probability(links.cuts, eta, float(k))


@kernel
def probabilities(links: Links, family: int, arm: int, x: Array, out: Array) -> None:
    """Fill out with the predictive probabilities of k = 0, 1, ... in a context."""
    D = links.fits.shape[2]
    f, v, part = np.ones(D), np.empty(D), np.empty(out.shape[0])
    copy_row(x, f)
    m, square = predictor(links.fits[arm, family], f, v)
    out[:] = 0.0
    for i in range(NODES.shape[0]):
        probabilities_at(links, family, m + math.sqrt(square) * NODES[i], part)
        for k in range(out.shape[0]):
            out[k] += WEIGHTS[i] * part[k]


@inlined
def weigh(weights: Array, p: Array, switch: float) -> None:
    """Weigh models by the probabilities that they gave to a reward; those of weight 0 are no models."""
    total, n = 0.0, 0.0
    for m in range(weights.shape[0]):
        if weights[m] > 0.0:
            n += 1.0
            weights[m] *= p[m] if p[m] > LEAST else LEAST
            total += weights[m]
    for m in range(weights.shape[0]):
        if weights[m] > 0.0:
            weights[m] = (1.0 - switch) * weights[m] / total + switch / n


@kernel
def judge(
    links: Links, weights: Array, dispersions: Array, values: Array, arm: int, x: Array, y: float, base: float
) -> None:
    """Weigh the models, (1 + F,), and the dispersions of counts by the probabilities that they give to a reward.

    base is the first model's.  A mark beyond all marks so far has the probability of half a reward in n + 1.
    """
    D = links.fits.shape[2]
    f, v = np.ones(D), np.empty(D)
    copy_row(x, f)
    p, of_values = np.zeros(1 + FAMILIES), np.zeros(values.shape[0])
    p[0] = base
    if lives(links, MARKS):
        n = 0.0
        for a in range(links.sums.shape[0]):
            n += links.sums[a, MARKS, 0]
        k = number_of(links, MARKS, y)
        m, square = predictor(links.fits[arm, MARKS], f, v)
        for i in range(NODES.shape[0]):
            eta = m + math.sqrt(square) * NODES[i]
            p[1 + MARKS] += WEIGHTS[i] * mark_probability(links.cuts, eta, k)
        escape = 0.5 / (n + 1.0)
        p[1 + MARKS] = (1.0 - escape) * p[1 + MARKS] if 0.0 <= k <= links.cuts.shape[0] else escape
    k = number_of(links, COUNTS, y)
    if lives(links, COUNTS) and k >= 0.0:
        m, square = predictor(links.fits[arm, COUNTS], f, v)
        for i in range(NODES.shape[0]):
            eta = m + math.sqrt(square) * NODES[i] + links.level[LEVEL]
            mu = math.exp(min(max(eta, -700.0), highest_eta(links)))
            for j in range(values.shape[0]):
                of_values[j] += WEIGHTS[i] * count_probability(mu, values[j], k)
        for j in range(values.shape[0]):
            p[1 + COUNTS] += dispersions[j] * of_values[j]
        weigh(dispersions, of_values, NEVER)
        links.level[DISPERSION] = 0.0
        for j in range(values.shape[0]):
            links.level[DISPERSION] += dispersions[j] * values[j]
    weigh(weights, p, SWITCH)
