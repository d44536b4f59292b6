"""Draws of scales with the slopes and centres integrated out, where given slopes they would hardly move.

Slopes that lam2, rho or a noise variance has shrunk, or let go, argue for keeping it as it is (Neal's funnel).  So now
and then a change of lam2, rho, or of b and every s2 by one factor, is judged by the evidence of all rewards.
With A = Sxx/s2, t = (Sxy - Sxx w0)/s2, e = sum (y - x'w0)^2:

log p(rewards of k | w0)  = -n/2 log s2 - 1/2 log |I + RA| - e/(2 s2) + 1/2 t'V t
log p(rewards of an arm)  = that at w0 = c, summed over k, - 1/2 log |L| - log |F| + 1/2 |F'(mu - c)|^2

F F', mu  information and mean of w0 (centre.py)

A reward far away can be noise of its component or a slope of its own; lam2 and rho are large in the second case.  A
change of them alone leads from neither case to the other, so every second one comes with new noise variances of the
components that are OUTLYING, drawn from 1/2 IG(a, b) + 1/2 IG(a + n/2, b + e/2), e at w0 = c.
"""

import math

from polyarm.kernels._jit import inlined, no_refcount
from polyarm.kernels.elementary import log
from polyarm.kernels.lanes import LANES, load, store, sum_of, where_less, within
from polyarm.kernels.linalg.triangle import WIDE, solve_lower
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.robust.centre import find_centre
from polyarm.kernels.robust.component import COUNT, SYY, VAR, sxx_row, sxy_row
from polyarm.kernels.robust.records import Arms, Features, Hyperprior, Room, Shared, Solver
from polyarm.kernels.robust.shared import (
    LAM_HIGH,
    LAM_LOW,
    RHO_HIGH,
    RHO_LOW,
    least_noise,
    ratio_given,
    set_variances,
    tail,
)
from polyarm.kernels.robust.solving import information, solve_some, solve_wide
from polyarm.types import Array, Rng

PROPOSALS = 3  # changes proposed at a time
OUTLYING = 25.0  # mean squared distance from the common centre, in units of S2
LAM, RHO, NOISE, N_SCALES = 0, 2, 4, 5  # scales that are proposed: lam2 of both groups, rho of both, b


@inlined
def misses(T: Array, k: int, at: Array, t: Array) -> float:
    """Write t = Sxy - Sxx at, and return the sum of (y - x'at)^2."""
    D = at.shape[0]
    s, p = sxy_row(D), sxx_row(D)
    for i in range(D):
        t[i] = T[s + i, k]
    for i in range(D):
        for j in range(i):
            t[i] -= T[p, k] * at[j]
            t[j] -= T[p, k] * at[i]
            p += 1
        t[i] -= T[p, k] * at[i]
        p += 1
    total = T[SYY, k]
    for i in range(D):
        total -= at[i] * (T[s + i, k] + t[i])
    return max(total, 0.0)


@inlined
def part_evidence(T: Array, k: int, at: Array, R: Array, solver: Solver) -> float:
    """Log density of a component's rewards given that its slopes are around `at`; solver.M is the factor of A + Q."""
    M, t, D = solver.M, solver.v, at.shape[0]
    s2 = T[VAR, k]
    total = -0.5 * (misses(T, k, at, t) / s2 + T[COUNT, k] * math.log(s2))
    for i in range(D):
        t[i] /= s2
        total -= math.log(M[i, i]) + 0.5 * math.log(R[i])
    solve_lower(M, t, D)
    for i in range(D):
        total += 0.5 * t[i] * t[i]
    return total


@inlined
def evidence_of_some(T: Array, k: int, n: int, at: Array, solver: Solver) -> float:
    """Log density of the rewards of n components from k on, at most LANES, given that their slopes are around `at`, but
    for -1/2 log |R| each; the factors are those that `solve_some` left.
    """
    M, t, D = solver.factors, solver.vectors, at.shape[0]
    s, p = sxy_row(D), sxx_row(D)
    for i in range(D):
        here = load(T, s + i, k)
        for j in range(i):
            S = load(T, p, k)
            here -= S * at[j]
            store(load(t, j) - S * at[i], t, j)
            p += 1
        store(here - load(T, p, k) * at[i], t, i)
        p += 1
    missed, s2 = load(T, SYY, k), within(0, n, load(T, VAR, k), 1.0)
    for i in range(D):
        missed -= at[i] * (load(T, s + i, k) + load(t, i))
    precision = 1.0 / s2
    density = -0.5 * (where_less(missed, 0.0, 0.0, missed) * precision + load(T, COUNT, k) * log(s2))
    for i in range(D):
        solved = load(t, i) * precision
        for j in range(i):
            solved -= load(M, i, j) * load(t, j)
        solved *= load(solver.inverse_diagonal, i)
        store(solved, t, i)
        density += 0.5 * solved * solved - log(load(M, i, i))
    return sum_of(within(0, n, density, 0.0))


@inlined
def parts_evidence(T: Array, K: int, w0: Array, features: Features, solver: Solver) -> float:
    """Log density of an arm's rewards given that its components' slopes are around c; U and V become those of now."""
    R, density, log_R = features.part_var, 0.0, 0.0
    if R.shape[0] >= WIDE:
        for k in range(K):
            solve_wide(T, k, w0, R, solver)
            density += part_evidence(T, k, features.centre, R, solver)
        return density
    for k in range(0, K, LANES):
        n = min(K - k, LANES)
        solve_some(T, k, 0, n, w0, R, solver)
        density += evidence_of_some(T, k, n, features.centre, solver)
    for i in range(R.shape[0]):
        log_R += math.log(R[i])
    return density - 0.5 * K * log_R


@no_refcount
def arm_evidence(T: Array, K: int, centre: Array, features: Features, solver: Solver) -> float:
    """Log density of an arm's rewards given seating and noise variances; U, V, F and mu become those of now."""
    D = features.unit.shape[0]
    c, total = features.centre, parts_evidence(T, K, centre[:, D + 1], features, solver)
    find_centre(T, K, centre, features, solver)
    for i in range(D):
        t = 0.0
        for j in range(i, D):
            t += centre[j, i] * (centre[j, D] - c[j])
        total += 0.5 * t * t - math.log(centre[i, i]) - 0.5 * math.log(features.arm_var[i])
    return total


@inlined
def evidence(arms: Arms, solver: Solver) -> float:
    """Log density of all rewards given seating, noise variances and what the arms share."""
    total = 0.0
    for arm in range(arms.components.shape[0]):
        K = arms.sizes[arm, K_USED]
        if K > 0:
            total += arm_evidence(arms.components[arm], K, arms.centres[arm], arms.features, solver)
    return total


@inlined
def log_inverse_gamma(value: float, shape: float, scale: float) -> float:
    """Log density of log(value), where value ~ IG(shape, scale), up to a constant."""
    return -shape * math.log(value) - scale / value


@inlined
def log_prior(shared: Shared, prior: Hyperprior) -> float:
    """Log prior density of log lam2, log rho and the logarithm of the noise's common factor, up to a constant."""
    b, S2 = shared.noise_scale, shared.reward_square
    total = prior.noise_rate_shape * math.log(b) - b * prior.noise_rate / S2
    for g in range(2):
        total += log_inverse_gamma(shared.arm_var[g], prior.arm_shape[g], prior.arm_scale[g] * S2)
        if prior.shared_centre > 0.0 and prior.part_shape[g] > 0.0:
            total += log_inverse_gamma(shared.part_ratio[g], prior.part_shape[g], prior.part_scale[g])
    return total


@inlined
def log_density(arms: Arms, solver: Solver) -> float:
    """Log density of all rewards and of the logarithms of all scales, up to a constant."""
    shared, prior = arms.shared, arms.prior
    return evidence(arms, solver) + log_prior(shared, prior) + ratio_given(shared.arm_var[0], arms)


@inlined
def multiply(arms: Arms, which: int, factor: float) -> bool:
    """Multiply one scale; tell whether it stays within its bounds."""
    shared = arms.shared
    if which < RHO:
        shared.arm_var[which] *= factor
        return bool(LAM_LOW * shared.reward_square <= shared.arm_var[which] <= LAM_HIGH * shared.reward_square)
    if which < NOISE:
        shared.part_ratio[which - RHO] *= factor
        return bool(RHO_LOW <= shared.part_ratio[which - RHO] <= RHO_HIGH)
    shared.noise_scale *= factor
    least = shared.noise_scale
    for arm in range(arms.components.shape[0]):
        for k in range(arms.sizes[arm, K_USED]):
            arms.components[arm, VAR, k] *= factor
            least = min(least, arms.components[arm, VAR, k])
    return bool(least >= least_noise(shared))


@inlined
def log_share(s2: float, n: float, e: float, b: float, prior: Hyperprior) -> float:
    """Log prior density of a noise variance over the density that those of outlying components are drawn from."""
    a, h = prior.noise_shape, 0.5 * n
    log_bulk = (a + h) * math.log(b + 0.5 * e) - a * math.log(b) + math.lgamma(a) - math.lgamma(a + h)
    log_bulk -= h * math.log(s2) + 0.5 * e / s2
    both = math.log1p(math.exp(log_bulk)) if log_bulk < 30.0 else log_bulk
    return math.log(2.0 * tail(s2 / b, prior)) - both


@no_refcount
def redraw_outlying(arms: Arms, room: Room, rng: Rng) -> float:
    """Draw noise variances of outlying components; return the change of log prior over proposal density.

    What they were stays in room.s2.
    """
    a, b, c = arms.prior.noise_shape, arms.shared.noise_scale, arms.features.centre
    least, total = least_noise(arms.shared), 0.0
    for arm in range(arms.components.shape[0]):
        T = arms.components[arm]
        for k in range(arms.sizes[arm, K_USED]):
            s2, n = T[VAR, k], T[COUNT, k]
            room.s2[arm, k] = s2
            e = misses(T, k, c, room.solver.v)
            if e > OUTLYING * n * arms.shared.reward_square:
                if rng.random() < 0.5:
                    T[VAR, k] = b / rng.standard_gamma(a)
                else:
                    T[VAR, k] = (b + 0.5 * e) / rng.standard_gamma(a + 0.5 * n)
                total += log_share(T[VAR, k], n, e, b, arms.prior) - log_share(s2, n, e, b, arms.prior)
                if T[VAR, k] < least:
                    total = -math.inf
    return total


@inlined
def restore_noise(arms: Arms, room: Room) -> None:
    """Take back the noise variances in room.s2."""
    for arm in range(arms.components.shape[0]):
        for k in range(arms.sizes[arm, K_USED]):
            arms.components[arm, VAR, k] = room.s2[arm, k]


@no_refcount
def propose_scales(arms: Arms, first: int, last: int, room: Room, rng: Rng) -> bool:
    """Metropolis steps over the logarithms of lam2 and rho and, in place of b, of one factor for b and every noise
    variance; tell whether one was taken, so that centres and slopes must be drawn again.

    Scales are drawn from first to last - 1, steps have sd 0.3 to 3.  U and V are left out of date.
    """
    shared, features, prior = arms.shared, arms.features, arms.prior
    before = log_density(arms, room.solver)
    taken = False
    for _ in range(PROPOSALS):
        which = first + int((last - first) * rng.random())
        factor = math.exp(0.3 * 10.0 ** rng.random() * rng.standard_normal())
        if RHO <= which < NOISE and (prior.shared_centre == 0.0 or prior.part_shape[which - RHO] == 0.0):
            continue
        jointly = which < NOISE and rng.random() < 0.5
        gain, after = redraw_outlying(arms, room, rng) if jointly else 0.0, -math.inf
        if multiply(arms, which, factor) and gain > -math.inf:
            set_variances(shared, features, prior)
            after = log_density(arms, room.solver)
        if math.log(1.0 - rng.random()) < after - before + gain:
            before, taken = after, True
        else:
            multiply(arms, which, 1.0 / factor)
            set_variances(shared, features, prior)
            if jointly:
                restore_noise(arms, room)
    return taken


@no_refcount
def noise_density(T: Array, k: int, w0: Array, R: Array, b: float, prior: Hyperprior, solver: Solver) -> float:
    """Log posterior density of the logarithm of a component's noise variance, its slopes integrated out."""
    information(T, k, R, solver.M)
    log_density = log_inverse_gamma(T[VAR, k], prior.noise_shape, b) + math.log(tail(T[VAR, k] / b, prior))
    return log_density + part_evidence(T, k, w0, R, solver)


@inlined
def propose_noise(T: Array, k: int, w0: Array, arms: Arms, solver: Solver, rng: Rng) -> None:
    """One Metropolis step over the logarithm of a component's noise variance, its slopes integrated out."""
    R, b, prior, s2 = arms.features.part_var, arms.shared.noise_scale, arms.prior, T[VAR, k]
    before, after = noise_density(T, k, w0, R, b, prior, solver), -math.inf
    T[VAR, k] = s2 * math.exp(0.3 * 10.0 ** rng.random() * rng.standard_normal())
    if T[VAR, k] >= least_noise(arms.shared):
        after = noise_density(T, k, w0, R, b, prior, solver)
    if math.log(1.0 - rng.random()) >= after - before:
        T[VAR, k] = s2
