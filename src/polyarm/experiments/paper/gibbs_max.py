"""Figures: how many Gibbs iterations per reward are enough."""

from polyarm.experiments.paper.panels import PanelTarget
from polyarm.experiments.paper.variants import variant_panels

TARGET = PanelTarget(
    "gibbs-max",
    "Nonparametric TS by Gibbs_max",
    variant_panels("gibbs_max", (1, 5, 10), 10, "Gibbs_max"),
    500,
    "As in the authors' code, the draw of the new reward counts as the first iteration.",
)
