"""Table and figure: the sparse linear bandit of the Deep Bayesian Bandits Showdown."""

from polyarm.experiments.paper.baselines import baseline_target

TARGET = baseline_target(
    "sparse-linear",
    "Sparse linear bandit, 7 arms, d = 10",
    "7 arms: the paper's text says 8, its numbers say 7.",
)
