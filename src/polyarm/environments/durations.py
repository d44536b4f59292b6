"""Rewards above 0 of several sizes, or of many: how long somebody stays, how much is read, watched or used."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from polyarm.environments.predictors import sample_predictor
from polyarm.errors import require_count, require_name
from polyarm.types import Array, Rng, World

Law = Literal["gamma", "weibull", "log-normal", "exponential", "erlang"]
LAWS = get_args(Law)
GAMMA_SHAPES = {"gamma": 0.3, "exponential": 1.0, "erlang": 3.0}
WEIBULL_SHAPE = 0.5
LOG_SD = 2.0


@dataclass(frozen=True, slots=True)
class Durations:
    """Arm a pays a duration of mean exp(m_a'(1, x)).

    `law` gamma: of shape 0.3; weibull: of shape 0.5; log-normal: the logarithm has standard deviation 2; the shortest
    quarter of these is over in a small part of the mean.  exponential; erlang: three exponential stages, a gamma
    distribution of shape 3.  Coefficients are new in every world; contexts are standard normal.
    """

    n_arms: int = 4
    context_dim: int = 3
    law: Law = "gamma"

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_name(self.law, LAWS, "law")

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        contexts = rng.standard_normal((horizon, self.context_dim))
        means = np.exp(sample_predictor(contexts, self.n_arms, 1.0, 0.3, 0.35, rng))
        return World(contexts, means * sample_shares(self.law, means.shape, rng), means)


def sample_shares(law: Law, shape: tuple[int, ...], rng: Rng) -> Array:
    """Durations of mean 1."""
    if law == "weibull":
        return np.asarray(rng.weibull(WEIBULL_SHAPE, shape) / math.gamma(1 + 1 / WEIBULL_SHAPE))
    if law == "log-normal":
        return np.asarray(np.exp(LOG_SD * rng.standard_normal(shape) - 0.5 * LOG_SD**2))
    return np.asarray(rng.standard_gamma(GAMMA_SHAPES[law], shape) / GAMMA_SHAPES[law])
