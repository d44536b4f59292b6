"""Arms with exponential rewards whose rate is linear in the context."""

from dataclasses import dataclass

import numpy as np

from polyarm.errors import require, require_array
from polyarm.types import Array, Rng, World


@dataclass(frozen=True, slots=True)
class ExponentialBandit:
    """Arm a pays Exponential(rate = rates[a]'x), with every entry of the context x uniform on (0, 1).

    The mean 1 / rate has infinite variance over contexts near 0, so judge by medians and quantiles too.
    """

    rates: tuple[tuple[float, ...], ...] = ((1.0, 1.0), (2.0, 2.0), (3.0, 3.0))

    def __post_init__(self) -> None:
        rates = require_array(self.rates, "rates")
        require(
            rates.ndim == 2 and bool((rates > 0).all()),
            "rates",
            "one row of positive numbers per arm",
            self.rates,
        )

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.rates)

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return len(self.rates[0])

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        contexts = 1.0 - rng.random((horizon, self.context_dim))  # (0, 1]: a rate is never 0
        means = 1.0 / (contexts @ np.asarray(self.rates, dtype=np.float64).T)
        return World(contexts, means * rng.standard_exponential(means.shape), means)

    def density(self, context: Array, arm: int, rewards: Array) -> Array:
        """Density of an arm's reward in this context at each of the given rewards."""
        from scipy.stats import expon  # takes a while to load, and only this needs it

        return np.asarray(expon.pdf(rewards, scale=1.0 / np.dot(self.rates[arm], context)))
