"""What a reward is worth: functionals of a finite mixture of normal components and single values.

parts   weight w, mean m and variance s^2 of every component, (room,) each; variance 0 makes it a single value
n       components in use; their weights W = sum w need not be one
F(y)    P(Y <= y) = sum w Phi((y - m) / s) / W
p, z    level of a quantile or shortfall, and the standard normal quantile of that level

mean        sum w m / W
quantile    smallest y with F(y) >= p
shortfall   mean of the worst share p: q + E[min(Y - q, 0)] / p at the quantile q, whatever mass is at q,
            with E[min(Y - q, 0)] = sum w ((m - q) Phi(u) - s phi(u)) / W and u = (q - m) / s
above       P(Y > v)
utility     certainty equivalent of -exp(-r Y): -log(sum w exp(-r m + r^2 s^2 / 2) / W) / r
"""

import math
from typing import NamedTuple

from polyarm.kernels._jit import inlined, kernel
from polyarm.types import Array

EXPECTATION, QUANTILE, SHORTFALL, ABOVE, UTILITY = 0, 1, 2, 3, 4
MOST_STEPS = 200
ROOT_2, ROOT_2_PI = math.sqrt(2.0), math.sqrt(2.0 * math.pi)


class Parts(NamedTuple):
    """Components of a mixture: weights, means and variances, with room to spare."""

    weight: Array
    mean: Array
    variance: Array


class Functional(NamedTuple):
    """An objective as kernels take it: its kind, its number (p, v or r), and z where there is a p."""

    kind: int
    number: float
    score: float


@inlined
def below(parts: Parts, n: int, y: float) -> tuple[float, float]:
    """W F(y), and W times the density of the normal components at y."""
    share, density = 0.0, 0.0
    for k in range(n):
        if parts.variance[k] > 0.0:
            s = math.sqrt(parts.variance[k])
            u = (y - parts.mean[k]) / s
            share += parts.weight[k] * 0.5 * math.erfc(-u / ROOT_2)
            density += parts.weight[k] * math.exp(-0.5 * u * u) / (s * ROOT_2_PI)
        elif parts.mean[k] <= y:
            share += parts.weight[k]
    return share, density


@inlined
def total_weight(parts: Parts, n: int) -> float:
    """The weights' sum W."""
    total = 0.0
    for k in range(n):
        total += parts.weight[k]
    return total


@inlined
def quantile(parts: Parts, n: int, p: float, z: float) -> float:
    """The quantile, between the lowest and the highest of the components': Newton steps, halvings where they fail."""
    low, high, y, total = math.inf, -math.inf, 0.0, 0.0
    for k in range(n):
        if parts.weight[k] > 0.0:
            own = parts.mean[k] + math.sqrt(parts.variance[k]) * z
            low, high = min(low, own), max(high, own)
            y += parts.weight[k] * own
            total += parts.weight[k]
    aim = p * total
    tiny = 1e-12 * (high - low) + 4e-16 * max(abs(low), abs(high))
    y, before, moved = min(max(y / total, low), high), high - low, high - low
    for _ in range(MOST_STEPS):
        if moved <= tiny:
            break
        share, density = below(parts, n, y)
        if share >= aim:
            high = y
        else:
            low = y
        jump = (share - aim) / density if density > 0.0 else math.inf
        there = y - jump
        if not (low < there < high) or abs(jump) > 0.5 * before:
            there = 0.5 * (low + high)
        before = moved
        moved = abs(there - y)
        y = there
    return y


@inlined
def shortfall(parts: Parts, n: int, p: float, z: float) -> float:
    """Mean of the worst share p."""
    q = quantile(parts, n, p, z)
    aim = p * total_weight(parts, n)
    value = 0.0
    for k in range(n):
        if parts.variance[k] > 0.0:
            s = math.sqrt(parts.variance[k])
            u = (q - parts.mean[k]) / s
            share = 0.5 * math.erfc(-u / ROOT_2)
            value += parts.weight[k] * ((parts.mean[k] - q) * share - s * math.exp(-0.5 * u * u) / ROOT_2_PI)
        elif parts.mean[k] <= q:
            value += parts.weight[k] * (parts.mean[k] - q)
    return q + value / aim


@inlined
def above(parts: Parts, n: int, v: float) -> float:
    """Probability of a reward above v."""
    value = 0.0
    for k in range(n):
        if parts.variance[k] > 0.0:
            value += parts.weight[k] * 0.5 * math.erfc((v - parts.mean[k]) / (ROOT_2 * math.sqrt(parts.variance[k])))
        elif parts.mean[k] > v:
            value += parts.weight[k]
    return value / total_weight(parts, n)


@inlined
def certainty_equivalent(parts: Parts, n: int, r: float) -> float:
    """The sure reward of the same exponential utility, at risk aversion r."""
    top, value = -math.inf, 0.0
    for k in range(n):
        if parts.weight[k] > 0.0:
            top = max(top, r * (0.5 * r * parts.variance[k] - parts.mean[k]))
    for k in range(n):
        if parts.weight[k] > 0.0:
            value += parts.weight[k] * math.exp(r * (0.5 * r * parts.variance[k] - parts.mean[k]) - top)
    return -(top + math.log(value / total_weight(parts, n))) / r


@kernel
def worth(parts: Parts, n: int, functional: Functional) -> float:
    """Value of the mixture of the first n parts."""
    if functional.kind == QUANTILE:
        return quantile(parts, n, functional.number, functional.score)
    if functional.kind == SHORTFALL:
        return shortfall(parts, n, functional.number, functional.score)
    if functional.kind == ABOVE:
        return above(parts, n, functional.number)
    if functional.kind == UTILITY:
        return certainty_equivalent(parts, n, functional.number)
    value = 0.0
    for k in range(n):
        value += parts.weight[k] * parts.mean[k]
    return value / total_weight(parts, n)


@kernel
def worth_of_rows(weight: Array, mean: Array, variance: Array, functional: Functional, out: Array) -> None:
    """Fill out (rows,) with the values of mixtures (rows, components)."""
    for row in range(out.shape[0]):
        out[row] = worth(Parts(weight[row], mean[row], variance[row]), weight.shape[1], functional)
