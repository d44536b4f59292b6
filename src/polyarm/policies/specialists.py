"""Policies that know the kind of reward: what a model for every kind is measured against."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from polyarm.errors import require_name
from polyarm.inference.beta import BetaEngine
from polyarm.inference.conjugate import ConjugateEngine
from polyarm.inference.features import FeatureEngine
from polyarm.inference.generalized import Family, GeneralizedEngine
from polyarm.inference.hurdle import HurdleEngine
from polyarm.models import LinearGaussian, NormalInverseGamma
from polyarm.policies.information import InformationDirected
from polyarm.policies.thompson import ThompsonSampling
from polyarm.types import AnyPolicy, Array

Explore = Literal["thompson", "information"]


def explored(engine: Any, explore: Explore) -> AnyPolicy:
    """The engine under Thompson sampling or information-directed sampling."""
    require_name(explore, ("thompson", "information"), "explore")
    return InformationDirected(engine) if explore == "information" else ThompsonSampling(engine)


def variances(context_dim: int, slope_var: float, intercept_var: float) -> Array:
    """Prior variances of the slopes, and of the intercept that follows them."""
    return np.append(np.full(context_dim, float(slope_var)), float(intercept_var))


def linear_information(
    n_arms: int,
    context_dim: int,
    *,
    intercept: bool = False,
    noise_var: float | None = None,
    prior_mean: ArrayLike = 0.0,
    prior_covariance: ArrayLike = 1.0,
    prior_shape: float = 1.0,
    prior_scale: float = 1.0,
) -> AnyPolicy:
    """The model of `linear` under information-directed sampling."""
    dim = context_dim + int(intercept)
    base = NormalInverseGamma(dim, prior_mean, prior_covariance, prior_shape, prior_scale)
    engine: Any = ConjugateEngine([LinearGaussian(base, noise_var)] * n_arms)
    return InformationDirected(FeatureEngine(engine, "intercept", context_dim) if intercept else engine)


def beta(
    n_arms: int, context_dim: int, *, explore: Explore = "thompson", prior: tuple[float, float] = (1.0, 1.0)
) -> AnyPolicy:
    """Rewards of 0 and 1 without context: the exact Beta posterior of every rate."""
    return explored(BetaEngine(n_arms, context_dim, prior), explore)


def _generalized(
    n_arms: int, context_dim: int, family: Family, explore: Explore, slope_var: float, intercept_var: float, **law: Any
) -> AnyPolicy:
    prior_var = variances(context_dim, slope_var, intercept_var)
    engine: Any = GeneralizedEngine(n_arms, context_dim + 1, family, prior_var=prior_var, **law)
    return explored(FeatureEngine(engine, "intercept", context_dim), explore)


def logistic(
    n_arms: int,
    context_dim: int,
    *,
    explore: Explore = "thompson",
    slope_var: float = 1.0,
    intercept_var: float = 1.0,
) -> AnyPolicy:
    """Rewards of 0 and 1: logistic regression with an intercept."""
    return _generalized(n_arms, context_dim, "logistic", explore, slope_var, intercept_var)


def poisson(
    n_arms: int,
    context_dim: int,
    *,
    explore: Explore = "thompson",
    slope_var: float = 0.25,
    intercept_var: float = 1.0,
) -> AnyPolicy:
    """Counts: Poisson regression with an intercept and a logarithmic link."""
    return _generalized(n_arms, context_dim, "poisson", explore, slope_var, intercept_var)


def ordinal(
    n_arms: int,
    context_dim: int,
    *,
    n_marks: int = 5,
    explore: Explore = "thompson",
    slope_var: float = 1.0,
    intercept_var: float = 1.0,
) -> AnyPolicy:
    """Marks 1, ..., n_marks: proportional odds with an intercept, cut points shared by all arms."""
    return _generalized(n_arms, context_dim, "ordinal", explore, slope_var, intercept_var, n_marks=n_marks)


def hurdle(
    n_arms: int,
    context_dim: int,
    *,
    amounts: Literal["log-normal", "gamma", "normal"] = "log-normal",
    explore: Explore = "thompson",
    slope_var: float = 1.0,
    intercept_var: float = 1.0,
    amount_var: float = 1.0,
) -> AnyPolicy:
    """Rewards of 0 or an amount: logistic regression for whether, a regression for how much, both with intercepts."""
    prior_var = variances(context_dim, slope_var, intercept_var)
    engine: Any = HurdleEngine(n_arms, context_dim + 1, amounts, prior_var, amount_var)
    return explored(FeatureEngine(engine, "intercept", context_dim), explore)
