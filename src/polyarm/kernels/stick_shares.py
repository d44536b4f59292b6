"""What sticks say of an arm in a context: probabilities of its kinds, and the mean reward (notation of sticks.py).

f'beta is normal, near its posterior.  Where all contexts so far were this one, as without context, every reward of an
arm has the same probability p of a kind; then, of n rewards that reached a stick k being of its kind,

p ~ Beta(1 + k, 1 + n - k)

exactly: its prior, the same for every arm and whatever value comes first, is uniform.
"""

import math

import numpy as np

from polyarm.kernels._jit import RngHandle, inlined, kernel, rng_from
from polyarm.kernels.copying import copy_row
from polyarm.kernels.generalized import NODES, WEIGHTS
from polyarm.kernels.linalg.triangle import solve_lower
from polyarm.kernels.sticks import NONZERO, SEEN, SQUARES, TOTAL, Sticks, along, sigmoid
from polyarm.types import Array, Rng

SAME = 1e-9  # a column is constant whose variance is below this share of its mean square, and an entry is the constant


@inlined
def log_odds(sticks: Sticks, arm: int, j: int, f: Array, v: Array) -> tuple[float, float]:
    """Mean and standard deviation of f'beta."""
    D = f.shape[0]
    for i in range(D):
        v[i] = f[i]
    solve_lower(sticks.fits[arm, j], v, D)
    square = 0.0
    for i in range(D):
        square += v[i] * v[i]
    return along(f, sticks.fits[arm, j], D), math.sqrt(square)


@inlined
def stick_moments(mean: float, sd: float) -> tuple[float, float]:
    """E[p] and E[p^2] of p = sigmoid(N(mean, sd^2)), by quadrature."""
    first, second = 0.0, 0.0
    for i in range(NODES.shape[0]):
        p = sigmoid(mean + sd * NODES[i])
        first += WEIGHTS[i] * p
        second += WEIGHTS[i] * p * p
    return first, second


@inlined
def is_constant(columns: Array, x: Array) -> bool:
    """Whether all contexts so far were this one, as far as columns are measured."""
    if columns[SEEN, 0] == 0.0:
        return False
    for i in range(x.shape[0]):
        n, used = columns[SEEN, 0], columns[NONZERO, i]
        mean, square = columns[TOTAL, i] / n, columns[SQUARES, i] / n
        if (
            not (used == 0.0 or used == n)
            or square - mean * mean > SAME * square
            or abs(x[i] - mean) > SAME * abs(mean)
        ):
            return False
    return True


@inlined
def counts(sticks: Sticks, arm: int, j: int) -> tuple[float, float]:
    """1 + k and 1 + n - k of a stick."""
    s, D = sticks.sums[arm, j], sticks.fits.shape[2]
    half = 0.5 * s[0]
    return 1.0 + max(half + s[D], 0.0), 1.0 + max(half - s[D], 0.0)


@inlined
def share_moments(sticks: Sticks, arm: int, j: int, f: Array, v: Array, alone: bool) -> tuple[float, float]:
    """E[p] and E[p^2] of a stick's probability; alone: contexts are constant."""
    if alone:
        a, b = counts(sticks, arm, j)
        first = a / (a + b)
        return first, first * (a + 1.0) / (a + b + 1.0)
    centre, sd = log_odds(sticks, arm, j, f, v)
    return stick_moments(centre, sd)


@inlined
def draw_share(mean: float, sd: float, a: float, b: float, alone: bool, rng: Rng) -> float:
    """A draw of a stick's probability, from a Beta distribution where contexts are constant."""
    if alone:
        success, failure = rng.standard_gamma(a), rng.standard_gamma(b)
        return success / (success + failure)
    return sigmoid(mean + sd * rng.standard_normal())


@kernel
def moments(sticks: Sticks, x: Array, values: Array, out: Array) -> None:
    """Turn mean and standard deviation of the rest's mean reward in every arm, (2, n_arms), into those of all kinds'.

    A stick at a time, from the last: with p its share, X <- p v + (1 - p) X.
    """
    m, D = sticks.fits.shape[1], sticks.fits.shape[2]
    f, v = np.ones(D), np.empty(D)
    copy_row(x, f)
    alone = is_constant(sticks.columns, x)
    for arm in range(out.shape[1]):
        mean = out[0, arm] - values[0]
        square = mean * mean + out[1, arm] * out[1, arm]
        for j in range(m - 1, -1, -1):
            first, second = share_moments(sticks, arm, j, f, v, alone)
            value = values[j] - values[0]
            square = (
                second * value * value + 2.0 * (first - second) * value * mean + (1.0 - 2.0 * first + second) * square
            )
            mean = first * value + (1.0 - first) * mean
        out[0, arm] = values[0] + mean
        out[1, arm] = math.sqrt(max(square - mean * mean, 0.0))


@kernel
def moments_many(sticks: Sticks, contexts: Array, values: Array, out: Array) -> None:
    """The same in many contexts (n, d), out (n, 2, n_arms)."""
    for i in range(contexts.shape[0]):
        moments(sticks, contexts[i], values, out[i])


@kernel
def moments_of_two(sticks: Sticks, x: Array, bulk: Array, out: Array) -> None:
    """Turn mean and standard deviation of the rest's mean reward, (2, n_arms), into those of all rewards', where the
    only kind is the bulk, with moments of its own: with p its share, X <- p B + (1 - p) X, all independent.
    """
    D = sticks.fits.shape[2]
    f, v = np.ones(D), np.empty(D)
    copy_row(x, f)
    alone = is_constant(sticks.columns, x)
    for arm in range(out.shape[1]):
        first, second = share_moments(sticks, arm, 0, f, v, alone)
        gap = out[0, arm] - bulk[0, arm]
        square = max(second - first * first, 0.0) * gap * gap
        square += second * bulk[1, arm] * bulk[1, arm]
        square += (1.0 - 2.0 * first + second) * out[1, arm] * out[1, arm]
        out[0, arm] = bulk[0, arm] + (1.0 - first) * gap
        out[1, arm] = math.sqrt(square)


@kernel
def moments_of_two_many(sticks: Sticks, contexts: Array, bulk: Array, out: Array) -> None:
    """The same in many contexts (n, d), bulk and out (n, 2, n_arms)."""
    for i in range(contexts.shape[0]):
        moments_of_two(sticks, contexts[i], bulk[i], out[i])


@kernel
def draw_shares(sticks: Sticks, x: Array, arm: int, out: Array, handle: RngHandle) -> None:
    """Fill out (n_draws, m + 1) with draws of the probabilities of an arm's kinds in this context."""
    rng = rng_from(handle)
    m, D = sticks.fits.shape[1], sticks.fits.shape[2]
    f, v = np.ones(D), np.empty(D)
    copy_row(x, f)
    for draw in range(out.shape[0]):
        out[draw, m] = 1.0
    alone = is_constant(sticks.columns, x)
    for j in range(m):
        centre, sd = log_odds(sticks, arm, j, f, v)
        a, b = counts(sticks, arm, j)
        for draw in range(out.shape[0]):
            p = draw_share(centre, sd, a, b, alone, rng)
            out[draw, j] = p * out[draw, m]
            out[draw, m] *= 1.0 - p


@kernel
def expected_shares(sticks: Sticks, x: Array, arm: int, out: Array) -> None:
    """Fill out (m + 1,) with the expected probabilities of an arm's kinds in this context."""
    m, D = sticks.fits.shape[1], sticks.fits.shape[2]
    f, v = np.ones(D), np.empty(D)
    copy_row(x, f)
    alone, left = is_constant(sticks.columns, x), 1.0
    for j in range(m):
        first, _ = share_moments(sticks, arm, j, f, v, alone)
        out[j] = left * first
        left *= 1.0 - first
    out[m] = left
