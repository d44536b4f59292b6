"""Figure: one Gaussian per arm on heavy-tailed rewards."""

from polyarm.experiments.paper.oracle_mixtures import NONPARAMETRIC
from polyarm.experiments.paper.panels import Entry, Panel, PanelTarget
from polyarm.experiments.paper.published import MISSPECIFIED, Published

MINE, GAUSSIAN = (Published(mean, None, 3000) for mean in MISSPECIFIED)

TARGET = PanelTarget(
    "misspecified",
    "Heavy-tailed bandit with one Gaussian per arm",
    (
        Panel(
            "heavy-tailed",
            500,
            (
                Entry(NONPARAMETRIC, "Nonparametric TS", MINE),
                Entry("linear", "TS with one Gaussian per arm", GAUSSIAN),
            ),
        ),
    ),
    3000,
    "Published values were read off figures, so no std is known: that of our observed regret stands in.",
)
