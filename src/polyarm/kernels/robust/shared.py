"""Draws of what the arms share, given their seatings, centres, slopes and noise variances (notation of records.py)."""

import math

from polyarm.kernels._jit import inlined, no_refcount
from polyarm.kernels.mixture.means import n_held
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.robust.component import COUNT, VAR, sxx_row, sxy_row, w_row
from polyarm.kernels.robust.gating import draw_location_var
from polyarm.kernels.robust.records import Arms, Features, Hyperprior, Shared, n_features
from polyarm.types import Rng

NO_SHARE = 1e-8  # variance of an arm's centre, as a share of its components', where arms have no centre of their own
RHO_LOW, RHO_HIGH = 1e-6, 1e4  # keeps Q - QVQ to ten digits of the prior's information; no data reach these
RATIO_STEPS, RATIO_WIDTH = 2, 1.5  # of a draw of kappa: steps, and the standard deviation of one
RATIO_LOW, RATIO_HIGH = 1e-8, 1e8  # of kappa, which no rewards reach
LAM_LOW, LAM_HIGH = 1e-12, 1e12  # of lam2 in units of S2, against overflow
NOISE_LOW = 1e-6  # of s2 in units of S2 + lam2: with 10^6 rewards four digits remain to solve with
WIDEST = 100.0  # of lam2 in units of S2, in that floor: or a wrong lam2 would keep the noise up, and itself


@inlined
def group_of(j: int, D: int, prior: Hyperprior) -> int:
    """Scale group of feature j."""
    return 1 if prior.intercept > 0.0 and j == D - 1 else 0


@inlined
def set_variances(shared: Shared, features: Features, prior: Hyperprior) -> None:
    """Write L and R from lam2, rho and the columns' units."""
    D = features.unit.shape[0]
    for j in range(D):
        g = group_of(j, D, prior)
        wide = shared.arm_var[g] * features.unit[j]
        if prior.shared_centre > 0.0:
            features.arm_var[j] = wide
            features.part_var[j] = shared.part_ratio[g] * wide
        else:
            features.arm_var[j] = NO_SHARE * wide
            features.part_var[j] = wide


@inlined
def least_noise(shared: Shared) -> float:
    """Smallest noise variance that leaves the equations solvable."""
    S2 = shared.reward_square
    return float(NOISE_LOW * (S2 + min(shared.arm_var[0] + shared.arm_var[1], WIDEST * S2)))


@inlined
def draw_inverse_gamma(shape: float, scale: float, rng: Rng) -> float:
    """One draw of IG(shape, scale)."""
    return scale / rng.standard_gamma(shape)


@inlined
def tail(ratio: float, prior: Hyperprior) -> float:
    """Prior density of a noise variance over that of IG(a, b), given its ratio to b."""
    share = prior.wild_share
    if share == 0.0:
        return 1.0
    more = prior.wild_bulk * math.exp((prior.noise_shape - prior.wild_shape) * math.log(ratio))
    return float(1.0 - share + share * more)


@inlined
def draw_shape(ratio: float, prior: Hyperprior, rng: Rng) -> float:
    """The shape, a or a', that a noise variance of this ratio to b was drawn with."""
    if prior.wild_share > 0.0 and rng.random() * tail(ratio, prior) >= 1.0 - prior.wild_share:
        return float(prior.wild_shape)
    return float(prior.noise_shape)


@inlined
def ratio_given(lam2: float, arms: Arms) -> float:
    """Log density of kappa given the spread of the arms' slopes, up to a constant."""
    prior = arms.prior
    if prior.centre_shape == 0.0:
        return 0.0
    scale = lam2 / arms.shared.reward_square
    return float(prior.centre_shape * math.log(scale) - prior.centre_scale * scale / arms.centre_ratio[0])


@no_refcount
def draw_spreads(arms: Arms, rng: Rng) -> None:
    """Draw lam2 and rho of both groups given every centre and every component's slopes."""
    shared, features, prior = arms.shared, arms.features, arms.prior
    D, S2, centred = n_features(arms), shared.reward_square, prior.shared_centre > 0.0
    for g in range(2):
        among, within, n_among, n_within = 0.0, 0.0, 0.0, 0.0
        for arm in range(arms.components.shape[0]):
            K = arms.sizes[arm, K_USED]
            for j in range(D if K > 0 else 0):
                if group_of(j, D, prior) != g:
                    continue
                w0 = arms.centres[arm, j, D + 1] if centred else features.centre[j]
                if centred:
                    among += (w0 - features.centre[j]) ** 2 / features.unit[j]
                    n_among += 1.0
                for k in range(K):
                    within += (arms.components[arm, w_row(D) + j, k] - w0) ** 2 / features.unit[j]
                    n_within += 1.0
        rho = shared.part_ratio[g] if centred else 1.0
        shape = prior.arm_shape[g] + 0.5 * (n_among + n_within)
        scale = prior.arm_scale[g] * S2 + 0.5 * (among + within / rho)
        lam2 = min(max(draw_inverse_gamma(shape, scale, rng), LAM_LOW * S2), LAM_HIGH * S2)
        gain = ratio_given(lam2, arms) - ratio_given(shared.arm_var[g], arms) if g == 0 else 0.0
        if gain >= 0.0 or math.log(1.0 - rng.random()) < gain:
            shared.arm_var[g] = lam2
        if centred and prior.part_shape[g] > 0.0:
            shape = prior.part_shape[g] + 0.5 * n_within
            scale = prior.part_scale[g] + 0.5 * within / shared.arm_var[g]
            shared.part_ratio[g] = min(max(draw_inverse_gamma(shape, scale, rng), RHO_LOW), RHO_HIGH)


@inlined
def prior_of_centre(arms: Arms, j: int) -> tuple[float, float]:
    """Mean and variance of c_j before any reward."""
    mean = arms.shared.median if group_of(j, n_features(arms), arms.prior) == 1 else 0.0
    return mean, width_of_centre(arms, j, arms.centre_ratio[0])


@inlined
def width_of_centre(arms: Arms, j: int, kappa: float) -> float:
    """Variance of c_j before any reward: a constant, or a column far from 0, holds the level of rewards, no slope."""
    features = arms.features
    level = 1.0
    if features.precision[j] > 0.0:
        distance = features.mean[j] * features.mean[j] * features.precision[j]  # squared, in standard deviations
        level = distance / (1.0 + distance)
    ratio = kappa + (arms.prior.centre_var - kappa) * level
    return ratio * arms.shared.reward_square * features.unit[j]


@inlined
def sum_of_centres(arms: Arms, j: int) -> tuple[float, float]:
    """Sum of entry j of the centres of arms with rewards, and their number."""
    total, count, D = 0.0, 0.0, n_features(arms)
    for arm in range(arms.components.shape[0]):
        if arms.sizes[arm, K_USED] > 0:
            total += arms.centres[arm, j, D + 1]
            count += 1.0
    return total, count


@inlined
def sum_of_slopes(arms: Arms, j: int) -> tuple[float, float]:
    """Sum of slope j of all components of all arms, and their number."""
    total, count, D = 0.0, 0.0, n_features(arms)
    for arm in range(arms.components.shape[0]):
        for k in range(arms.sizes[arm, K_USED]):
            total += arms.components[arm, w_row(D) + j, k]
            count += 1.0
    return total, count


@inlined
def gain_of_ratio(arms: Arms, kappa: float, other: float) -> float:
    """Log of how much more probable another kappa is on the scale of its logarithm, given the arms' centres.

    With c integrated out the mean of n centres is N(0, W + lam2 u / n), W being the variance of c.
    """
    prior, D = arms.prior, n_features(arms)
    scale = prior.centre_scale * arms.shared.arm_var[0] / arms.shared.reward_square
    gain = prior.centre_shape * math.log(kappa / other) + scale * (1.0 / kappa - 1.0 / other)
    for j in range(D):
        if group_of(j, D, prior) == 1:
            continue
        total, count = sum_of_centres(arms, j)
        if count > 0.0:
            square, spread = (total / count) ** 2, arms.features.arm_var[j] / count
            before, after = width_of_centre(arms, j, kappa) + spread, width_of_centre(arms, j, other) + spread
            gain += 0.5 * (math.log(before / after) + square / before - square / after)
    return gain


@no_refcount
def draw_centre_ratio(arms: Arms, rng: Rng) -> None:
    """Draw kappa given the arms' centres and not c, which would hold on to it: Metropolis steps over its logarithm."""
    for _ in range(RATIO_STEPS):
        kappa = arms.centre_ratio[0]
        other = kappa * math.exp(RATIO_WIDTH * rng.standard_normal())
        if RATIO_LOW < other < RATIO_HIGH and math.log(1.0 - rng.random()) < gain_of_ratio(arms, kappa, other):
            arms.centre_ratio[0] = other


@no_refcount
def draw_common_centre(arms: Arms, rng: Rng) -> None:
    """Draw c given the arms' centres, or given every component's slopes where arms have no centre."""
    features, D, centred = arms.features, n_features(arms), arms.prior.shared_centre > 0.0
    for j in range(D):
        spread = features.arm_var[j] if centred else features.part_var[j]
        total, count = sum_of_centres(arms, j) if centred else sum_of_slopes(arms, j)
        expected, width = prior_of_centre(arms, j)
        precision = 1.0 / width + count / spread
        mean = (expected / width + total / spread) / precision
        features.centre[j] = mean + rng.standard_normal() / math.sqrt(precision)


@no_refcount
def shift_intercepts(arms: Arms, rng: Rng) -> None:
    """Shift c and every centre's and component's intercept by one drawn amount: rewards may have a large offset."""
    features, D = arms.features, n_features(arms)
    last = D - 1
    expected, width = prior_of_centre(arms, last)
    precision = 1.0 / width
    pull = (expected - features.centre[last]) / width
    first = sxx_row(D) + last * D // 2  # the last row of Sxx: sum of x and, last, n
    for arm in range(arms.components.shape[0]):
        T = arms.components[arm]
        for k in range(arms.sizes[arm, K_USED]):
            missed = T[sxy_row(D) + last, k]
            for j in range(D):
                missed -= T[first + j, k] * T[w_row(D) + j, k]
            precision += T[COUNT, k] / T[VAR, k]
            pull += missed / T[VAR, k]
    shift = pull / precision + rng.standard_normal() / math.sqrt(precision)
    features.centre[last] += shift
    for arm in range(arms.components.shape[0]):
        arms.centres[arm, last, D + 1] += shift
        for k in range(arms.sizes[arm, K_USED]):
            arms.components[arm, w_row(D) + last, k] += shift


@no_refcount
def draw_noise_scale(arms: Arms, rng: Rng) -> None:
    """Draw b given every component's noise variance."""
    shared, prior = arms.shared, arms.prior
    shape, total = prior.noise_rate_shape, 0.0
    for arm in range(arms.components.shape[0]):
        for k in range(arms.sizes[arm, K_USED]):
            s2 = arms.components[arm, VAR, k]
            shape += draw_shape(s2 / shared.noise_scale, prior, rng)
            total += 1.0 / s2
    drawn = rng.standard_gamma(shape) / (prior.noise_rate / shared.reward_square + total)
    shared.noise_scale = max(drawn, 100.0 * least_noise(shared))  # so that hardly any proposed s2 is below the least


@no_refcount
def draw_concentration(arms: Arms, rng: Rng) -> None:
    """Draw gamma given every arm's numbers of components and rewards (Escobar & West 1995, shared by the arms)."""
    gamma = arms.shared.concentration
    shape, rate = arms.prior.concentration_shape, arms.prior.concentration_rate
    for arm in range(arms.sizes.shape[0]):
        n = n_held(arms.components[arm], arms.sizes[arm, K_USED])
        if n > 0.0:
            above, below = rng.standard_gamma(gamma + 1.0), rng.standard_gamma(n)
            rate -= math.log(above / (above + below))
            shape += arms.sizes[arm, K_USED]
            if rng.random() * (n + gamma) < n:
                shape -= 1.0
    arms.shared.concentration = max(rng.standard_gamma(shape) / rate, 1e-12)


@no_refcount
def draw_shared(arms: Arms, rng: Rng) -> None:
    """Draw everything the arms share."""
    prior = arms.prior
    if prior.learned > 0.0:
        draw_spreads(arms, rng)
        set_variances(arms.shared, arms.features, prior)
        if prior.centre_shape > 0.0:
            draw_centre_ratio(arms, rng)
        draw_common_centre(arms, rng)
        if prior.intercept > 0.0:
            shift_intercepts(arms, rng)
        draw_noise_scale(arms, rng)
        if prior.location_shape > 0.0:
            arms.shared.location_var = draw_location_var(arms, rng)
    if prior.concentration_shape > 0.0:
        draw_concentration(arms, rng)
