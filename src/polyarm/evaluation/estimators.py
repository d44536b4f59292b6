"""Estimators of a target's mean reward as functions of column means.

w  pi(a|x) / p     weight of a row: how much likelier its arm is under the target than under the log
q  (n, A)          expected rewards by a model that has not seen the row
d  sum_a pi q      what the model expects of the target in the row's context

replay    mean of the rewards that a rejection sampler keeps, row i with probability w p_min
ips       mean of w r
clipped   mean of min(w, M) r
snips     sum of w r over sum of w
direct    mean of d
dr        mean of d + w (r - q_a)
switch    mean of d + [w <= tau] w (r - q_a)

Strehl et al. 2010; Swaminathan & Joachims 2015; Dudik, Langford & Li 2011; Wang, Agarwal & Dudik 2017; Li et al. 2011.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polyarm.types import Array

MEANS = ("replay", "ips", "clipped", "snips", "direct", "dr", "switch")
WITH_MODEL = ("direct", "dr", "switch")
RATIOS = {"snips": ("ips", "weight"), "replay": ("kept reward", "kept")}


def terms(
    weights: Array,
    rewards: Array,
    expected: Array | None,
    played: Array | None,
    kept: Array,
    clip: float,
    switch: float,
) -> dict[str, Array]:
    """Columns of one target: weights (n,), rewards (n,), the model's d (n,) and q_a (n,), rows kept by replay (n,)."""
    out = {
        "weight": weights,
        "ips": weights * rewards,
        "clipped": np.minimum(weights, clip) * rewards,
        "kept": kept,
        "kept reward": kept * rewards,
    }
    if expected is not None and played is not None:
        correction = weights * (rewards - played)
        out["direct"] = expected
        out["dr"] = expected + correction
        out["switch"] = expected + np.where(weights <= switch, correction, 0.0)
    return out


class Functional(NamedTuple):
    """The mean of one column, or the ratio of two means."""

    numerator: int
    denominator: int | None

    def value(self, mean: Array) -> float:
        """Its value at column means; NaN where nothing has weight."""
        if self.denominator is None:
            return float(mean[self.numerator])
        below = mean[self.denominator]
        return float(mean[self.numerator] / below) if below > 0 else float("nan")

    def gradient(self, mean: Array) -> Array:
        """Its derivative by the column means."""
        out = np.zeros(len(mean))
        if self.denominator is None:
            out[self.numerator] = 1.0
        elif mean[self.denominator] > 0:
            out[self.numerator] = 1.0 / mean[self.denominator]
            out[self.denominator] = -self.value(mean) / mean[self.denominator]
        return out

    def parts(self, sums: Array) -> tuple[Array, Array]:
        """Columns above and below the fraction, of sums (m, k + 1) whose last column counts rows."""
        return sums[:, self.numerator], sums[:, -1 if self.denominator is None else self.denominator]


def fraction(above: Array, below: Array) -> Array:
    """Above over below; NaN where nothing has weight."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.divide(above, below))


def functional(estimator: str, columns: Sequence[str], prefix: str) -> Functional:
    """The estimator as a function of columns, which are named `prefix` + name."""
    above, below = RATIOS.get(estimator, (estimator, None))
    return Functional(columns.index(prefix + above), None if below is None else columns.index(prefix + below))
