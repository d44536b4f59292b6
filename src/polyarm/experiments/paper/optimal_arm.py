"""Figures: how often the best arm is played."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polyarm.experiments.paper.baselines import baseline_panel
from polyarm.experiments.paper.panels import Outcome, PanelTarget, panel_figure
from polyarm.experiments.paper.published import SCENARIOS
from polyarm.experiments.paper.sections import Section
from polyarm.experiments.paper.study_folder import StudyFolder
from polyarm.experiments.reporting import figures
from polyarm.experiments.reporting.curves import optimal_curves
from polyarm.tables import Cell, Table

SHARES = (0.1, 0.5, 1.0)  # of the horizon


def share_rows(outcome: Outcome) -> list[tuple[Cell, ...]]:
    """Share of best-arm plays in the window that ends at each part of the horizon."""
    curves = outcome.named(optimal_curves(outcome.results, n_points=20))
    at = [max(round(share * len(curves[0].steps)) - 1, 0) for share in SHARES]
    return [(outcome.panel.scenario, curve.label, *(f"{curve.mean[i]:.1%}" for i in at)) for curve in curves]


def draw_shares(axes: Any, outcome: Outcome) -> None:
    """Share of best-arm plays against time."""
    curves = outcome.named(optimal_curves(outcome.results))
    figures.draw_curves(axes, curves, "share of best-arm plays", outcome.panel.scenario)
    axes.set_ylim(0, 1.02)


@dataclass(frozen=True)
class OptimalArm:
    """Best-arm frequencies of the tables' studies."""

    name: str = "optimal-arm"
    title: str = "How often the best arm is played"
    scenarios: Sequence[str] = SCENARIOS

    def run(self, place: StudyFolder) -> Section:
        """Table and curves of best-arm plays."""
        panels = tuple(baseline_panel(scenario) for scenario in self.scenarios)
        outcomes = PanelTarget(self.name, self.title, panels).outcomes(place)
        heads = ("scenario", "policy", "at 10 % of T", "at 50 %", "at T")
        table = Table(self.title, heads, tuple(row for outcome in outcomes for row in share_rows(outcome)))
        figure = panel_figure(outcomes, draw_shares, f"{self.title} (mean; shaded: its 95 % confidence interval)")
        return Section(self.name, self.title, "The paper shows these as figures only.", table, figure)


TARGET = OptimalArm()
