"""Rewards of 0 and 1, with and without context."""

from dataclasses import dataclass

import numpy as np

from polyarm import special
from polyarm.environments.predictors import COLUMNS, Columns, sample_contexts, sample_predictor
from polyarm.errors import require, require_count, require_name, require_number, require_positive
from polyarm.types import Rng, World


@dataclass(frozen=True, slots=True)
class Rates:
    """Arm a pays 1 with a probability of its own, else 0; the context is the constant 1.

    The probabilities are new in every world, log-uniform between `lowest` and `highest`.
    """

    lowest: float
    highest: float
    n_arms: int = 6

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        ordered = 0 < self.lowest < self.highest < 1
        require(ordered, "lowest and highest", "ordered rates between 0 and 1", (self.lowest, self.highest))

    @property
    def context_dim(self) -> int:
        """Length of a context: the constant alone."""
        return 1

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        rates = np.exp(rng.uniform(np.log(self.lowest), np.log(self.highest), self.n_arms))
        means = np.tile(rates, (horizon, 1))
        return World(np.ones((horizon, 1)), (rng.random(means.shape) < means).astype(np.float64), means)


@dataclass(frozen=True, slots=True)
class Clicks:
    """Arm a pays 1 with probability sigmoid(b_a + slopes_a'x), else 0.

    Intercepts and slopes are new in every world: b_a ~ N(logit(rate), 1/4), slopes ~ N(0, slope_sd^2).
    """

    n_arms: int = 6
    context_dim: int = 6
    columns: Columns = "normal"
    rate: float = 0.15
    slope_sd: float = 0.5

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_name(self.columns, COLUMNS, "columns")
        require_number(self.rate, "rate", "a number between 0 and 1", lambda rate: 0 < rate < 1)
        require_positive(self.slope_sd, "slope_sd")

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        contexts = sample_contexts(self.columns, horizon, self.context_dim, rng)
        means = special.expit(
            sample_predictor(contexts, self.n_arms, float(special.logit(self.rate)), 0.5, self.slope_sd, rng)
        )
        return World(contexts, (rng.random(means.shape) < means).astype(np.float64), means)
