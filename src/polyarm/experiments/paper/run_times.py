"""Figures: seconds per realisation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyarm import drawing
from polyarm.experiments.paper.baselines import baseline_panel
from polyarm.experiments.paper.panels import Entry, Outcome, Panel, PanelTarget, panel_figure
from polyarm.experiments.paper.published import SECONDS
from polyarm.experiments.paper.sections import Section
from polyarm.experiments.paper.studies import GIBBS_MAX
from polyarm.experiments.paper.study_folder import StudyFolder
from polyarm.experiments.reporting import figures
from polyarm.tables import Cell, Table

NOTE = "One core of this machine, code already compiled; the published seconds are of the authors' machine and code."


def time_panel(panel: Panel) -> Panel:
    """The Gibbs_max variants of a scenario beside its baselines."""
    others = [entry for entry in baseline_panel(panel.scenario).entries if entry.policy != "nonparametric-paper"]
    return panel._replace(entries=(*panel.entries, *others))


def published_seconds(scenario: str, entry: Entry) -> float | None:
    """What the paper's figure says, for Nonparametric TS alone."""
    kind, _, value = entry.shown.partition(" ")
    return SECONDS.get(scenario, {}).get(int(value)) if kind == "Gibbs_max" else None


def time_rows(outcome: Outcome) -> list[tuple[Cell, ...]]:
    """Seconds per realisation, and how many times faster that is than published."""
    rows: list[tuple[Cell, ...]] = []
    for entry in outcome.entries:
        seconds = outcome.results.final(entry.policy, "seconds")
        published = published_seconds(outcome.panel.scenario, entry)
        faster = published / float(seconds.mean()) if published else None
        mean, std = float(seconds.mean()), float(seconds.std())
        rows.append((outcome.panel.scenario, entry.shown, outcome.panel.horizon, mean, std, published, faster))
    return rows


def draw_times(axes: Any, outcome: Outcome) -> None:
    """Mean seconds per realisation, with the std, on a logarithmic axis."""
    names = [entry.shown for entry in outcome.entries]
    seconds = [outcome.results.final(entry.policy, "seconds") for entry in outcome.entries]
    means = np.array([values.mean() for values in seconds])
    spread = np.array([min(values.std(), 0.9 * values.mean()) for values in seconds])
    axes.barh(names, means, xerr=spread, color=drawing.COLOURS[5], ecolor="#444444")
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="seconds per realisation", title=outcome.panel.scenario)
    axes.set_xlim(figures.decades(means))
    axes.spines[["top", "right"]].set_visible(False)


@dataclass(frozen=True)
class RunTimes:
    """Seconds per realisation in the studies of the tables and of Gibbs_max."""

    name: str = "run-times"
    title: str = "Run time of one realisation"
    panels: Sequence[Panel] = GIBBS_MAX.panels

    def run(self, place: StudyFolder) -> Section:
        """Table and bars of run times."""
        panels = tuple(time_panel(panel) for panel in self.panels)
        outcomes = PanelTarget(self.name, self.title, panels).outcomes(place)
        heads = ("scenario", "policy", "T", "seconds", "std", "published seconds", "times faster")
        table = Table(self.title, heads, tuple(row for outcome in outcomes for row in time_rows(outcome)))
        figure = panel_figure(outcomes, draw_times, f"{self.title} (mean, std as bars)")
        return Section(self.name, self.title, NOTE, table, figure)


TARGET = RunTimes()
