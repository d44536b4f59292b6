"""Concentration and discount drawn given the seating, shared by all arms.

K_a, n_a   components and rewards of arm a (n_a is soft when rewards fade)
c          concentration, prior Gamma(shape, rate)
d          discount, prior Beta(alpha, beta) cut off at MOST
laws       (A, 4)  a0, b0, c, d of every arm;  beliefs (4,)  shape, rate, alpha, beta

d = 0:  eta_a ~ Beta(c + 1, n_a),  s_a ~ Bernoulli(n_a / (n_a + c)),
        c ~ Gamma(shape + sum K_a - sum s_a, rate - sum log eta_a)                       (Escobar & West 1995)
d > 0:  slices of  sum_a log EPPF(c, d) + log prior  in log c and in logit d              (Neal 2003)
"""

import math

from polyarm.kernels._jit import Stream, generator, kernel
from polyarm.kernels.component import COUNT, refresh
from polyarm.kernels.means import n_held
from polyarm.kernels.seating import log_partition
from polyarm.types import Array, IntArray, Rng

MOST = 0.95  # a larger discount makes stick-breaking endless
STEP = 1.5  # first width of a slice in log c or logit d
MAX_STEPS = 30
CLOSED = 1e-12  # a slice this narrow holds nothing but the point itself


@kernel
def draw_concentration(c: float, shape: float, rate: float, tables: Array, sizes: IntArray, rng: Rng) -> float:
    """Escobar and West's draw of c for discount 0."""
    for arm in range(sizes.shape[0]):
        K = sizes[arm, 0]
        if K > 0:
            n = n_held(tables[arm], K)
            rate -= math.log(rng.beta(c + 1.0, n))
            shape += K - (1.0 if rng.random() * (n + c) < n else 0.0)
    return rng.standard_gamma(shape) / rate


@kernel
def log_target(c: float, d: float, beliefs: Array, tables: Array, sizes: IntArray) -> float:
    """Log density of (log c, logit d) given the seating; a term that is not learned is a constant."""
    if not (0.0 <= d < MOST and c > 0.0):
        return -math.inf
    total = beliefs[0] * math.log(c) - beliefs[1] * c
    if d > 0.0:
        total += beliefs[2] * math.log(d) + beliefs[3] * math.log1p(-d)
    for arm in range(sizes.shape[0]):
        if sizes[arm, 0] > 0:
            total += log_partition(tables[arm, COUNT], sizes[arm, 0], c, d)
    return total


@kernel
def target_at(u: float, of_discount: bool, c: float, d: float, beliefs: Array, tables: Array, sizes: IntArray) -> float:
    """The target where u is the new log c or logit d."""
    if of_discount:
        return log_target(c, 1.0 / (1.0 + math.exp(-u)), beliefs, tables, sizes)
    return log_target(math.exp(u), d, beliefs, tables, sizes)


@kernel
def draw_slice(
    u: float, of_discount: bool, c: float, d: float, beliefs: Array, tables: Array, sizes: IntArray, rng: Rng
) -> float:
    """A slice move of u, by stepping out and shrinking in."""
    level = target_at(u, of_discount, c, d, beliefs, tables, sizes) + math.log(rng.random())
    low = u - STEP * rng.random()
    high = low + STEP
    up = int(rng.random() * MAX_STEPS)
    for _ in range(MAX_STEPS - 1 - up):
        if target_at(low, of_discount, c, d, beliefs, tables, sizes) <= level:
            break
        low -= STEP
    for _ in range(up):
        if target_at(high, of_discount, c, d, beliefs, tables, sizes) <= level:
            break
        high += STEP
    while True:
        new = low + (high - low) * rng.random()
        if target_at(new, of_discount, c, d, beliefs, tables, sizes) > level:
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
    laws: Array,
    beliefs: Array,
    learn_concentration: bool,
    learn_discount: bool,
    source: Stream,
) -> None:
    """Draw the learned ones of concentration and discount again, for all arms."""
    rng = generator(source)
    c, d = laws[0, 2], laws[0, 3]
    if learn_concentration:
        if d == 0.0:
            c = draw_concentration(c, beliefs[0], beliefs[1], tables, sizes, rng)
        else:
            c = math.exp(draw_slice(math.log(c), False, c, d, beliefs, tables, sizes, rng))
    if learn_discount:
        d = 1.0 / (1.0 + math.exp(-draw_slice(math.log(d / (1.0 - d)), True, c, d, beliefs, tables, sizes, rng)))
    for arm in range(sizes.shape[0]):
        laws[arm, 2] = c
        laws[arm, 3] = d
        if learn_discount:
            for k in range(sizes[arm, 0]):
                refresh(tables[arm], k, laws[arm, 0], d)
