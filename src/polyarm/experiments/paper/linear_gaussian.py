"""Twelve figures: linear Gaussian bandits against the oracle that knows the model."""

from polyarm.environments.presets import GAPS
from polyarm.experiments.paper.oracles import oracle_panel
from polyarm.experiments.paper.panels import PanelTarget

# settings of the authors' public script for these figures: Gibbs_max 10, tolerance 1 %, all-ones prior means
NONPARAMETRIC, ORACLE = "nonparametric-paper:tolerance=0.01", "linear:prior_mean=1.0"

TARGET = PanelTarget(
    "linear-gaussian",
    "Linear Gaussian bandits against the oracle",
    tuple(oracle_panel(f"linear-gaussian/{gap}", 500, NONPARAMETRIC, ORACLE, 1000) for gap in GAPS),
    1000,
    "Published values were read off figures, so no std is known: that of our observed regret stands in.",
)
