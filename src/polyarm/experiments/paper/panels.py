"""Targets that are studies: panels of regret curves, and a table of our numbers beside the published ones."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyarm import drawing
from polyarm.experiments.paper.published import Published
from polyarm.experiments.paper.sections import Section
from polyarm.experiments.paper.study_folder import StudyFolder
from polyarm.experiments.reporting import figures
from polyarm.experiments.reporting.curves import Curve, regret_curves
from polyarm.experiments.reporting.statistics import summarize, z_score
from polyarm.experiments.running.policy_specs import parse_policy
from polyarm.experiments.running.results import Results
from polyarm.tables import Cell, Table

HEADS = (
    "scenario",
    "policy",
    "T",
    "R",
    "ours",
    "± se",
    "std",
    "observed std",
    "median",
    "95 %",
    "locked in",
    "published",
    "published std",
    "z",
    "within 3 se",
)


class Entry(NamedTuple):
    """A policy in a panel, its name in the legend, what the paper found, and whether figures draw it."""

    policy: str
    shown: str
    published: Published | None = None
    drawn: bool = True

    @property
    def name(self) -> str:
        """Name of the policy without its options."""
        return parse_policy(self.policy).name

    @property
    def is_network(self) -> bool:
        """Whether the policy comes from the extra `neural`."""
        return parse_policy(self.policy).is_network


class Panel(NamedTuple):
    """One scenario with its policies."""

    scenario: str
    horizon: int
    entries: tuple[Entry, ...]


class Outcome(NamedTuple):
    """A panel with its results; policies that were not run are not in them."""

    panel: Panel
    results: Results

    @property
    def entries(self) -> list[Entry]:
        """The entries that were run."""
        return [entry for entry in self.panel.entries if entry.policy in self.results.labels]

    @property
    def drawn(self) -> list[Entry]:
        """The entries that were run and that figures draw."""
        return [entry for entry in self.entries if entry.drawn]

    def named(self, curves: Sequence[Curve]) -> list[Curve]:
        """The curves that are drawn, with the names that the legend shows."""
        shown = {entry.policy: entry.shown for entry in self.drawn}
        return [curve._replace(label=shown[curve.label]) for curve in curves if curve.label in shown]


def regret_row(outcome: Outcome, entry: Entry) -> tuple[Cell, ...]:
    """Our regret beside the published one.

    The published regret is best expected minus observed reward.  Its mean estimates expected regret, whose mean we
    report since it is less noisy; its std is compared with the std of our observed regret.
    """
    head = (outcome.panel.scenario, entry.shown, outcome.panel.horizon)
    published = (entry.published.mean, entry.published.std) if entry.published else (None, None)
    if entry.policy not in outcome.results.labels:
        return (*head, *[None] * 8, *published, None, "not run")
    values = outcome.results.final(entry.policy)
    ours = summarize(values)
    observed = summarize(outcome.results.final(entry.policy, "observed_regret")).std
    locked_in = f"{outcome.results.locked_in(entry.policy).mean():.1%}"
    z = _z(ours.mean, ours.se, observed, entry.published)
    spread = (ours.mean, ours.se, ours.std, observed, ours.median, ours.p95, locked_in)
    return (*head, len(values), *spread, *published, z, verdict(z))


def verdict(z: float) -> str:
    """Whether a distance in standard errors is within three."""
    return "-" if math.isnan(z) else "yes" if abs(z) <= 3 else "NO"


def _z(mean: float, se: float, observed_std: float, published: Published | None) -> float:
    """The z-score; where the paper gives no std, that of our observed regret stands in."""
    if published is None:
        return float("nan")
    std = observed_std if published.std is None else published.std
    return z_score(mean, se, published.mean, std / published.realizations**0.5)


def regret_table(title: str, outcomes: Sequence[Outcome]) -> Table:
    """One row per panel and policy that was run or has a published value."""
    rows = (
        regret_row(outcome, entry)
        for outcome in outcomes
        for entry in outcome.panel.entries
        if entry.published or entry in outcome.entries
    )
    return Table(title, HEADS, tuple(rows))


def grid_of(count: int) -> tuple[int, int]:
    """Rows and columns for that many panels."""
    columns = min(3, count)
    return -(-count // columns), columns


def panel_figure(outcomes: Sequence[Outcome], draw: Callable[[Any, Outcome], None], title: str) -> Any:
    """One panel per outcome, with one legend where all panels would have the same."""
    rows, columns = grid_of(len(outcomes))
    figure, axes = drawing.new_figure(rows, columns, scale=0.85)
    for outcome, panel in zip(outcomes, axes.flat, strict=False):
        draw(panel, outcome)
    for panel in axes.flat[len(outcomes) :]:
        panel.set_visible(False)
    figures.share_legend(figure, axes.flat[: len(outcomes)])
    figure.suptitle(title)
    return figure


def pair_figure(outcome: Outcome, title: str) -> Any:
    """Observed regret as in the paper, beside expected regret, which has no noise of rewards in it."""
    figure, axes = drawing.new_figure(1, 2)
    draw_regret(axes[0, 0], outcome)
    axes[0, 0].set_title("as in the paper: observed regret (mean, std shaded; crosses: published)", fontsize="medium")
    draw_expected(axes[0, 1], outcome)
    axes[0, 1].set_title("expected regret (mean; shaded: its 95 % confidence interval)", fontsize="medium")
    figures.share_legend(figure, axes.flat)
    figure.suptitle(title)
    return figure


def draw_regret(axes: Any, outcome: Outcome) -> None:
    """Mean observed regret with one std shaded, and a cross for every published value at its step."""
    curves = outcome.named(regret_curves(outcome.results, "observed_regret", "std"))
    figures.draw_curves(axes, curves, "cumulative observed regret", outcome.panel.scenario)
    mark_published(axes, outcome)
    low = min(0.0, min(float(np.min(curve.mean)) for curve in curves))
    axes.set_ylim(bottom=1.1 * low)


def draw_spread(axes: Any, outcome: Outcome) -> None:
    """Mean expected regret with one std shaded, and the published values."""
    draw_expected(axes, outcome, "std")


def draw_expected(axes: Any, outcome: Outcome, band: str = "ci") -> None:
    """Mean expected regret with the confidence interval of the mean, and the published values."""
    curves = outcome.named(regret_curves(outcome.results, band=band))
    figures.draw_curves(axes, curves, "cumulative expected regret", outcome.panel.scenario, floor=0.0)
    mark_published(axes, outcome)
    axes.set_ylim(bottom=0)


def mark_published(axes: Any, outcome: Outcome) -> None:
    """A cross for every published value, at its step."""
    for position, entry in enumerate(outcome.drawn):
        if entry.published:
            style = {"color": drawing.style_of(position)["color"], "zorder": 5, "clip_on": False}
            axes.plot(outcome.panel.horizon, entry.published.mean, "X", markersize=8, markeredgecolor="white", **style)


@dataclass(frozen=True)
class PanelTarget:
    """A target whose numbers are regrets of policies on scenarios."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    realizations: int = 500
    note: str = ""

    def outcomes(self, place: StudyFolder) -> list[Outcome]:
        """Results of every panel."""
        return [self._outcome(panel, place) for panel in self.panels]

    def _outcome(self, panel: Panel, place: StudyFolder) -> Outcome:
        asked = [entry.policy for entry in panel.entries if place.networks or not entry.is_network]
        others = [entry.policy for entry in panel.entries if entry.policy not in asked]
        results = place.results(panel.scenario, asked, panel.horizon, self.realizations, others)
        return Outcome(panel, results)

    def run(self, place: StudyFolder) -> Section:
        """Regret table with z-scores, and regret curves with the published end values."""
        outcomes = self.outcomes(place)
        table = regret_table(self.title, outcomes)
        return Section(self.name, self.title, self.note, table, self._figure(outcomes))

    def _figure(self, outcomes: Sequence[Outcome]) -> Any:
        if len(outcomes) == 1:
            return pair_figure(outcomes[0], self.title)
        return panel_figure(outcomes, draw_spread, f"{self.title} (mean, std shaded; crosses: published)")
