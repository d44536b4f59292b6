"""Sources of worlds."""

from polyarm.environments.bimodal import StaticMixture
from polyarm.environments.drift import Drift
from polyarm.environments.exponential import ExponentialBandit
from polyarm.environments.full_feedback import FullFeedback, from_columns, from_file
from polyarm.environments.gaussian import StaticGaussian
from polyarm.environments.generative import GenerativeBandit, normal_contexts, uniform_contexts
from polyarm.environments.linear import LinearGaussian, RandomLinear
from polyarm.environments.mixtures import Component, MixtureBandit
from polyarm.environments.nonlinear import SmoothBandit
from polyarm.environments.oncology import oncology
from polyarm.environments.outliers import LinearOutliers
from polyarm.environments.presets import NAMES, Scenario, all_names, make_scenario
from polyarm.environments.revenue import Offer, Revenue
from polyarm.environments.student import LinearStudent

__all__ = [
    "NAMES",
    "Component",
    "Drift",
    "ExponentialBandit",
    "FullFeedback",
    "GenerativeBandit",
    "LinearGaussian",
    "LinearOutliers",
    "LinearStudent",
    "MixtureBandit",
    "Offer",
    "RandomLinear",
    "Revenue",
    "Scenario",
    "SmoothBandit",
    "StaticGaussian",
    "StaticMixture",
    "all_names",
    "from_columns",
    "from_file",
    "make_scenario",
    "normal_contexts",
    "oncology",
    "uniform_contexts",
]
