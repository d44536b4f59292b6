"""Sources of worlds."""

from polyarm.environments.bimodal import StaticMixture
from polyarm.environments.classification import ClassificationBandit, from_classes
from polyarm.environments.clicks import Clicks, Rates
from polyarm.environments.counts import Counts
from polyarm.environments.disguises import Rounded, Shifted, WildStart
from polyarm.environments.drift import Drift
from polyarm.environments.durations import Durations
from polyarm.environments.exponential import ExponentialBandit
from polyarm.environments.full_feedback import FullFeedback, from_columns, from_file
from polyarm.environments.gaussian import StaticGaussian
from polyarm.environments.generative import GenerativeBandit, normal_contexts, uniform_contexts
from polyarm.environments.judged import Judged
from polyarm.environments.laplace import LinearLaplace
from polyarm.environments.linear import LinearGaussian, RandomLinear
from polyarm.environments.mixtures import Component, MixtureBandit
from polyarm.environments.nonlinear import SmoothBandit
from polyarm.environments.oncology import oncology
from polyarm.environments.outliers import LinearOutliers
from polyarm.environments.presets import NAMES, Scenario, make_scenario, scenario_names
from polyarm.environments.profits import Profits
from polyarm.environments.purchases import Purchases, Refunds
from polyarm.environments.ratings import Ratings
from polyarm.environments.revenue import Offer, Revenue
from polyarm.environments.student import LinearStudent
from polyarm.environments.unequal import UnequalNoise
from polyarm.environments.windfalls import Windfalls

__all__ = [
    "NAMES",
    "ClassificationBandit",
    "Clicks",
    "Component",
    "Counts",
    "Drift",
    "Durations",
    "ExponentialBandit",
    "FullFeedback",
    "GenerativeBandit",
    "Judged",
    "LinearGaussian",
    "LinearLaplace",
    "LinearOutliers",
    "LinearStudent",
    "MixtureBandit",
    "Offer",
    "Profits",
    "Purchases",
    "RandomLinear",
    "Rates",
    "Ratings",
    "Refunds",
    "Revenue",
    "Rounded",
    "Scenario",
    "Shifted",
    "SmoothBandit",
    "StaticGaussian",
    "StaticMixture",
    "UnequalNoise",
    "WildStart",
    "Windfalls",
    "from_classes",
    "from_columns",
    "from_file",
    "make_scenario",
    "normal_contexts",
    "oncology",
    "scenario_names",
    "uniform_contexts",
]
