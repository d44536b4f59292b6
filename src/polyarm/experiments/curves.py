"""Numbers behind the curves over time."""

from typing import NamedTuple

import numpy as np

from polyarm.experiments.results import Results
from polyarm.types import Array, IntArray


class Curve(NamedTuple):
    """One line of a figure with the band around it."""

    label: str
    steps: IntArray
    mean: Array
    low: Array
    high: Array


def regret_curves(results: Results, column: str = "regret", band: str = "std") -> list[Curve]:
    """Mean cumulative regret of every policy; the band is one `std`, or the 5 to 95 % `quantiles`."""
    return [_curve(label, results.steps, results.curves(label, column), band) for label in results.labels]


def optimal_curves(results: Results) -> list[Curve]:
    """Share of realisations that play the best arm, between one checkpoint and the next."""
    return [_optimal_curve(label, results) for label in results.labels]


def _curve(label: str, steps: IntArray, values: Array, band: str) -> Curve:
    mean = values.mean(axis=0)
    if band == "quantiles":
        low, high = np.quantile(values, [0.05, 0.95], axis=0)
    else:
        std = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros_like(mean)
        low, high = mean - std, mean + std
    return Curve(label, steps, mean, low, high)


def _optimal_curve(label: str, results: Results) -> Curve:
    plays = results.curves(label, "optimal_plays")
    share = np.diff(plays, axis=1, prepend=0) / np.diff(results.steps, prepend=0)
    mean = share.mean(axis=0)
    se = share.std(axis=0, ddof=1) / len(share) ** 0.5 if len(share) > 1 else np.zeros_like(mean)
    return Curve(label, results.steps, mean, mean - se, mean + se)


def arm_shares(results: Results, label: str) -> Array:
    """Mean share of each arm in the plays so far, (checkpoints, arms)."""
    return np.asarray(results.curves(label, "plays").mean(axis=0) / results.steps[:, None])
