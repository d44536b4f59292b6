"""Intervals for a mean, a ratio of means, and differences of such."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special

from polyarm.types import Array, Rng

INTERVALS = ("normal", "bootstrap", "empirical-bernstein", "betting")
N_RESAMPLES = 999


class Interval(NamedTuple):
    """Bounds that hold the truth with the asked-for probability."""

    low: float
    high: float


NOWHERE = Interval(-math.inf, math.inf)


def normal_quantile(level: float) -> float:
    """Standard errors on either side that hold a share `level` of a normal distribution."""
    return float(special.ndtri(0.5 + 0.5 * level))


def normal(value: float, se: float, level: float) -> Interval:
    """Value and standard error as if normal."""
    reach = normal_quantile(level) * se
    return Interval(value - reach, value + reach)


def bootstrap(columns: Sequence[Array], statistic: Callable[..., Array], level: float, rng: Rng) -> Interval:
    """Percentile bootstrap of a function of the columns' sums, by resampling rows.

    The bias-corrected and accelerated one held 90 to 93 % instead of 95 % under heavy tails (docs/explanation).
    """
    from scipy import stats  # takes a while to load, and only this needs it

    value = float(statistic(*(column.sum() for column in columns)))
    if len(columns[0]) < 2 or not math.isfinite(value):
        return NOWHERE

    def vectorised(*resampled: Array, axis: int = -1) -> Array:
        return statistic(*(column.sum(axis=axis) for column in resampled))

    options: dict[str, Any] = {"paired": True, "vectorized": True, "n_resamples": N_RESAMPLES, "batch": 100}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)  # where all rows are alike the interval is a point
        found = stats.bootstrap(
            columns, vectorised, method="percentile", confidence_level=level, random_state=rng, **options
        )
    low, high = (float(bound) for bound in found.confidence_interval)
    return Interval(low, high) if math.isfinite(low) and math.isfinite(high) else NOWHERE


def reach_of_bernstein(variance: float, n: int, width: float, level: float) -> float:
    """Half-width of the empirical Bernstein interval of a mean of n values in a range (Maurer & Pontil 2009, th. 4)."""
    if n < 2:
        return math.inf
    log_term = math.log(4 / (1 - level))
    return math.sqrt(2 * variance * log_term / n) + 7 * width * log_term / (3 * (n - 1))


def bernstein_mean(mean: float, variance: float, n: int, width: float, level: float) -> Interval:
    """Empirical Bernstein interval of a mean."""
    reach = reach_of_bernstein(variance, n, width, level)
    return Interval(mean - reach, mean + reach)


def bernstein_ratio(mean: Array, covariance: Array, n: int, width: float, limits: Interval, level: float) -> Interval:
    """Every v in the limits for which E[u - v w] = 0 is not rejected; columns u, w, and u - v w in a range `width`."""

    def excess(v: float) -> float:
        slope = np.array([1.0, -v])
        variance = float(slope @ covariance @ slope)
        return abs(float(slope @ mean)) - reach_of_bernstein(max(variance, 0.0), n, width, level)

    centre = float(mean[0] / mean[1]) if mean[1] > 0 else math.nan
    if not math.isfinite(centre) or n < 2:
        return limits
    centre = min(max(centre, limits.low), limits.high)
    low = limits.low if excess(limits.low) <= 0 else optimize.brentq(excess, limits.low, centre)
    high = limits.high if excess(limits.high) <= 0 else optimize.brentq(excess, centre, limits.high)
    return Interval(float(low), float(high))
