"""Panels of the paper's comparisons with baselines."""

from polyarm.experiments.contenders import NETWORKS
from polyarm.experiments.paper.panels import Entry, Panel, PanelTarget
from polyarm.experiments.paper.published import TABLES

SHOWN = {
    "nonparametric-paper": "Nonparametric TS (paper's settings)",
    "linear-showdown": "LinearGaussian TS",
    "nonparametric": "nonparametric (our default)",
    "linear": "linear (no intercept)",
    "neural-linear": "NeuralLinear",
    "neural-bootstrapped": "NeuralBootstrapped",
    "neural-rms": "NeuralRMS",
    "neural-dropout": "NeuralDropoutRMS",
    "neural-param-noise": "NeuralParamNoise",
    "multitask-gp": "MultitaskGP",
    "bnn-variational": "BNNVariationalGaussian",
    "bnn-alpha": "BNNAlphaDiv",
}
HORIZONS = {"linear": 1500, "sparse-linear": 1500}
ORDER = ("nonparametric-paper", "linear-showdown", "nonparametric", "linear", *NETWORKS)


def baseline_panel(scenario: str) -> Panel:
    """All policies of the paper's table on one scenario, and ours."""
    published = TABLES[scenario]
    entries = tuple(Entry(policy, SHOWN[policy], published.get(policy)) for policy in ORDER)
    return Panel(scenario, HORIZONS.get(scenario, 1000), entries)


def baseline_target(scenario: str, title: str, note: str = "") -> PanelTarget:
    """The table and figure of one scenario."""
    return PanelTarget(scenario, title, (baseline_panel(scenario),), 500, note)
