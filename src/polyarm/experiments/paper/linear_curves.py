"""Table and figure: regret over time on the linear bandit beside the published curves."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyarm import drawing
from polyarm.experiments.paper.baselines import baseline_panel
from polyarm.experiments.paper.panels import Outcome, Panel, PanelTarget, verdict
from polyarm.experiments.paper.published import CURVE_STEPS, LINEAR_CURVES
from polyarm.experiments.paper.sections import Section
from polyarm.experiments.paper.study_folder import StudyFolder
from polyarm.experiments.reporting import figures
from polyarm.experiments.reporting.curves import regret_curves
from polyarm.experiments.reporting.statistics import z_score
from polyarm.tables import Cell, Table
from polyarm.types import Array

PUBLISHED_REALIZATIONS = 500
HEADS = ("policy", "R", "t", "ours", "± se", "published", "z", "within 3 se")
NOTE = (
    "Published means were read off the authors' vector figure; no std is known there, so that of our observed regret "
    "stands in. Ours are interpolated between checkpoints, which are at most 19 steps apart."
)


def curve_panel() -> Panel:
    """The policies whose published curves are known, with the settings behind them."""
    panel = baseline_panel("linear")
    return panel._replace(entries=tuple(entry for entry in panel.entries if entry.published))


def regret_at(outcome: Outcome, policy: str, column: str) -> Array:
    """Regret of every realisation at the steps of the published curves, (realisations, steps)."""
    steps = outcome.results.steps
    return np.array([np.interp(CURVE_STEPS, steps, run) for run in outcome.results.curves(policy, column)])


def curve_rows(outcome: Outcome) -> list[tuple[Cell, ...]]:
    """One row per policy that was run and step of the published curves."""
    rows: list[tuple[Cell, ...]] = []
    for entry in outcome.entries:
        ours, observed = (regret_at(outcome, entry.policy, column) for column in ("regret", "observed_regret"))
        count = len(ours)
        means, stds = ours.mean(axis=0), ours.std(axis=0, ddof=1) if count > 1 else np.full(len(CURVE_STEPS), np.nan)
        noise = observed.std(axis=0, ddof=1) if count > 1 else stds
        for i, (step, published) in enumerate(zip(CURVE_STEPS, LINEAR_CURVES[entry.name], strict=True)):
            se = float(stds[i]) / count**0.5
            z = z_score(float(means[i]), se, published, float(noise[i]) / PUBLISHED_REALIZATIONS**0.5)
            rows.append((entry.shown, count, step, float(means[i]), se, published, z, verdict(z)))
    return rows


def curve_figure(outcome: Outcome, title: str) -> Any:
    """The first 200 steps, and all."""
    figure, axes = drawing.new_figure(1, 2)
    draw_curves(axes[0, 0], outcome)
    axes[0, 0].set_xlim(0, 210)
    axes[0, 0].set_ylim(0, 300)
    draw_curves(axes[0, 1], outcome)
    figures.share_legend(figure, axes.flat)
    figure.suptitle(f"{title} (mean; crosses: published)")
    return figure


def draw_curves(axes: Any, outcome: Outcome) -> None:
    """Mean expected regret, and a cross for every published value."""
    curves = outcome.named(regret_curves(outcome.results))
    figures.draw_curves(axes, curves, "cumulative expected regret", outcome.panel.scenario, floor=0.0)
    for position, entry in enumerate(outcome.entries):
        style = {"color": drawing.style_of(position)["color"], "zorder": 5}
        axes.plot(CURVE_STEPS, LINEAR_CURVES[entry.name], "X", markersize=7, markeredgecolor="white", **style)
    axes.set_ylim(bottom=0)


@dataclass(frozen=True)
class LinearCurves:
    """The published curves of the linear bandit."""

    name: str = "linear-curves"
    title: str = "Linear bandit over time, against the published curves"

    def run(self, place: StudyFolder) -> Section:
        """Table with z-scores at the steps of the published curves, and all curves with these values."""
        (outcome,) = PanelTarget(self.name, self.title, (curve_panel(),)).outcomes(place)
        table = Table(self.title, HEADS, tuple(curve_rows(outcome)))
        return Section(self.name, self.title, NOTE, table, curve_figure(outcome, self.title))


TARGET = LinearCurves()
