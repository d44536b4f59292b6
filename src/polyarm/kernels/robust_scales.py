"""What the arms of the robust model share: the units of reward and context, and the hyperparameters drawn in them.

u_j = 1 / mean square of the non-zero entries of column j (the intercept has 1): slopes are measured in its inverse root
S2  squared robust scale of the rewards;  m  their median;  both from a reservoir of past rewards of all arms
slope group 0, intercept group 1 (the last feature)
Rewards are counted from ORIGIN and column j from BASE, which is 0 or, for a column far from 0, its mean

                      prior                          entry of
lam2_g                IG(shape_g, scale_g S2)        hyper[LAM + g]     spread of the arms' centres:   L_j = lam2 u_j
rho_g                 IG(shape_g, scale_g) or fixed  hyper[RHO + g]     spread of an arm's components: R_j = rho L_j
c_j                   N(0 or m, wide S2 u_j)         columns[CENTRE]    centre of all
b                     Gamma(shape, rate / S2)        hyper[NOISE]       s2_k ~ (1 - wild) IG(a, b) + wild IG(a', b)
gamma                 Gamma(shape, rate) or fixed    hyper[GAMMA]       concentration of every arm's seating
tau                   IG(shape, scale) or fixed      hyper[TAU]         spread of places (robust_places.py)
TIED_SD               standard deviation of the reservoir where many of its rewards are equal, else 0
OFF                   1 where rewards or columns must be counted from somewhere else (inference.robust)

hyper (15,)  columns (11, D)  law (25,): the settings, see `law_of` of inference.robust
centres (A, D, D + 2): factor of the information about w0, its mean, and w0 as last drawn (robust_means.py)
"""

import math

import numpy as np

from polyarm.kernels._jit import kernel, step
from polyarm.kernels.means import n_held
from polyarm.kernels.order import in_order
from polyarm.kernels.robust_component import COUNT, VAR, squared_errors, sxx_row, sxy_row, w_row
from polyarm.kernels.robust_places import AT, PRECISION, draw_tau
from polyarm.types import Array, IntArray, Rng

LAM, RHO, NOISE, GAMMA, SQUARE, MEDIAN, ORIGIN, STEPS, SCALED, TAU, TIED_SD = 0, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12
SEEN, OFF = 13, 14  # contexts in the columns' sums, less what was forgotten
CENTRE, ARM_VAR, PART_VAR, UNIT, SUM, NONZERO = 0, 1, 2, 3, 4, 5
RUNNING, BASE, SPREAD = 8, 9, 10  # mean of the column so far, where it is counted from, sum of squares around the mean
LAM_SHAPE, LAM_SCALE, RHO_SHAPE, RHO_SCALE = 0, 2, 4, 6
NOISE_SHAPE, NOISE_RATE_SHAPE, NOISE_RATE, WIDE, GAMMA_SHAPE, GAMMA_RATE = 8, 9, 10, 11, 12, 13
SHARED, LEARNED, INTERCEPT, FIXED_UNITS, TAU_SHAPE, TAU_SCALE, WINDOW = 14, 15, 16, 17, 18, 19, 20
WILD_SHARE, WILD_SHAPE, BULK, WILD_BULK = (
    21,
    22,
    23,
    24,
)  # the last two: Gamma(a) / Gamma(a + 1/2), Gamma(a) / Gamma(a')
RESERVOIR = 64
BEGIN_AGAIN = 2.0  # value of SCALED where rewards have quite another scale than before
CONSTANT = 1e-20  # a column whose variance is below this share of its squared mean says nothing
FAR, NEAR = 4.0, 3.0  # a column is counted from its mean when that is so many sd from 0, from 0 again when less
STALE = 0.1  # a column's mean that has gone so many sd since is taken afresh
FAR_REWARD = 1000.0  # rewards are counted from their median when that is so many S from their origin
OTHER_SCALE = 1e4  # change of S2 after which what was drawn in the old unit is worthless
MANY_TIES = 0.1  # share of the commonest reward from which ties are no accident
TAME = 10.0  # gaps of more typical ones say nothing more about the scale
NO_SHARE = 1e-8  # variance of an arm's centre, as a share of its components', where arms have no centre of their own
RHO_LOW, RHO_HIGH = 1e-6, 1e4  # keeps Q - QVQ to ten digits of the prior's information; no data reach these
LAM_LOW, LAM_HIGH = 1e-12, 1e12  # of lam2 in units of S2, against overflow
NOISE_LOW = 1e-6  # of s2 in units of S2 + lam2: with 10^6 rewards four digits remain to solve with
WIDEST = 100.0  # of lam2 in units of S2, in that floor: or a wrong lam2 would keep the noise up, and itself


@step
def group_of(j: int, D: int, law: Array) -> int:
    """Scale group of feature j."""
    return 1 if law[INTERCEPT] > 0.0 and j == D - 1 else 0


@step
def set_variances(hyper: Array, columns: Array, law: Array) -> None:
    """Write L and R from lam2, rho and the columns' units."""
    D = columns.shape[1]
    for j in range(D):
        g = group_of(j, D, law)
        wide = hyper[LAM + g] * columns[UNIT, j]
        if law[SHARED] > 0.0:
            columns[ARM_VAR, j] = wide
            columns[PART_VAR, j] = hyper[RHO + g] * wide
        else:
            columns[ARM_VAR, j] = NO_SHARE * wide
            columns[PART_VAR, j] = wide


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


@step
def rescale_feature(tables: Array, sizes: IntArray, centres: Array, columns: Array, j: int, factor: float) -> None:
    """Multiply every slope of column j: a first context near zero must not leave slopes that look huge ever after."""
    D = columns.shape[1]
    columns[CENTRE, j] *= factor
    for arm in range(tables.shape[0]):
        centres[arm, j, D + 1] *= factor
        for k in range(sizes[arm, 0]):
            tables[arm, w_row(D) + j, k] *= factor


@kernel
def update_units(
    tables: Array,
    sizes: IntArray,
    centres: Array,
    hyper: Array,
    columns: Array,
    reservoir: Array,
    law: Array,
    x: Array,
    y: float,
    rng: Rng,
) -> None:
    """Take a context and a reward into the units, which are estimated at every step up to 64, then at powers of two.

    With a window, which forgets, they are also estimated whenever it has passed.
    """
    t = int(hyper[STEPS])
    hyper[STEPS] += 1.0
    if law[FIXED_UNITS] > 0.0:
        return
    if t == 0 and law[INTERCEPT] > 0.0:
        hyper[ORIGIN] = y
    window = int(law[WINDOW])
    past = min(t + 1, max(window, RESERVOIR)) if window > 0 else t + 1
    place = t if t < RESERVOIR else int(rng.random() * past)
    if place < RESERVOIR:
        reservoir[place] = y - hyper[ORIGIN]
    note_columns(hyper, columns, x)
    n = t + 1
    if n <= RESERVOIR or n & (n - 1) == 0 or (window > 0 and n % window == 0):
        measure_columns(tables, sizes, centres, hyper, columns, x.shape[0])
        measure_rewards(tables, sizes, centres, hyper, columns, law, reservoir[: min(n, RESERVOIR)])
        hyper[OFF] = 1.0 if off_centre(hyper, columns, law) else 0.0


@step
def note_columns(hyper: Array, columns: Array, x: Array) -> None:
    """Take a context into the columns' sums (Welford's recursion, which an offset does not spoil)."""
    hyper[SEEN] += 1.0
    for j in range(x.shape[0]):
        gap = x[j] - columns[RUNNING, j]
        columns[RUNNING, j] += gap / hyper[SEEN]
        columns[SPREAD, j] += gap * (x[j] - columns[RUNNING, j])
        if x[j] != 0.0:
            columns[SUM, j] += x[j] * x[j]
            columns[NONZERO, j] += 1.0


@kernel
def measure_columns(
    tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array, n_columns: int
) -> None:
    """Write the columns' units, and their means and precisions for the places."""
    for j in range(n_columns):
        mean, variance = columns[RUNNING, j], columns[SPREAD, j] / hyper[SEEN]
        away = mean - columns[BASE, j]
        square = variance + away * away
        if columns[BASE, j] == 0.0:
            square = columns[SUM, j] / max(columns[NONZERO, j], 1e-300)
        if square > 0.0:
            rescale_feature(tables, sizes, centres, columns, j, 1.0 / math.sqrt(square * columns[UNIT, j]))
            columns[UNIT, j] = 1.0 / square
        columns[AT, j] = away
        columns[PRECISION, j] = 1.0 / variance if variance > CONSTANT * mean * mean else 0.0


@kernel
def measure_rewards(
    tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array, law: Array, rewards: Array
) -> None:
    """Write the rewards' median, scale and ties; a scale that is quite another one begins with new hyperparameters."""
    median, square = robust_scale(rewards)
    hyper[MEDIAN] = median
    hyper[TIED_SD] = tied_sd(rewards)
    if square > 0.0:
        change = square / hyper[SQUARE]
        hyper[SQUARE] = square
        if hyper[SCALED] == 0.0:
            adopt_reward_unit(tables, sizes, centres, hyper, columns)
        elif change > OTHER_SCALE or change < 1.0 / OTHER_SCALE:
            hyper[SCALED] = BEGIN_AGAIN


@kernel
def base_for(hyper: Array, columns: Array, j: int) -> float:
    """Where column j should be counted from: its mean if that is far from 0 and known well enough to say so, or 0."""
    mean, sd = columns[RUNNING, j], math.sqrt(columns[SPREAD, j] / hyper[SEEN])
    if hyper[SEEN] < 2.0 or columns[PRECISION, j] == 0.0:
        return float(columns[BASE, j])
    if columns[BASE, j] == 0.0:
        return mean if abs(mean) > (FAR + 64.0 / (hyper[SEEN] - 1.0) ** 2) * sd else 0.0
    if abs(mean) < NEAR * sd:
        return 0.0
    return mean if abs(mean - columns[BASE, j]) > STALE * sd else float(columns[BASE, j])


@kernel
def off_centre(hyper: Array, columns: Array, law: Array) -> bool:
    """Whether rewards or a column should be counted from elsewhere, or everything begin again in another unit."""
    if law[INTERCEPT] > 0.0:
        for j in range(columns.shape[1] - 1):
            if base_for(hyper, columns, j) != columns[BASE, j]:
                return True
        if abs(hyper[MEDIAN]) > FAR_REWARD * math.sqrt(hyper[SQUARE]):
            return True
    return bool(hyper[SCALED] == BEGIN_AGAIN)


@kernel
def recentre(
    tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array, reservoir: Array, shift: Array
) -> None:
    """Count columns and rewards from elsewhere: write the shift (D,), the last entry being the rewards', and move
    every intercept by what the slopes make of it.
    """
    D = columns.shape[1]
    for j in range(D - 1):
        shift[j] = base_for(hyper, columns, j) - columns[BASE, j]
        columns[BASE, j] += shift[j]
        columns[AT, j] -= shift[j]
    shift[D - 1] = hyper[MEDIAN] if abs(hyper[MEDIAN]) > FAR_REWARD * math.sqrt(hyper[SQUARE]) else 0.0
    hyper[ORIGIN] += shift[D - 1]
    hyper[MEDIAN] -= shift[D - 1]
    reservoir -= shift[D - 1]
    columns[CENTRE, D - 1] += moved(columns[CENTRE], shift)
    for arm in range(tables.shape[0]):
        centres[arm, D - 1, D + 1] += moved(centres[arm, :, D + 1], shift)
        for k in range(sizes[arm, 0]):
            w = tables[arm, w_row(D) : w_row(D) + D, k]
            w[D - 1] += moved(w, shift)
    measure_columns(tables, sizes, centres, hyper, columns, D - 1)


@step
def moved(w: Array, shift: Array) -> float:
    """Change of an intercept when columns and rewards are counted from elsewhere."""
    last = shift.shape[0] - 1
    change = -shift[last]
    for j in range(last):
        change += w[j] * shift[j]
    return float(change)


@kernel
def begin_again(
    tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array, law: Array, rho: Array
) -> None:
    """Put all that is drawn back to the middle of its prior in the unit of now; only the seating stays.

    A component's noise variance is what it would be around the median: slopes come later.
    """
    D = columns.shape[1]
    hyper[SCALED] = 1.0
    for g in range(2):
        hyper[LAM + g] = hyper[SQUARE] * law[LAM_SCALE + g] / law[LAM_SHAPE + g]
        hyper[RHO + g] = rho[g]
    hyper[NOISE] = hyper[SQUARE] * law[NOISE_RATE_SHAPE] / law[NOISE_RATE]
    centre = columns[CENTRE]
    for j in range(D):
        centre[j] = hyper[MEDIAN] if group_of(j, D, law) == 1 else 0.0
    for arm in range(tables.shape[0]):
        T = tables[arm]
        for j in range(D):
            centres[arm, j, D + 1] = centre[j]
            for k in range(sizes[arm, 0]):
                T[w_row(D) + j, k] = centre[j]
        for k in range(sizes[arm, 0]):
            scale = hyper[NOISE] + 0.5 * squared_errors(T, k, D)
            T[VAR, k] = scale / (law[NOISE_SHAPE] + 0.5 * T[COUNT, k])


@kernel
def adopt_reward_unit(tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array) -> None:
    """Measure everything in the rewards' unit, once, when they first differ and so have one."""
    square = hyper[SQUARE]
    root = math.sqrt(square)
    hyper[SCALED] = 1.0
    D = columns.shape[1]
    hyper[LAM] *= square
    hyper[LAM + 1] *= square
    hyper[NOISE] *= square
    for j in range(D):
        columns[CENTRE, j] *= root
    for arm in range(tables.shape[0]):
        for j in range(D):
            centres[arm, j, D + 1] *= root
        for k in range(sizes[arm, 0]):
            tables[arm, VAR, k] *= square
            for j in range(D):
                tables[arm, w_row(D) + j, k] *= root


@step
def least_noise(hyper: Array) -> float:
    """Smallest noise variance that leaves the equations solvable."""
    return float(NOISE_LOW * (hyper[SQUARE] + min(hyper[LAM] + hyper[LAM + 1], WIDEST * hyper[SQUARE])))


@step
def draw_inverse_gamma(shape: float, scale: float, rng: Rng) -> float:
    """One draw of IG(shape, scale)."""
    return scale / rng.standard_gamma(shape)


@step
def tail(ratio: float, law: Array) -> float:
    """Prior density of a noise variance over that of IG(a, b), given its ratio to b."""
    share = law[WILD_SHARE]
    if share == 0.0:
        return 1.0
    more = law[WILD_BULK] * math.exp((law[NOISE_SHAPE] - law[WILD_SHAPE]) * math.log(ratio))
    return float(1.0 - share + share * more)


@step
def draw_shape(ratio: float, law: Array, rng: Rng) -> float:
    """The shape, a or a', that a noise variance of this ratio to b was drawn with."""
    if law[WILD_SHARE] > 0.0 and rng.random() * tail(ratio, law) >= 1.0 - law[WILD_SHARE]:
        return float(law[WILD_SHAPE])
    return float(law[NOISE_SHAPE])


@kernel
def draw_spreads(
    tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array, law: Array, rng: Rng
) -> None:
    """Draw lam2 and rho of both groups given every centre and every component's slopes."""
    D = columns.shape[1]
    shared = law[SHARED] > 0.0
    among, within, n_among, n_within = np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2)
    for arm in range(tables.shape[0]):
        if sizes[arm, 0] == 0:
            continue
        for j in range(D):
            g = group_of(j, D, law)
            w0 = centres[arm, j, D + 1] if shared else columns[CENTRE, j]
            if shared:
                among[g] += (w0 - columns[CENTRE, j]) ** 2 / columns[UNIT, j]
                n_among[g] += 1.0
            for k in range(sizes[arm, 0]):
                within[g] += (tables[arm, w_row(D) + j, k] - w0) ** 2 / columns[UNIT, j]
                n_within[g] += 1.0
    for g in range(2):
        rho = hyper[RHO + g] if shared else 1.0
        shape = law[LAM_SHAPE + g] + 0.5 * (n_among[g] + n_within[g])
        scale = law[LAM_SCALE + g] * hyper[SQUARE] + 0.5 * (among[g] + within[g] / rho)
        drawn = draw_inverse_gamma(shape, scale, rng)
        hyper[LAM + g] = min(max(drawn, LAM_LOW * hyper[SQUARE]), LAM_HIGH * hyper[SQUARE])
        if shared and law[RHO_SHAPE + g] > 0.0:
            shape = law[RHO_SHAPE + g] + 0.5 * n_within[g]
            scale = law[RHO_SCALE + g] + 0.5 * within[g] / hyper[LAM + g]
            hyper[RHO + g] = min(max(draw_inverse_gamma(shape, scale, rng), RHO_LOW), RHO_HIGH)


@kernel
def draw_common_centre(
    tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array, law: Array, rng: Rng
) -> None:
    """Draw c given the arms' centres, or given every component's slopes where arms have no centre."""
    D = columns.shape[1]
    shared = law[SHARED] > 0.0
    for j in range(D):
        spread = columns[ARM_VAR, j] if shared else columns[PART_VAR, j]
        total, count = 0.0, 0.0
        for arm in range(tables.shape[0]):
            if sizes[arm, 0] == 0:
                continue
            if shared:
                total += centres[arm, j, D + 1]
                count += 1.0
            else:
                for k in range(sizes[arm, 0]):
                    total += tables[arm, w_row(D) + j, k]
                    count += 1.0
        prior = hyper[MEDIAN] if group_of(j, D, law) == 1 else 0.0
        width = law[WIDE] * hyper[SQUARE] * columns[UNIT, j]
        precision = 1.0 / width + count / spread
        mean = (prior / width + total / spread) / precision
        columns[CENTRE, j] = mean + rng.standard_normal() / math.sqrt(precision)


@kernel
def shift_intercepts(
    tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array, law: Array, rng: Rng
) -> None:
    """Shift c and every centre's and component's intercept by one drawn amount: rewards may have a large offset."""
    D = columns.shape[1]
    last = D - 1
    width = law[WIDE] * hyper[SQUARE] * columns[UNIT, last]
    precision = 1.0 / width
    pull = (hyper[MEDIAN] - columns[CENTRE, last]) / width
    first = sxx_row(D) + last * D // 2  # the last row of Sxx: sum of x and, last, n
    for arm in range(tables.shape[0]):
        for k in range(sizes[arm, 0]):
            missed = tables[arm, sxy_row(D) + last, k]
            for j in range(D):
                missed -= tables[arm, first + j, k] * tables[arm, w_row(D) + j, k]
            precision += tables[arm, COUNT, k] / tables[arm, VAR, k]
            pull += missed / tables[arm, VAR, k]
    shift = pull / precision + rng.standard_normal() / math.sqrt(precision)
    columns[CENTRE, last] += shift
    for arm in range(tables.shape[0]):
        centres[arm, last, D + 1] += shift
        for k in range(sizes[arm, 0]):
            tables[arm, w_row(D) + last, k] += shift


@kernel
def draw_noise(tables: Array, sizes: IntArray, hyper: Array, law: Array, rng: Rng) -> None:
    """Draw b given every component's noise variance."""
    shape, total = law[NOISE_RATE_SHAPE], 0.0
    for arm in range(tables.shape[0]):
        for k in range(sizes[arm, 0]):
            shape += draw_shape(tables[arm, VAR, k] / hyper[NOISE], law, rng)
            total += 1.0 / tables[arm, VAR, k]
    drawn = rng.standard_gamma(shape) / (law[NOISE_RATE] / hyper[SQUARE] + total)
    hyper[NOISE] = max(drawn, 100.0 * least_noise(hyper))  # so that a proposed s2 hardly ever falls below the least


@kernel
def draw_concentration(tables: Array, sizes: IntArray, hyper: Array, law: Array, rng: Rng) -> None:
    """Draw gamma given every arm's numbers of components and rewards (Escobar & West 1995, shared by the arms)."""
    gamma = hyper[GAMMA]
    shape, rate = law[GAMMA_SHAPE], law[GAMMA_RATE]
    for arm in range(sizes.shape[0]):
        n = n_held(tables[arm], sizes[arm, 0])
        if n > 0.0:
            above, below = rng.standard_gamma(gamma + 1.0), rng.standard_gamma(n)
            rate -= math.log(above / (above + below))
            shape += sizes[arm, 0]
            if rng.random() * (n + gamma) < n:
                shape -= 1.0
    hyper[GAMMA] = max(rng.standard_gamma(shape) / rate, 1e-12)


@kernel
def draw_shared(
    tables: Array, sizes: IntArray, centres: Array, hyper: Array, columns: Array, law: Array, rng: Rng
) -> None:
    """Draw everything the arms share, given their seatings, centres, slopes and noise variances."""
    if law[LEARNED] > 0.0:
        draw_spreads(tables, sizes, centres, hyper, columns, law, rng)
        set_variances(hyper, columns, law)
        draw_common_centre(tables, sizes, centres, hyper, columns, law, rng)
        if law[INTERCEPT] > 0.0:
            shift_intercepts(tables, sizes, centres, hyper, columns, law, rng)
        draw_noise(tables, sizes, hyper, law, rng)
        if law[TAU_SHAPE] > 0.0:
            hyper[TAU] = draw_tau(tables, sizes, columns, hyper[TAU], law[TAU_SHAPE], law[TAU_SCALE], rng)
    if law[GAMMA_SHAPE] > 0.0:
        draw_concentration(tables, sizes, hyper, law, rng)
