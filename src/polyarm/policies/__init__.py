"""Rules that pick arms."""

from polyarm.policies.best_arm import BestArm, probability_best
from polyarm.policies.greedy import Greedy
from polyarm.policies.initial_pulls import InitialPulls, InitialPullsState
from polyarm.policies.presets import make_policy, policy_names
from polyarm.policies.thompson import ThompsonSampling
from polyarm.policies.ucb import BayesUCB, BayesUCBState
from polyarm.policies.uniform import Uniform

__all__ = [
    "BayesUCB",
    "BayesUCBState",
    "BestArm",
    "Greedy",
    "InitialPulls",
    "InitialPullsState",
    "ThompsonSampling",
    "Uniform",
    "make_policy",
    "policy_names",
    "probability_best",
]
