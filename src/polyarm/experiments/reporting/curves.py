"""Numbers behind the curves over time."""

from typing import NamedTuple

import numpy as np

from polyarm.experiments.running.results import Results
from polyarm.types import Array, IntArray


class Curve(NamedTuple):
    """One line of a figure with the band around it."""

    label: str
    steps: IntArray
    mean: Array
    low: Array
    high: Array


def regret_curves(results: Results, column: str = "regret", band: str = "ci") -> list[Curve]:
    """Mean cumulative regret of every policy; the band is one `std`, or the 95 % interval `ci` of the mean."""
    return [_curve(label, results.steps, results.curves(label, column), band) for label in results.labels]


def optimal_curves(results: Results, n_points: int = 40) -> list[Curve]:
    """Share of best-arm plays between one point in time and the next."""
    at = np.unique(np.searchsorted(results.steps, np.linspace(0, results.horizon, n_points + 1)[1:]))
    steps = results.steps[at]
    return [
        _curve(
            label, steps, np.diff(results.curves(label, "optimal_plays")[:, at], prepend=0) / np.diff(steps, prepend=0)
        )
        for label in results.labels
    ]


def _curve(label: str, steps: IntArray, values: Array, band: str = "ci") -> Curve:
    mean = values.mean(axis=0)
    std = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros_like(mean)
    half = std if band == "std" else 1.96 * std / len(values) ** 0.5
    return Curve(label, steps, mean, mean - half, mean + half)
