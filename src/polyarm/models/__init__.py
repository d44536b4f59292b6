"""Reward models told forwards, and the distributions they are made of."""

from polyarm.models.amounts import AmountMixture
from polyarm.models.base_measure import NormalInverseGamma
from polyarm.models.hierarchical import HierarchicalMixture
from polyarm.models.jumps import JumpMixture
from polyarm.models.linear import LinearGaussian, LinearParams
from polyarm.models.mixture import LinearMixture, MixtureParams
from polyarm.models.objectives import (
    MEAN,
    ExpectedShortfall,
    ExponentialUtility,
    Mean,
    Objective,
    ProbabilityAbove,
    Quantile,
    as_objective,
)
from polyarm.models.robust import RobustMixture, RobustParams
from polyarm.models.sticks import LogisticSticks, StickParams
from polyarm.models.student import StudentMixture

__all__ = [
    "MEAN",
    "AmountMixture",
    "ExpectedShortfall",
    "ExponentialUtility",
    "HierarchicalMixture",
    "JumpMixture",
    "LinearGaussian",
    "LinearMixture",
    "LinearParams",
    "LogisticSticks",
    "Mean",
    "MixtureParams",
    "NormalInverseGamma",
    "Objective",
    "ProbabilityAbove",
    "Quantile",
    "RobustMixture",
    "RobustParams",
    "StickParams",
    "StudentMixture",
    "as_objective",
]
