"""Panels of the paper's comparisons with baselines."""

from polyarm.experiments.contenders import NETWORKS
from polyarm.experiments.paper.panels import Entry, Panel, PanelTarget
from polyarm.experiments.paper.published import TABLES

SHOWN = {
    "nonparametric-paper": "Nonparametric TS",
    "linear-showdown": "LinearGaussian TS",
    "nonparametric": "ours: nonparametric",
    "dirichlet": "ours: dirichlet",
    "linear": "ours: linear",
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
OURS = ("nonparametric-paper", "linear-showdown", "nonparametric", "dirichlet", "linear")


def baseline_panel(scenario: str) -> Panel:
    """All policies of the paper's table on one scenario, and ours."""
    published = TABLES[scenario]
    entries = tuple(Entry(policy, SHOWN[policy], published.get(policy)) for policy in OURS)
    return Panel(scenario, HORIZONS.get(scenario, 1000), entries + _networks(scenario))


def _networks(scenario: str) -> tuple[Entry, ...]:
    """The learned baselines; the linear tables used other settings than the paper states, so there are two of each."""
    published = TABLES[scenario]
    if scenario not in HORIZONS:
        return tuple(Entry(name, SHOWN[name], published.get(name)) for name in NETWORKS)
    older = {name: "training_steps=100,training_freq=" + ("50" if name == "multitask-gp" else "1") for name in NETWORKS}
    as_run = (Entry(f"{name}:{older[name]}", SHOWN[name], published.get(name)) for name in NETWORKS)
    as_stated = (Entry(name, f"{SHOWN[name]} (as the text states)") for name in NETWORKS)
    return (*as_run, *as_stated)


def baseline_target(scenario: str, title: str, note: str = "") -> PanelTarget:
    """The table and figure of one scenario."""
    return PanelTarget(scenario, title, (baseline_panel(scenario),), 500, note)
