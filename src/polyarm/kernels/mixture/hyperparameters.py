"""Concentration, discount and scale of the base measure drawn given the seating, shared by all arms.

K_a, n_a   components and rewards of arm a (n_a is soft when rewards fade)
c          concentration, prior Gamma(shape, rate)
d          discount, prior Beta(alpha, beta) cut off at MOST
b          scale b0 of the base measure's inverse gamma, prior Gamma(shape, rate);  component k has scale b + D_k
processes  (A, 4)  a0, b, c, d of every arm;  hyperprior (6,)  shape, rate, alpha, beta, shape of b, rate of b
which      what a slice moves: CONCENTRATION (in log c), DISCOUNT (in logit d) or BASE_SCALE (in log b)

d = 0:  eta_a ~ Beta(c + 1, n_a),  s_a ~ Bernoulli(n_a / (n_a + c)),
        c ~ Gamma(shape + sum K_a - sum s_a, rate - sum log eta_a)                       (Escobar & West 1995)
d > 0:  slices of  sum_a log EPPF(c, d) + log prior  in log c and in logit d              (Neal 2003)
b:      a slice of  sum_k [a0 log b - (a0 + n_k/2) log(b + D_k)] + log prior  in log b, noise variances integrated out
"""

import math

from polyarm.kernels._jit import RngHandle, kernel, rng_from
from polyarm.kernels.mixture.component import (
    COUNT,
    DISCOUNT,
    GAMMA,
    NOISE,
    SCALE,
    SHAPE,
    cache_constants,
    prior_log_predictive,
)
from polyarm.kernels.mixture.means import n_held
from polyarm.kernels.mixture.records import K_USED
from polyarm.kernels.mixture.seating import log_partition
from polyarm.types import Array, IntArray, Rng

C_SHAPE, C_RATE, D_ALPHA, D_BETA, B_SHAPE, B_RATE = 0, 1, 2, 3, 4, 5  # entries of a hyperprior
OF_CONCENTRATION, OF_DISCOUNT, OF_SCALE = 0, 1, 2  # what a slice is drawn of
MOST = 0.95  # a larger discount makes stick-breaking endless
STEP = 1.5  # first width of a slice in log c, logit d or log b
MAX_STEPS = 30
CLOSED = 1e-12  # a slice this narrow holds nothing but the point itself


@kernel
def draw_concentration(c: float, shape: float, rate: float, tables: Array, sizes: IntArray, rng: Rng) -> float:
    """Escobar and West's draw of c for discount 0."""
    for arm in range(sizes.shape[0]):
        K = sizes[arm, K_USED]
        if K > 0:
            n = n_held(tables[arm], K)
            rate -= math.log(rng.beta(c + 1.0, n))
            shape += K - (1.0 if rng.random() * (n + c) < n else 0.0)
    return rng.standard_gamma(shape) / rate


@kernel
def log_target(c: float, d: float, hyperprior: Array, tables: Array, sizes: IntArray) -> float:
    """Log density of (log c, logit d) given the seating; a term that is not learned is a constant."""
    if not (0.0 <= d < MOST and c > 0.0):
        return -math.inf
    total = hyperprior[C_SHAPE] * math.log(c) - hyperprior[C_RATE] * c
    if d > 0.0:
        total += hyperprior[D_ALPHA] * math.log(d) + hyperprior[D_BETA] * math.log1p(-d)
    for arm in range(sizes.shape[0]):
        if sizes[arm, K_USED] > 0:
            total += log_partition(tables[arm, COUNT], sizes[arm, K_USED], c, d)
    return total


@kernel
def log_scale_target(b: float, hyperprior: Array, processes: Array, tables: Array, sizes: IntArray) -> float:
    """Log density of log b given the seating; tables hold the scales of the present b."""
    total = hyperprior[B_SHAPE] * math.log(b) - hyperprior[B_RATE] * b
    for arm in range(sizes.shape[0]):
        a0 = processes[arm, SHAPE]
        for k in range(sizes[arm, K_USED]):
            D = max(tables[arm, SCALE, k] - processes[arm, NOISE], 0.0)
            total += a0 * math.log(b) - (a0 + 0.5 * tables[arm, COUNT, k]) * math.log(b + D)
    return total


@kernel
def target_at(u: float, which: int, hyperprior: Array, processes: Array, tables: Array, sizes: IntArray) -> float:
    """The target where u is the new log c, logit d or log b and the others are as in processes."""
    if which == OF_SCALE:
        return log_scale_target(math.exp(u), hyperprior, processes, tables, sizes)
    if which == OF_DISCOUNT:
        return log_target(processes[0, GAMMA], 1.0 / (1.0 + math.exp(-u)), hyperprior, tables, sizes)
    return log_target(math.exp(u), processes[0, DISCOUNT], hyperprior, tables, sizes)


@kernel
def draw_slice(
    u: float, which: int, hyperprior: Array, processes: Array, tables: Array, sizes: IntArray, rng: Rng
) -> float:
    """A slice move of u, by stepping out and shrinking in."""
    level = target_at(u, which, hyperprior, processes, tables, sizes) + math.log(rng.random())
    low = u - STEP * rng.random()
    high = low + STEP
    up = int(rng.random() * MAX_STEPS)
    for _ in range(MAX_STEPS - 1 - up):
        if target_at(low, which, hyperprior, processes, tables, sizes) <= level:
            break
        low -= STEP
    for _ in range(up):
        if target_at(high, which, hyperprior, processes, tables, sizes) <= level:
            break
        high += STEP
    while True:
        new = low + (high - low) * rng.random()
        if target_at(new, which, hyperprior, processes, tables, sizes) > level:
            return new
        if high - low < CLOSED:
            return u
        if new < u:
            low = new
        else:
            high = new


@kernel
def redraw(
    tables: Array,
    sizes: IntArray,
    processes: Array,
    hyperprior: Array,
    learn_concentration: bool,
    learn_discount: bool,
    handle: RngHandle,
) -> None:
    """Draw the learned ones of concentration and discount again, for all arms."""
    rng = rng_from(handle)
    if learn_concentration:
        c = processes[0, GAMMA]
        if processes[0, DISCOUNT] == 0.0:
            processes[:, GAMMA] = draw_concentration(c, hyperprior[C_SHAPE], hyperprior[C_RATE], tables, sizes, rng)
        else:
            processes[:, GAMMA] = math.exp(
                draw_slice(math.log(c), OF_CONCENTRATION, hyperprior, processes, tables, sizes, rng)
            )
    if learn_discount:
        d = processes[0, DISCOUNT]
        u = draw_slice(math.log(d / (1.0 - d)), OF_DISCOUNT, hyperprior, processes, tables, sizes, rng)
        processes[:, DISCOUNT] = 1.0 / (1.0 + math.exp(-u))
        for arm in range(sizes.shape[0]):
            for k in range(sizes[arm, K_USED]):
                cache_constants(tables[arm], k, processes[arm, SHAPE], processes[arm, DISCOUNT])


@kernel
def redraw_scale(tables: Array, sizes: IntArray, processes: Array, hyperprior: Array, handle: RngHandle) -> None:
    """Draw the scale of the base measure again, for all arms; the rewards' prior densities are then out of date."""
    u = draw_slice(math.log(processes[0, NOISE]), OF_SCALE, hyperprior, processes, tables, sizes, rng_from(handle))
    b = math.exp(u)
    for arm in range(sizes.shape[0]):
        for k in range(sizes[arm, K_USED]):
            tables[arm, SCALE, k] = b + max(tables[arm, SCALE, k] - processes[arm, NOISE], 0.0)
            cache_constants(tables[arm], k, processes[arm, SHAPE], processes[arm, DISCOUNT])
        processes[arm, NOISE] = b


@kernel
def rate_rewards(data: Array, n: int, prior: Array, a0: float) -> None:
    """Write anew what the prior says of the first n rewards of an arm (layout of gibbs.py)."""
    for i in range(n):
        data[i, data.shape[1] - 1] = prior_log_predictive(prior, a0, data, i)
