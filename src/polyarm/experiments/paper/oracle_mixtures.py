"""Three figures: mixture bandits against finite-mixture oracles that know the number of components."""

from polyarm.experiments.paper.oracles import oracle_panel
from polyarm.experiments.paper.panels import PanelTarget

# settings of the authors' public script for these figures: Gibbs_max 4, tolerance 1 %
OPTIONS = "gibbs_max=4,tolerance=0.01"
NONPARAMETRIC, ORACLE = f"nonparametric-paper:{OPTIONS}", f"oracle-mixture:{OPTIONS}"

TARGET = PanelTarget(
    "oracle-mixtures",
    "Mixture bandits against finite-mixture oracles",
    tuple(oracle_panel(name, 500, NONPARAMETRIC, ORACLE, 3000) for name in ("mixture-a", "mixture-b", "heavy-tailed")),
    3000,
    "Published values were read off figures, so no std is known: that of our observed regret stands in.",
)
