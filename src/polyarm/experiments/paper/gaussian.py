"""Three figures: Gaussian bandits without context against the oracle that knows the model."""

from polyarm.experiments.paper.linear_gaussian import NONPARAMETRIC, ORACLE
from polyarm.experiments.paper.oracles import oracle_panel
from polyarm.experiments.paper.panels import PanelTarget

TARGET = PanelTarget(
    "gaussian",
    "Gaussian bandits without context against the oracle",
    tuple(oracle_panel(f"gaussian/{gap}", 1500, NONPARAMETRIC, ORACLE, 1000) for gap in ("0.1", "0.5", "1")),
    1000,
    "Published values were read off figures, so no std is known: that of our observed regret stands in.",
)
