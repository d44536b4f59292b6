"""The units of reward and context, from a reservoir of past rewards and from sums over the columns (records.py).

Rewards are counted from their origin and column j from its base, which is 0 or, for a column far from 0, its mean.
"""

import math

import numpy as np

from polyarm.errors import COLUMN_NOTHING, CONTEXT_LIMIT
from polyarm.kernels._jit import inlined, kernel, no_refcount
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.order import in_order
from polyarm.kernels.robust.component import COUNT, VAR, squared_errors, w_row
from polyarm.kernels.robust.records import Arms, Books, Features, Hyperprior, Shared, arms_of, n_features
from polyarm.kernels.robust.shared import group_of
from polyarm.types import Array, Rng

RESERVOIR = 64
BEGIN_AGAIN = 2.0  # value of `scaled` where rewards have quite another scale than before
CONSTANT = 1e-20  # a column whose variance is below this share of its squared mean says nothing
FAR, NEAR = 4.0, 3.0  # a column is counted from its mean when that is so many sd from 0, from 0 again when less
STALE = 0.1  # a column's mean that has gone so many sd since is taken afresh
FAR_REWARD = 1000.0  # rewards are counted from their median when that is so many S from their origin
OTHER_SCALE = 1e4  # change of S2 after which what was drawn in the old unit is worthless
MANY_TIES = 0.1  # share of the commonest reward from which ties are no accident
TAME = 10.0  # gaps of more typical ones say nothing more about the scale
FORGOTTEN_COLUMN = 1e-200  # non-zero entries left after forgetting below which they tell no mean square any more
TOO_LONG = (CONTEXT_LIMIT * (1.0 + 1e-9)) ** 2  # of a context's squared length: a kernel refuses none that may be
REFUSED = -1  # what kernels answer to a context that is too long or holds what is no number
OUTLYING, TAMED = 6.0, 3.0  # an entry so many sd from its column's mean is only so many away for locations
JUMP = 1e8  # square of an entry, in its column's unit, from which the unit is measured again at once


@inlined
def is_usable(x: Array) -> bool:
    """Whether a context is finite and of sane size."""
    square = 0.0
    for j in range(x.shape[0]):
        square += x[j] * x[j]
    return bool(square <= TOO_LONG)


@inlined
def with_intercept(x: Array, features: Features, out: Array) -> None:
    """Write the context, its columns counted from their base, with a one after it where there is an intercept."""
    out[features.unit.shape[0] - 1] = 1.0
    for j in range(x.shape[0]):
        out[j] = x[j] - features.base[j]


@kernel
def robust_scale(rewards: Array) -> tuple[float, float]:
    """Median and squared scale: the larger of 1.4826 MAD and a quarter of the mean tame gap, squared."""
    n = rewards.shape[0]
    low, high = (n - 1) // 2, n // 2
    ordered = in_order(rewards)
    median = 0.5 * (ordered[low] + ordered[high])
    gaps = gaps_to(ordered, median)
    mad = 0.5 * (gaps[low] + gaps[high])
    widest = TAME * typical_gap(gaps)
    total = 0.0
    for i in range(n):
        total += min(gaps[i], widest)
    scale = max(1.4826 * mad, 0.25 * total / n)
    return median, scale * scale


@kernel
def gaps_to(values: Array, median: float) -> Array:
    """Distances from the median in ascending order."""
    gaps = np.empty(values.shape[0])
    for i in range(values.shape[0]):
        gaps[i] = abs(values[i] - median)
    return in_order(gaps)


@kernel
def typical_gap(gaps: Array) -> float:
    """The median of ordered gaps that are not 0, or 0."""
    n = gaps.shape[0]
    zeros = 0
    while zeros < n and gaps[zeros] <= 0.0:
        zeros += 1
    return float(gaps[zeros + (n - zeros - 1) // 2]) if zeros < n else 0.0


@kernel
def tied_sd(rewards: Array) -> float:
    """Standard deviation of the rewards, wild ones tamed, where one value holds many of them, else 0."""
    n = rewards.shape[0]
    ordered = in_order(rewards)
    run, most = 1, 1
    for i in range(1, n):
        run = run + 1 if ordered[i] == ordered[i - 1] else 1
        most = max(most, run)
    if most < 2 or most < MANY_TIES * n:
        return 0.0
    median = 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])
    widest = TAME * typical_gap(gaps_to(ordered, median))
    total, square = 0.0, 0.0
    for i in range(n):
        ordered[i] = min(max(ordered[i], median - widest), median + widest)
        total += ordered[i]
    for i in range(n):
        square += (ordered[i] - total / n) * (ordered[i] - total / n)
    return float((square / n) ** 0.5)


@inlined
def rescale_feature(arms: Arms, j: int, factor: float) -> None:
    """Multiply every slope of column j: a first context near zero must not leave slopes that look huge ever after."""
    D = n_features(arms)
    arms.features.centre[j] *= factor
    for arm in range(arms.components.shape[0]):
        arms.centres[arm, j, D + 1] *= factor
        for k in range(arms.sizes[arm, K_USED]):
            arms.components[arm, w_row(D) + j, k] *= factor


@inlined
def is_measured(n: int, window: int) -> bool:
    """Whether units are estimated after n rewards."""
    return bool(n <= RESERVOIR or n & (n - 1) == 0 or (window > 0 and n % window == 0))


@inlined
def has_jumped(features: Features, x: Array) -> bool:
    """Whether an entry is so far from all that was seen in its column that nothing could be solved in that unit."""
    for j in range(x.shape[0]):
        away = x[j] - features.base[j]
        if away * away * features.unit[j] > JUMP:
            return True
    return False


@kernel
def update_units(arms: Arms, reservoir: Array, x: Array, y: float, rng: Rng) -> bool:
    """Take a context and a reward into the units, which are estimated at every step up to 64, then at powers of two;
    tell whether posteriors must be brought up to date before the reward is added.

    With a window, which forgets, they are also estimated whenever it has passed, and those of columns whenever an
    entry jumps.
    """
    shared, prior = arms.shared, arms.prior
    t = int(shared.n_steps)
    shared.n_steps += 1.0
    if prior.fixed_units > 0.0:
        return t < RESERVOIR
    if t == 0 and prior.intercept > 0.0:
        shared.origin = y
    window = int(prior.window)
    past = min(t + 1, max(window, RESERVOIR)) if window > 0 else t + 1
    row = t if t < RESERVOIR else int(rng.random() * past)
    if row < RESERVOIR:
        reservoir[row] = y - shared.origin
    note_columns(shared, arms.features, x)
    measured, jumped = is_measured(t + 1, window), has_jumped(arms.features, x)
    if measured or jumped:
        measure_columns(arms, x.shape[0], 0.0 if t < RESERVOIR else 0.5)
    if measured:
        measure_rewards(arms, reservoir[: min(t + 1, RESERVOIR)])
    if measured or jumped:
        shared.off_centre = 1.0 if is_off_centre(shared, arms.features, prior) else 0.0
    return bool(jumped or t < RESERVOIR)


@inlined
def note_columns(shared: Shared, features: Features, x: Array) -> None:
    """Take a context into the columns' sums (Welford's recursion, which an offset does not spoil).

    Once variances are known, an outlying entry makes its column vaguer for the components' locations: it is no region
    of its own.
    """
    shared.n_seen += 1.0
    least = OUTLYING * OUTLYING if shared.n_steps > RESERVOIR else math.inf
    for j in range(x.shape[0]):
        gap = x[j] - features.raw_mean[j]
        features.raw_mean[j] += gap / shared.n_seen
        away = x[j] - features.raw_mean[j]
        features.spread[j] += gap * away
        if x[j] != 0.0:
            features.square_sum[j] += x[j] * x[j]
            features.n_nonzero[j] += 1.0
        if away * away * features.precision[j] > least:
            features.precision[j] = TAMED * TAMED / (away * away)


@no_refcount
def measure_columns(arms: Arms, n_columns: int, held: float) -> None:
    """Write the columns' units, and their means and precisions for the components' locations.

    held: share that is left of what an outlying entry made of a variance.  At least half of the last variance is found
    when contexts are twice as many, so that 1/2 leaves columns without such entries as they are.
    """
    shared, features = arms.shared, arms.features
    for j in range(n_columns):
        mean, variance = features.raw_mean[j], features.spread[j] / shared.n_seen
        away = mean - features.base[j]
        square = variance + away * away
        if features.base[j] == 0.0:
            known = features.n_nonzero[j] > FORGOTTEN_COLUMN
            square = features.square_sum[j] / features.n_nonzero[j] if known else 0.0
        if square > COLUMN_NOTHING:
            rescale_feature(arms, j, 1.0 / math.sqrt(square * features.unit[j]))
            features.unit[j] = 1.0 / square
        features.mean[j] = away
        if variance > max(CONSTANT * mean * mean, COLUMN_NOTHING):
            before = held / features.precision[j] if features.precision[j] > 0.0 else 0.0
            features.precision[j] = 1.0 / max(variance, before)
        else:
            features.precision[j] = 0.0


@kernel
def measure_rewards(arms: Arms, rewards: Array) -> None:
    """Write the rewards' median, scale and ties; a scale that is quite another one begins with new hyperparameters."""
    shared = arms.shared
    median, square = robust_scale(rewards)
    shared.median = median
    shared.tied_sd = tied_sd(rewards)
    if square > 0.0:
        change = square / shared.reward_square
        shared.reward_square = square
        if shared.scaled == 0.0:
            adopt_reward_unit(arms)
        elif change > OTHER_SCALE or change < 1.0 / OTHER_SCALE:
            shared.scaled = BEGIN_AGAIN


@inlined
def base_for(shared: Shared, features: Features, j: int) -> float:
    """Where column j should be counted from: its mean if that is far from 0 and known well enough to say so, or 0."""
    mean, sd = features.raw_mean[j], math.sqrt(features.spread[j] / shared.n_seen)
    if shared.n_seen < 2.0 or features.precision[j] == 0.0:
        return float(features.base[j])
    if features.base[j] == 0.0:
        return mean if abs(mean) > (FAR + 64.0 / (shared.n_seen - 1.0) ** 2) * sd else 0.0
    if abs(mean) < NEAR * sd:
        return 0.0
    return mean if abs(mean - features.base[j]) > STALE * sd else float(features.base[j])


@inlined
def is_off_centre(shared: Shared, features: Features, prior: Hyperprior) -> bool:
    """Whether rewards or a column should be counted from elsewhere, or everything begin again in another unit."""
    if prior.intercept > 0.0:
        for j in range(features.unit.shape[0] - 1):
            if base_for(shared, features, j) != features.base[j]:
                return True
        if abs(shared.median) > FAR_REWARD * math.sqrt(shared.reward_square):
            return True
    return bool(shared.scaled == BEGIN_AGAIN)


@kernel
def recentre(books: Books, shift: Array) -> None:
    """Count columns and rewards from elsewhere: write the shift (D,), the last entry being the rewards', and move
    every intercept by what the slopes make of it.
    """
    arms = arms_of(books)
    shared, features = arms.shared, arms.features
    D = n_features(arms)
    for j in range(D - 1):
        shift[j] = base_for(shared, features, j) - features.base[j]
        features.base[j] += shift[j]
        features.mean[j] -= shift[j]
    shift[D - 1] = shared.median if abs(shared.median) > FAR_REWARD * math.sqrt(shared.reward_square) else 0.0
    shared.origin += shift[D - 1]
    shared.median -= shift[D - 1]
    for i in range(books.reservoir.shape[0]):
        books.reservoir[i] -= shift[D - 1]
    features.centre[D - 1] += moved(features.centre, shift)
    for arm in range(arms.components.shape[0]):
        arms.centres[arm, D - 1, D + 1] += moved(arms.centres[arm, :, D + 1], shift)
        for k in range(arms.sizes[arm, K_USED]):
            w = arms.components[arm, w_row(D) : w_row(D) + D, k]
            w[D - 1] += moved(w, shift)
    measure_columns(arms, D - 1, 1.0)


@inlined
def moved(w: Array, shift: Array) -> float:
    """Change of an intercept when columns and rewards are counted from elsewhere."""
    last = shift.shape[0] - 1
    change = -shift[last]
    for j in range(last):
        change += w[j] * shift[j]
    return float(change)


@kernel
def begin_again(books: Books, rho: Array) -> None:
    """Put all that is drawn back to the middle of its prior in the unit of now; only the seating and kappa stay.

    A component's noise variance is what it would be around the median: slopes come later.
    """
    arms = arms_of(books)
    shared, prior, centre = arms.shared, arms.prior, arms.features.centre
    D = n_features(arms)
    shared.scaled = 1.0
    for g in range(2):
        shared.arm_var[g] = shared.reward_square * prior.arm_scale[g] / prior.arm_shape[g]
        shared.part_ratio[g] = rho[g]
    shared.noise_scale = shared.reward_square * prior.noise_rate_shape / prior.noise_rate
    for j in range(D):
        centre[j] = shared.median if group_of(j, D, prior) == 1 else 0.0
    for arm in range(arms.components.shape[0]):
        T = arms.components[arm]
        for j in range(D):
            arms.centres[arm, j, D + 1] = centre[j]
            for k in range(arms.sizes[arm, K_USED]):
                T[w_row(D) + j, k] = centre[j]
        for k in range(arms.sizes[arm, K_USED]):
            scale = shared.noise_scale + 0.5 * squared_errors(T, k, D)
            T[VAR, k] = scale / (prior.noise_shape + 0.5 * T[COUNT, k])


@no_refcount
def adopt_reward_unit(arms: Arms) -> None:
    """Measure everything in the rewards' unit, once, when they first differ and so have one."""
    shared, D = arms.shared, n_features(arms)
    square = shared.reward_square
    root = math.sqrt(square)
    shared.scaled = 1.0
    shared.arm_var[0] *= square
    shared.arm_var[1] *= square
    shared.noise_scale *= square
    for j in range(D):
        arms.features.centre[j] *= root
    for arm in range(arms.components.shape[0]):
        for j in range(D):
            arms.centres[arm, j, D + 1] *= root
        for k in range(arms.sizes[arm, K_USED]):
            arms.components[arm, VAR, k] *= square
            for j in range(D):
                arms.components[arm, w_row(D) + j, k] *= root
