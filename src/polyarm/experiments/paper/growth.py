"""The theorem: regret grows like T^(1/2) log(T)^k."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyarm import drawing
from polyarm.experiments.paper.panels import Entry, Outcome, Panel, PanelTarget, panel_figure
from polyarm.experiments.paper.sections import Section
from polyarm.experiments.paper.study_folder import StudyFolder
from polyarm.experiments.reporting.statistics import Growth, fit_growth
from polyarm.tables import Cell, Table
from polyarm.types import Array

HORIZON = 20_000
START = 200  # steps before this say more about the prior than about growth
ENTRIES = (Entry("dirichlet", "dirichlet"), Entry("linear", "linear"))
SCENARIOS = ("linear-gaussian/a3-0.5", "mixture-a", "mixture-b", "heavy-tailed", "exponential")
NOTE = (
    "Fits of mean regret from step 200 on, with 95 % bootstrap intervals over realisations: T^power, and "
    "T^(1/2) log(T)^k.  The theorem allows a power of at most 1/2 up to logarithms; a power near 1 means lock-in."
)


def fit_curves(steps: Array, curves: Array, n_boot: int = 200) -> tuple[Growth, Array]:
    """Growth of the mean of curves (realisations, steps), and bootstrap intervals (2, 3) of its three numbers."""
    rng = np.random.default_rng(0)
    late = steps >= START
    picks = rng.integers(len(curves), size=(n_boot, len(curves)))
    draws = [fit_growth(steps[late], curves[pick].mean(axis=0)[late]) for pick in picks]
    return fit_growth(steps[late], curves.mean(axis=0)[late]), np.quantile(draws, [0.025, 0.975], axis=0)


def growth_rows(outcome: Outcome) -> list[tuple[Cell, ...]]:
    """Fitted growth of every policy."""
    rows: list[tuple[Cell, ...]] = []
    steps = outcome.results.steps.astype(np.float64)
    for entry in outcome.entries:
        curves = outcome.results.curves(entry.policy)
        found, interval = fit_curves(steps, curves)
        median = fit_growth(steps[steps >= START], np.median(curves, axis=0)[steps >= START])
        power = f"{interval[0, 2]:.2f} to {interval[1, 2]:.2f}"
        log_power = f"{interval[0, 1]:.2f} to {interval[1, 1]:.2f}"
        regret = float(curves[:, -1].mean())
        name = outcome.panel.scenario, entry.shown
        rows.append((*name, regret, found.power, power, found.log_power, log_power, median.power))
    return rows


def draw_growth(axes: Any, outcome: Outcome) -> None:
    """Mean regret on logarithmic axes, its fit, and the slope of T^(1/2)."""
    steps = outcome.results.steps.astype(np.float64)
    late = steps >= START
    for position, entry in enumerate(outcome.entries):
        style = drawing.style_of(position)
        mean = outcome.results.curves(entry.policy).mean(axis=0)
        fit = fit_growth(steps[late], mean[late])
        axes.loglog(steps, mean, label=entry.shown, linewidth=1.6, **style)
        fitted = fit.factor * np.sqrt(steps[late]) * np.log(steps[late]) ** fit.log_power
        axes.loglog(steps[late], fitted, color=style["color"], alpha=0.35, linewidth=5, solid_capstyle="butt")
    anchor = outcome.results.curves(outcome.entries[0].policy).mean(axis=0)[late][0]
    slope = anchor * np.sqrt(steps[late] / START)
    axes.loglog(steps[late], slope, color="#444444", linestyle=":", linewidth=1.2, label="slope of √T")
    axes.set(xlabel="step t", ylabel="cumulative expected regret", title=outcome.panel.scenario)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.legend(fontsize="small", frameon=False)


@dataclass(frozen=True)
class GrowthTarget:
    """Regret up to a long horizon."""

    name: str = "growth"
    title: str = "Growth of regret"
    scenarios: Sequence[str] = SCENARIOS
    horizon: int = HORIZON
    realizations: int = 50

    def run(self, place: StudyFolder) -> Section:
        """Table and figure of fitted growth."""
        panels = tuple(Panel(scenario, self.horizon, ENTRIES) for scenario in self.scenarios)
        count = min(self.realizations, place.realizations or self.realizations)
        outcomes = PanelTarget(self.name, self.title, panels).outcomes(replace(place, realizations=count))
        heads = (
            "scenario",
            "policy",
            f"regret at {self.horizon}",
            "power",
            "95 % CI",
            "k",
            "95 % CI of k",
            "power, median",
        )
        table = Table(self.title, heads, tuple(row for outcome in outcomes for row in growth_rows(outcome)))
        figure = panel_figure(outcomes, draw_growth, f"{self.title} (mean; wide: fit of c √T log(T)^k)")
        return Section(self.name, self.title, NOTE, table, figure)


TARGET = GrowthTarget()
