"""Table and figure: the linear bandit of the Deep Bayesian Bandits Showdown."""

from polyarm.experiments.paper.baselines import baseline_target

TARGET = baseline_target(
    "linear",
    "Linear bandit, 8 arms, d = 10",
    "The paper omits LinearGaussian TS here, though it is the well-specified model; linear is the same without "
    "intercept and with prior mean 0.",
)
