"""Table and figure: exponentially distributed rewards."""

from polyarm.experiments.paper.baselines import baseline_target

TARGET = baseline_target(
    "exponential",
    "Exponential rewards",
    "The mean reward has infinite variance over contexts, so standard errors are rough: see the medians.",
)
