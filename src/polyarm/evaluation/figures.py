"""Forest plot of estimates, and histogram of weights."""

import math
from typing import Any, NamedTuple

import numpy as np

from polyarm.drawing import COLOURS, WIDTH
from polyarm.errors import require_extra
from polyarm.evaluation.result import Evaluation
from polyarm.evaluation.settings import TAILS
from polyarm.evaluation.weights import EDGES
from polyarm.types import Array

MARKERS = ("o", "s", "D", "^", "v", "P", "X")


class ForestRow(NamedTuple):
    """One line of a forest plot."""

    text: str
    estimator: str
    value: float
    low: float
    high: float


def forest_rows(evaluation: Evaluation) -> tuple[list[ForestRow], list[ForestRow]]:
    """Lines of the estimates and of the differences, top to bottom; means alone, since a quantile is no mean."""
    estimates = [
        ForestRow(f"{e.target}, {e.estimator}", e.estimator, e.value, e.low, e.high)
        for e in evaluation.estimates
        if math.isfinite(e.value) and e.estimator.partition(":")[0] not in TAILS
    ]
    differences = [
        ForestRow(f"{d.target} - {d.versus}, {d.estimator}", d.estimator, d.value, d.low, d.high)
        for d in evaluation.differences
        if math.isfinite(d.value)
    ]
    return estimates, differences


def forest_figure(evaluation: Evaluation) -> Any:
    """Estimates with their intervals, and below them the differences."""
    groups = [rows for rows in forest_rows(evaluation) if rows]
    module = require_extra("matplotlib.figure", "figures")
    heights = [0.34 * len(rows) + 0.9 for rows in groups]
    figure = module.Figure(figsize=(1.5 * WIDTH, sum(heights) + 0.4), layout="constrained")
    panels = figure.subplots(len(groups), 1, squeeze=False, height_ratios=heights)[:, 0]
    estimators = list(dict.fromkeys(row.estimator for rows in groups for row in rows))
    for panel, rows, title in zip(panels, groups, ("value of the target", "difference"), strict=False):
        draw_forest(panel, rows, estimators)
        panel.set_xlabel(title)
    if len(groups) > 1:
        panels[1].axvline(0.0, color="#444444", linewidth=0.8, linestyle=":")
    figure.suptitle(f"{evaluation.log.n_used} rows, {100 * evaluation.level:g} % intervals", fontsize="medium")
    return figure


def draw_forest(axes: Any, rows: list[ForestRow], estimators: list[str]) -> None:
    """One line per estimate; an arrow where an interval has no end."""
    finite = [x for row in rows for x in (row.value, row.low, row.high) if math.isfinite(x)]
    span = (max(finite) - min(finite)) or 1.0
    left, right = min(finite) - 0.05 * span, max(finite) + 0.05 * span
    for y, row in enumerate(rows):
        position = estimators.index(row.estimator)
        colour = COLOURS[position % len(COLOURS)]
        low, high = max(row.low, left), min(row.high, right)
        axes.plot([low, high], [y, y], color=colour, linewidth=1.8, solid_capstyle="butt")
        axes.plot(row.value, y, MARKERS[position % len(MARKERS)], color=colour, markersize=6)
        for at, marker, open_end in ((low, "<", row.low < left), (high, ">", row.high > right)):
            if open_end:
                axes.plot(at, y, marker, color=colour, markersize=6, clip_on=False)
    axes.set_yticks(range(len(rows)), [row.text for row in rows], fontsize="small")
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(left, right)
    axes.grid(axis="x", alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)


class Histogram(NamedTuple):
    """Counts of positive weights between edges, and the number of weights that are 0."""

    edges: Array
    counts: Array
    n_zero: int


def weight_histogram(evaluation: Evaluation, target: str) -> Histogram:
    """Histogram of one target's weights, cut to where there are any."""
    weights = evaluation.weights[target]
    counts = weights.counts.astype(np.float64)
    counts[0] -= weights.n_zero  # zeros lie below the first edge
    edges = np.concatenate([[EDGES[0] / 10], EDGES, [EDGES[-1] * 10]])
    used = np.flatnonzero(counts)
    if not len(used):
        return Histogram(np.array([0.1, 10.0]), np.zeros(1), weights.n_zero)
    first, last = max(used[0] - 2, 0), min(used[-1] + 3, len(counts))
    return Histogram(edges[first : last + 1], counts[first:last], weights.n_zero)


def weights_figure(evaluation: Evaluation) -> Any:
    """How the weights of every target are spread: few large ones mean that few rows decide."""
    module = require_extra("matplotlib.figure", "figures")
    n = len(evaluation.targets)
    figure = module.Figure(figsize=(1.3 * WIDTH, 2.3 * n + 0.3), layout="constrained")
    for axes, diagnosis in zip(figure.subplots(n, 1, squeeze=False)[:, 0], evaluation.targets, strict=True):
        shown = weight_histogram(evaluation, diagnosis.target)
        axes.stairs(shown.counts, shown.edges, fill=True, color=COLOURS[0], alpha=0.7)
        axes.axvline(1.0, color="#444444", linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.set_xlim(min(shown.edges[0], 0.1), max(shown.edges[-1], 10.0))
        axes.set(ylabel="rows", xlabel="weight")
        zeros = f", {shown.n_zero} of weight 0" if shown.n_zero else ""
        axes.set_title(
            f"{diagnosis.target}: {diagnosis.n} rows{zeros}, worth {diagnosis.effective:.0f}", fontsize="medium"
        )
        axes.spines[["top", "right"]].set_visible(False)
    return figure
