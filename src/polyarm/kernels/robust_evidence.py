"""Draws of scales with the slopes and centres integrated out, where given slopes they would hardly move.

Slopes that lam2, rho or a noise variance has shrunk, or let go, argue for keeping it as it is (Neal's funnel).  So now
and then a change of lam2, rho, or of b and every s2 by one factor, is judged by the evidence of all rewards.
With A = Sxx/s2, t = (Sxy - Sxx w0)/s2, e = sum (y - x'w0)^2:

log p(rewards of k | w0)  = -n/2 log s2 - 1/2 log |I + RA| - e/(2 s2) + 1/2 t'V t
log p(rewards of an arm)  = that at w0 = c, summed over k, - 1/2 log |L| - log |F| + 1/2 |F'(mu - c)|^2

F F', mu  information and mean of w0 (robust_means.py)

A reward far away can be noise of its component or a slope of its own; lam2 and rho are large in the second case.  A
change of them alone leads from neither case to the other, so every second one comes with new noise variances of the
components that are OUTLYING, drawn from 1/2 IG(a, b) + 1/2 IG(a + n/2, b + e/2), e at w0 = c.
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm.kernels._jit import kernel, loop, step
from polyarm.kernels.robust_component import COUNT, SYY, VAR, information, solve, sxx_row, sxy_row
from polyarm.kernels.robust_means import find_centre
from polyarm.kernels.robust_scales import (
    ARM_VAR,
    CENTRE,
    LAM,
    LAM_HIGH,
    LAM_LOW,
    LAM_SCALE,
    LAM_SHAPE,
    NOISE,
    NOISE_RATE,
    NOISE_RATE_SHAPE,
    NOISE_SHAPE,
    PART_VAR,
    RHO,
    RHO_HIGH,
    RHO_LOW,
    RHO_SCALE,
    RHO_SHAPE,
    SHARED,
    SQUARE,
    least_noise,
    set_variances,
    tail,
)
from polyarm.kernels.triangle import solve_lower
from polyarm.types import Array, IntArray, Rng

PROPOSALS = 3  # changes proposed at a time
OUTLYING = 25.0  # mean squared distance from the common centre, in units of S2


class Arms(NamedTuple):
    """All arms and what they share, as robust.py has them."""

    tables: Array
    sizes: IntArray
    centres: Array
    hyper: Array
    columns: Array
    law: Array


class Scratch(NamedTuple):
    """Room for a factor, its inverse, a vector, and the noise variances of all components, (arms, capacity)."""

    M: Array
    B: Array
    v: Array
    s2: Array


@kernel
def scratch(arms: Arms) -> Scratch:
    """Room for these arms."""
    A, _, C = arms.tables.shape
    D = arms.columns.shape[1]
    return Scratch(np.empty((D, D)), np.empty((D, D)), np.empty(D), np.empty((A, C)))


@step
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


@step
def part_evidence(T: Array, k: int, at: Array, R: Array, M: Array, t: Array) -> float:
    """Log density of a component's rewards given that its slopes are around `at`; M is the factor of A + Q."""
    D = at.shape[0]
    s2 = T[VAR, k]
    total = -0.5 * (misses(T, k, at, t) / s2 + T[COUNT, k] * math.log(s2))
    for i in range(D):
        t[i] /= s2
        total -= math.log(M[i, i]) + 0.5 * math.log(R[i])
    solve_lower(M, t, D)
    for i in range(D):
        total += 0.5 * t[i] * t[i]
    return total


@kernel
def arm_evidence(T: Array, K: int, centre: Array, columns: Array, room: Scratch) -> float:
    """Log density of an arm's rewards given seating and noise variances; U, V, F and mu become those of now."""
    D = columns.shape[1]
    c, total = columns[CENTRE], 0.0
    for k in range(K):
        solve(T, k, centre[:, D + 1], columns[PART_VAR], room.M, room.B, room.v)
        total += part_evidence(T, k, c, columns[PART_VAR], room.M, room.v)
    find_centre(T, K, centre, columns)
    for i in range(D):
        t = 0.0
        for j in range(i, D):
            t += centre[j, i] * (centre[j, D] - c[j])
        total += 0.5 * t * t - math.log(centre[i, i]) - 0.5 * math.log(columns[ARM_VAR, i])
    return total


@step
def evidence(arms: Arms, room: Scratch) -> float:
    """Log density of all rewards given seating, noise variances and what the arms share."""
    total = 0.0
    for arm in range(arms.tables.shape[0]):
        K = arms.sizes[arm, 0]
        if K > 0:
            total += arm_evidence(arms.tables[arm], K, arms.centres[arm], arms.columns, room)
    return total


@step
def log_inverse_gamma(value: float, shape: float, scale: float) -> float:
    """Log density of log(value), where value ~ IG(shape, scale), up to a constant."""
    return -shape * math.log(value) - scale / value


@step
def log_prior(hyper: Array, law: Array) -> float:
    """Log prior density of log lam2, log rho and the logarithm of the noise's common factor, up to a constant."""
    total = law[NOISE_RATE_SHAPE] * math.log(hyper[NOISE]) - hyper[NOISE] * law[NOISE_RATE] / hyper[SQUARE]
    for g in range(2):
        total += log_inverse_gamma(hyper[LAM + g], law[LAM_SHAPE + g], law[LAM_SCALE + g] * hyper[SQUARE])
        if law[SHARED] > 0.0 and law[RHO_SHAPE + g] > 0.0:
            total += log_inverse_gamma(hyper[RHO + g], law[RHO_SHAPE + g], law[RHO_SCALE + g])
    return total


@step
def multiply(arms: Arms, which: int, factor: float) -> bool:
    """Multiply one scale; tell whether it stays within its bounds."""
    hyper = arms.hyper
    hyper[which] *= factor
    if which < RHO:
        return bool(LAM_LOW * hyper[SQUARE] <= hyper[which] <= LAM_HIGH * hyper[SQUARE])
    if which < NOISE:
        return bool(RHO_LOW <= hyper[which] <= RHO_HIGH)
    least = hyper[NOISE]
    for arm in range(arms.tables.shape[0]):
        for k in range(arms.sizes[arm, 0]):
            arms.tables[arm, VAR, k] *= factor
            least = min(least, arms.tables[arm, VAR, k])
    return bool(least >= least_noise(hyper))


@step
def log_share(s2: float, n: float, e: float, b: float, law: Array) -> float:
    """Log prior density of a noise variance over the density that those of outlying components are drawn from."""
    a, h = law[NOISE_SHAPE], 0.5 * n
    log_bulk = (a + h) * math.log(b + 0.5 * e) - a * math.log(b) + math.lgamma(a) - math.lgamma(a + h)
    log_bulk -= h * math.log(s2) + 0.5 * e / s2
    both = math.log1p(math.exp(log_bulk)) if log_bulk < 30.0 else log_bulk
    return math.log(2.0 * tail(s2 / b, law)) - both


@loop
def redraw_outlying(arms: Arms, room: Scratch, rng: Rng) -> float:
    """Draw noise variances of outlying components; return the change of log prior over proposal density.

    What they were stays in room.s2.
    """
    a, b, c = arms.law[NOISE_SHAPE], arms.hyper[NOISE], arms.columns[CENTRE]
    least, total = least_noise(arms.hyper), 0.0
    for arm in range(arms.tables.shape[0]):
        T = arms.tables[arm]
        for k in range(arms.sizes[arm, 0]):
            s2, n = T[VAR, k], T[COUNT, k]
            room.s2[arm, k] = s2
            e = misses(T, k, c, room.v)
            if e > OUTLYING * n * arms.hyper[SQUARE]:
                if rng.random() < 0.5:
                    T[VAR, k] = b / rng.standard_gamma(a)
                else:
                    T[VAR, k] = (b + 0.5 * e) / rng.standard_gamma(a + 0.5 * n)
                total += log_share(T[VAR, k], n, e, b, arms.law) - log_share(s2, n, e, b, arms.law)
                if T[VAR, k] < least:
                    total = -math.inf
    return total


@step
def restore_noise(arms: Arms, room: Scratch) -> None:
    """Take back the noise variances in room.s2."""
    for arm in range(arms.tables.shape[0]):
        for k in range(arms.sizes[arm, 0]):
            arms.tables[arm, VAR, k] = room.s2[arm, k]


@kernel
def propose_scales(arms: Arms, first: int, last: int, room: Scratch, rng: Rng) -> bool:
    """Metropolis steps over the logarithms of lam2 and rho (entries of hyper) and, as the entry of b, of one factor for
    b and every noise variance; tell whether one was taken, so that centres and slopes must be drawn again.

    Entries are drawn from first to last - 1, steps have sd 0.3 to 3.  U and V are left out of date.
    """
    hyper, columns, law = arms.hyper, arms.columns, arms.law
    before = evidence(arms, room) + log_prior(hyper, law)
    taken = False
    for _ in range(PROPOSALS):
        which = first + int((last - first) * rng.random())
        factor = math.exp(0.3 * 10.0 ** rng.random() * rng.standard_normal())
        if RHO <= which < NOISE and (law[SHARED] == 0.0 or law[RHO_SHAPE + which - RHO] == 0.0):
            continue
        jointly = which < NOISE and rng.random() < 0.5
        gain, after = redraw_outlying(arms, room, rng) if jointly else 0.0, -math.inf
        if multiply(arms, which, factor) and gain > -math.inf:
            set_variances(hyper, columns, law)
            after = evidence(arms, room) + log_prior(hyper, law)
        if math.log(1.0 - rng.random()) < after - before + gain:
            before, taken = after, True
        else:
            multiply(arms, which, 1.0 / factor)
            set_variances(hyper, columns, law)
            if jointly:
                restore_noise(arms, room)
    return taken


@loop
def noise_density(T: Array, k: int, w0: Array, arms: Arms, room: Scratch) -> float:
    """Log posterior density of the logarithm of a component's noise variance, its slopes integrated out."""
    R, b = arms.columns[PART_VAR], arms.hyper[NOISE]
    information(T, k, R, room.M)
    prior = log_inverse_gamma(T[VAR, k], arms.law[NOISE_SHAPE], b) + math.log(tail(T[VAR, k] / b, arms.law))
    return prior + part_evidence(T, k, w0, R, room.M, room.v)


@loop
def propose_noise(T: Array, k: int, w0: Array, arms: Arms, room: Scratch, rng: Rng) -> None:
    """One Metropolis step over the logarithm of a component's noise variance, its slopes integrated out."""
    s2 = T[VAR, k]
    before, after = noise_density(T, k, w0, arms, room), -math.inf
    T[VAR, k] = s2 * math.exp(0.3 * 10.0 ** rng.random() * rng.standard_normal())
    if T[VAR, k] >= least_noise(arms.hyper):
        after = noise_density(T, k, w0, arms, room)
    if math.log(1.0 - rng.random()) >= after - before:
        T[VAR, k] = s2
