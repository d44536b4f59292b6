"""Figures: how the concentration of the Dirichlet process changes regret."""

from polyarm.experiments.paper.panels import PanelTarget
from polyarm.experiments.paper.variants import variant_panels

TARGET = PanelTarget(
    "concentration",
    "Nonparametric TS by concentration",
    variant_panels("concentration", (0.01, 0.1, 1, 5, 10), 0.1, "concentration"),
    500,
)
