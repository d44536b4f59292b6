"""Sources of worlds."""

from polyarm.environments.exponential import ExponentialBandit
from polyarm.environments.full_feedback import FullFeedback, from_columns, from_file
from polyarm.environments.gaussian import StaticGaussian
from polyarm.environments.generative import GenerativeBandit, normal_contexts, uniform_contexts
from polyarm.environments.linear import LinearGaussian, RandomLinear
from polyarm.environments.mixtures import Component, MixtureBandit
from polyarm.environments.oncology import oncology
from polyarm.environments.presets import NAMES, Scenario, all_names, make_scenario

__all__ = [
    "NAMES",
    "Component",
    "ExponentialBandit",
    "FullFeedback",
    "GenerativeBandit",
    "LinearGaussian",
    "MixtureBandit",
    "RandomLinear",
    "Scenario",
    "StaticGaussian",
    "all_names",
    "from_columns",
    "from_file",
    "make_scenario",
    "normal_contexts",
    "oncology",
    "uniform_contexts",
]
