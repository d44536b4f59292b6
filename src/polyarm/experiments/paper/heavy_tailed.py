"""Table and figure: rewards with outliers."""

from polyarm.experiments.paper.baselines import baseline_target

TARGET = baseline_target(
    "heavy-tailed",
    "Heavy-tailed bandit",
    "The outliers have standard deviation 10: the paper's text says variance 10, its numbers do not.",
)
