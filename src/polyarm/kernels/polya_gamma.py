"""Exact draws from the Pólya-Gamma distribution PG(1, z) (Polson, Scott & Windle 2013; Devroye 2009).

omega ~ PG(1, z) = X / 4, where X has the density cosh(c) exp(-c^2 x / 2) sum_n (-1)^n a_n(x), c = |z| / 2.
a_n(x)   terms of the series, falling in n for every x, with one form on either side of CUT
E[omega] = tanh(z / 2) / (2 z)
X is proposed from a_0: an inverse normal cut off on the right of CUT, or an exponential beyond it.  The partial sums
bound the density from above and below in turn, so a proposal is accepted or rejected after finitely many terms,
exactly, and almost always after one.
"""

import math

from polyarm.kernels._jit import RngHandle, kernel, no_refcount, rng_from
from polyarm.types import Array, Rng

CUT = 0.64  # the authors' choice: any value between 0.2 and 1.6 keeps both forms falling
LARGE = 25.0  # from here on six terms give the scaled error function to all digits
CERTAIN = 1e40  # of |z|: from here on a draw is its mean to all digits, and the series' terms are soon no numbers


@no_refcount
def scaled_erfc(x: float) -> float:
    """exp(x^2) erfc(x) for x >= 0."""
    if x < LARGE:
        return math.exp(x * x) * math.erfc(x)
    u = 0.5 / (x * x)
    return (1.0 - u * (1.0 - 3.0 * u * (1.0 - 5.0 * u * (1.0 - 7.0 * u * (1.0 - 9.0 * u))))) / (x * math.sqrt(math.pi))


@no_refcount
def share_beyond(c: float) -> float:
    """Probability that the proposal lies beyond CUT."""
    rate = math.pi**2 / 8.0 + 0.5 * c * c
    width = math.sqrt(2.0 * CUT)
    near = math.exp(CUT * math.pi**2 / 8.0 - 0.5 / CUT)
    mass = near * scaled_erfc((CUT * c + 1.0) / width)
    low = (CUT * c - 1.0) / width
    if low < 0.0:
        mass += near * scaled_erfc(-low)
    else:
        mass += math.exp(rate * CUT - c) * math.erfc(-low)  # may be inf: then no proposal lies beyond
    return 1.0 / (1.0 + 2.0 / math.pi * rate * mass)


@no_refcount
def draw_inverse_normal(c: float, rng: Rng) -> float:
    """An inverse normal variable with mean 1 / c and shape 1, given that it is at most CUT."""
    if c * CUT < 1.0:
        while True:
            first, second = rng.standard_exponential(), rng.standard_exponential()
            while first * first > 2.0 * second / CUT:
                first, second = rng.standard_exponential(), rng.standard_exponential()
            x = CUT / (1.0 + CUT * first) ** 2
            if rng.random() <= math.exp(-0.5 * c * c * x):
                return x
    mean = 1.0 / c
    x = 2.0 * CUT
    while x > CUT:
        y = rng.standard_normal()
        half = 0.5 * mean * y * y
        x = mean / (1.0 + half + math.sqrt(half * (2.0 + half)))
        if rng.random() * (mean + x) > mean:
            x = mean * mean / x
    return x


@no_refcount
def term(n: int, x: float) -> float:
    """The series' term a_n(x)."""
    k = n + 0.5
    if x > CUT:
        return math.pi * k * math.exp(-0.5 * (math.pi * k) ** 2 * x)
    return math.pi * k * (2.0 / (math.pi * x)) ** 1.5 * math.exp(-2.0 * k * k / x)


@no_refcount
def draw(z: float, rng: Rng) -> float:
    """A draw from PG(1, z)."""
    if not abs(z) < CERTAIN:
        return 0.5 / abs(z)
    c = 0.5 * abs(z)
    beyond = share_beyond(c)
    while True:
        if rng.random() < beyond:
            x = CUT + rng.standard_exponential() / (math.pi**2 / 8.0 + 0.5 * c * c)
        else:
            x = draw_inverse_normal(c, rng)
        partial = term(0, x)
        level = rng.random() * partial
        n = 0
        while True:
            n += 1
            if n % 2 == 1:
                partial -= term(n, x)
                if level <= partial:
                    return 0.25 * x
            else:
                partial += term(n, x)
                if level > partial:
                    break


@kernel
def fill(z: Array, out: Array, handle: RngHandle) -> None:
    """Fill out with draws from PG(1, z), one for each z."""
    rng = rng_from(handle)
    for i in range(z.shape[0]):
        out[i] = draw(z[i], rng)
