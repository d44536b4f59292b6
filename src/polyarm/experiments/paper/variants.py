"""Panels of the paper's studies of one setting of Nonparametric TS."""

from polyarm.experiments.paper.baselines import HORIZONS
from polyarm.experiments.paper.panels import Entry, Panel
from polyarm.experiments.paper.published import TABLES

SIX = ("linear", "sparse-linear", "mixture-a", "mixture-b", "heavy-tailed", "exponential")
DEFAULT = "nonparametric-paper"


def variant_panels(option: str, values: tuple[float, ...], default: float, shown: str) -> tuple[Panel, ...]:
    """One panel per scenario, one curve per value; the default value is the policy of the tables."""
    return tuple(
        Panel(name, HORIZONS.get(name, 1000), tuple(_entry(name, option, value, default, shown) for value in values))
        for name in SIX
    )


def _entry(scenario: str, option: str, value: float, default: float, shown: str) -> Entry:
    if value == default:
        return Entry(DEFAULT, f"{shown} {value:g}", TABLES[scenario][DEFAULT])
    return Entry(f"{DEFAULT}:{option}={value:g}", f"{shown} {value:g}")
