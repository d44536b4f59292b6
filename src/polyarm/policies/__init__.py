"""Rules that pick arms."""

from polyarm.policies.best_arm import BestArm, engine_of, probability_best
from polyarm.policies.greedy import Greedy
from polyarm.policies.information import InformationDirected, MomentEngine
from polyarm.policies.initial_pulls import InitialPulls, InitialPullsState
from polyarm.policies.linear_ucb import LinearUCB
from polyarm.policies.median_of_means import MedianOfMeansUCB
from polyarm.policies.npts import NPTS
from polyarm.policies.objective import objective_of, takes_objective, with_objective
from polyarm.policies.optimistic import OptimisticSampling, OptimisticState
from polyarm.policies.phe import LinearPHE
from polyarm.policies.presets import make_policy, network_names, policy_names
from polyarm.policies.subsampling import RandomBlockDuels
from polyarm.policies.thompson import ThompsonSampling
from polyarm.policies.ucb import BayesUCB, BayesUCBState
from polyarm.policies.ucb_v import UCBV
from polyarm.policies.uniform import Uniform

__all__ = [
    "NPTS",
    "UCBV",
    "BayesUCB",
    "BayesUCBState",
    "BestArm",
    "Greedy",
    "InformationDirected",
    "InitialPulls",
    "InitialPullsState",
    "LinearPHE",
    "LinearUCB",
    "MedianOfMeansUCB",
    "MomentEngine",
    "OptimisticSampling",
    "OptimisticState",
    "RandomBlockDuels",
    "ThompsonSampling",
    "Uniform",
    "engine_of",
    "make_policy",
    "network_names",
    "objective_of",
    "policy_names",
    "probability_best",
    "takes_objective",
    "with_objective",
]
