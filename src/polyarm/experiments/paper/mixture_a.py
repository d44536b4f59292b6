"""Table and figure: scenario A, two arms with two-component mixtures."""

from polyarm.experiments.paper.baselines import baseline_target

TARGET = baseline_target("mixture-a", "Scenario A: Gaussian mixtures, 2 arms")
