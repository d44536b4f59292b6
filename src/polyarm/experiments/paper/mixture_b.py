"""Table and figure: scenario B, three arms with one, two and three components."""

from polyarm.experiments.paper.baselines import baseline_target

TARGET = baseline_target("mixture-b", "Scenario B: Gaussian mixtures, 3 arms")
