"""Panels of the paper's comparisons with an oracle."""

from polyarm.experiments.paper.panels import Entry, Panel
from polyarm.experiments.paper.published import ORACLE, Published


def oracle_panel(scenario: str, horizon: int, nonparametric: str, oracle: str, realizations: int) -> Panel:
    """Nonparametric TS beside the oracle, with the end values of the published figure over so many realisations."""
    mine, theirs = (Published(mean, None, realizations) for mean in ORACLE[scenario])
    entries = (Entry(nonparametric, "Nonparametric TS", mine), Entry(oracle, "Oracle TS", theirs))
    return Panel(scenario, horizon, entries)
