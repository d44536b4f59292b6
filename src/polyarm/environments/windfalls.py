"""Ordinary rewards, and now and then one that is far larger than all of them."""

from dataclasses import dataclass

import numpy as np

from polyarm import special
from polyarm.environments.predictors import sample_predictor
from polyarm.errors import require_count, require_number
from polyarm.types import Rng, World

LOG_SD = 0.3


@dataclass(frozen=True, slots=True)
class Windfalls:
    """Arm a pays b_a'(1, x) + N(0, 1) and, with probability sigmoid(c_a'(1, x)), `size` times LogN(0, 0.3^2) besides.

    A size below 0 is that of a loss.  Coefficients are new in every world: b is normal with standard deviation 0.3, c
    has slopes of standard deviation 0.5 and intercepts around the logarithm of the odds of `rate`.  Contexts are
    standard normal.
    """

    n_arms: int = 4
    context_dim: int = 3
    rate: float = 0.03
    size: float = 50.0

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_number(self.rate, "rate", "a number between 0 and 1", lambda rate: 0 < rate < 1)
        require_number(self.size, "size", "a finite number")

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        contexts = rng.standard_normal((horizon, self.context_dim))
        usual = sample_predictor(contexts, self.n_arms, 0.0, 0.3, 0.3, rng)
        odds = sample_predictor(contexts, self.n_arms, float(special.logit(self.rate)), 0.5, 0.5, rng)
        rates = special.expit(odds)
        sizes = self.size * np.exp(LOG_SD * rng.standard_normal(rates.shape))
        rewards = usual + rng.standard_normal(rates.shape) + np.where(rng.random(rates.shape) < rates, sizes, 0.0)
        return World(contexts, rewards, usual + rates * self.size * np.exp(0.5 * LOG_SD**2))
