"""Rewards that count something."""

from dataclasses import dataclass

import numpy as np

from polyarm.environments.predictors import sample_predictor
from polyarm.errors import require_count, require_number, require_positive
from polyarm.types import Rng, World


@dataclass(frozen=True, slots=True)
class Counts:
    """Arm a pays a count with mean m = exp(b_a + slopes_a'x): Poisson, or with `dispersion` r of variance m + r m^2.

    The latter is negative binomial.  Coefficients are new in every world: b_a ~ N(log(level), 0.3^2), slopes
    ~ N(0, 0.3^2).  Contexts are standard normal.
    """

    n_arms: int = 5
    context_dim: int = 4
    level: float = 2.5
    dispersion: float = 0.0

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_positive(self.level, "level")
        require_number(self.dispersion, "dispersion", "a number of at least 0", lambda r: r >= 0)

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        contexts = rng.standard_normal((horizon, self.context_dim))
        means = np.exp(sample_predictor(contexts, self.n_arms, float(np.log(self.level)), 0.3, 0.3, rng))
        rates = means
        if self.dispersion > 0:
            rates = means * self.dispersion * rng.standard_gamma(1 / self.dispersion, means.shape)
        return World(contexts, rng.poisson(rates).astype(np.float64), means)
