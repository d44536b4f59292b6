"""Intervals of estimators and of differences, from what one pass over the log has kept."""

import math
from typing import NamedTuple

import numpy as np

from polyarm.evaluation.betting import ConfidenceSequence
from polyarm.evaluation.estimators import RATIOS, Functional, fraction
from polyarm.evaluation.intervals import (
    NOWHERE,
    Interval,
    bernstein_mean,
    bernstein_ratio,
    bootstrap,
    normal,
)
from polyarm.evaluation.moments import Blocks, Moments
from polyarm.types import Array, Rng


class Limits(NamedTuple):
    """A-priori knowledge: the rewards' range, the largest weight, the clipping level."""

    rewards: Interval
    largest_weight: float
    clip: float

    @property
    def width(self) -> float:
        """Length of the rewards' range."""
        return self.rewards.high - self.rewards.low

    def column_width(self, column: str) -> float:
        """Length of the range that a column of the estimators keeps to."""
        around_zero = max(self.rewards.high, 0.0) - min(self.rewards.low, 0.0)
        return {
            "reward": self.width,
            "ips": self.largest_weight * around_zero,
            "clipped": min(self.largest_weight, self.clip) * around_zero,
            "snips": self.largest_weight * self.width,
            "replay": self.width,
            "dr": (2 * self.largest_weight - 1) * self.width,
        }.get(column, math.inf)


class Quantity(NamedTuple):
    """An estimator of a target: its name and the columns it is made of."""

    estimator: str
    functional: Functional

    def value(self, mean: Array) -> float:
        """Its value."""
        return self.functional.value(mean)


def difference_of_fractions(above: Array, below: Array, other_above: Array, other_below: Array) -> Array:
    """One fraction less another."""
    return fraction(above, below) - fraction(other_above, other_below)


def standard_error(moments: Moments, gradient: Array) -> float:
    """Standard error of a smooth function of column means (delta method)."""
    variance = float(gradient @ moments.covariance() @ gradient)
    return math.sqrt(max(variance, 0.0) / moments.n) if moments.n > 1 else math.inf


def bernstein(quantity: Quantity, moments: Moments, limits: Limits, level: float) -> Interval | None:
    """Empirical Bernstein interval of one estimator; None where there is none."""
    width = limits.column_width(quantity.estimator)
    if not math.isfinite(width):
        return None
    above, below = quantity.functional
    covariance = moments.covariance()
    if quantity.estimator in RATIOS and below is not None:
        pick = np.array([above, below])
        part = covariance[np.ix_(pick, pick)]
        return bernstein_ratio(moments.mean[pick], part, moments.n, width, limits.rewards, level)
    found = bernstein_mean(float(moments.mean[above]), float(covariance[above, above]), moments.n, width, level)
    if quantity.estimator == "clipped":
        return found
    return Interval(max(found.low, limits.rewards.low), min(found.high, limits.rewards.high))


def bernstein_difference(
    first: Quantity, second: Quantity, moments: Moments, limits: Limits, level: float
) -> tuple[Interval, str]:
    """Empirical Bernstein interval of the mean of paired differences; "none" where a column has no range."""
    width = limits.column_width(first.estimator) + limits.column_width(second.estimator)
    if not math.isfinite(width):
        return NOWHERE, "none"
    slope = first.functional.gradient(moments.mean) - second.functional.gradient(moments.mean)
    variance = float(slope @ moments.covariance() @ slope)
    found = bernstein_mean(float(slope @ moments.mean), max(variance, 0.0), moments.n, width, level)
    return found, "empirical-bernstein"


def interval_of(
    quantity: Quantity,
    moments: Moments,
    blocks: Blocks | None,
    sequence: ConfidenceSequence | None,
    limits: Limits,
    method: str,
    level: float,
    rng: Rng,
) -> tuple[Interval, str]:
    """Interval of one estimator and the name of the method, "none" where the one asked for does not apply."""
    value = quantity.value(moments.mean)
    if not math.isfinite(value):
        return NOWHERE, "none"
    if method == "normal":
        return normal(value, standard_error(moments, quantity.functional.gradient(moments.mean)), level), method
    if method == "bootstrap" and blocks is not None:
        return bootstrap(quantity.functional.parts(blocks.used()), fraction, level, rng), method
    found = sequence.interval() if sequence else None
    if method == "empirical-bernstein":
        found = bernstein(quantity, moments, limits, level)
    return (NOWHERE, "none") if found is None else (found, method)


def difference_of(
    first: Quantity,
    second: Quantity,
    moments: Moments,
    blocks: Blocks | None,
    sequence: ConfidenceSequence | None,
    limits: Limits,
    method: str,
    level: float,
    rng: Rng,
) -> tuple[Interval, str]:
    """Interval of the difference of two estimators on the same rows."""
    value = first.value(moments.mean) - second.value(moments.mean)
    if not math.isfinite(value):
        return NOWHERE, "none"
    if method == "normal":
        gradient = first.functional.gradient(moments.mean) - second.functional.gradient(moments.mean)
        return normal(value, standard_error(moments, gradient), level), method
    if method == "bootstrap" and blocks is not None:
        columns = (*first.functional.parts(blocks.used()), *second.functional.parts(blocks.used()))
        return bootstrap(columns, difference_of_fractions, level, rng), method
    if method == "empirical-bernstein":
        if first.functional.denominator is None and second.functional.denominator is None:
            return bernstein_difference(first, second, moments, limits, level)
        halves = [bernstein(each, moments, limits, 0.5 + 0.5 * level) for each in (first, second)]
        a, b = halves
        return (NOWHERE, "none") if a is None or b is None else (Interval(a.low - b.high, a.high - b.low), method)
    found = sequence.interval() if sequence else None
    return (NOWHERE, "none") if found is None else (found, method)
