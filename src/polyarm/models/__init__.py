"""Reward models told forwards, and the distributions they are made of."""

from polyarm.models.base_measure import NormalInverseGamma
from polyarm.models.hierarchical import HierarchicalMixture
from polyarm.models.linear import LinearGaussian, LinearParams
from polyarm.models.mixture import LinearMixture, MixtureParams
from polyarm.models.robust import RobustMixture, RobustParams
from polyarm.models.student import StudentMixture

__all__ = [
    "HierarchicalMixture",
    "LinearGaussian",
    "LinearMixture",
    "LinearParams",
    "MixtureParams",
    "NormalInverseGamma",
    "RobustMixture",
    "RobustParams",
    "StudentMixture",
]
