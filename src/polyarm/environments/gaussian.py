"""Arms with fixed Gaussian rewards and no context."""

from dataclasses import dataclass

import numpy as np

from polyarm.errors import require_count, require_positive
from polyarm.models import Objective
from polyarm.types import Array, Rng, World


@dataclass(frozen=True, slots=True)
class StaticGaussian:
    """Arm a pays N(means[a], noise_sd^2) at every step; the context is the constant 1."""

    means: tuple[float, ...]
    noise_sd: float = 1.0

    def __post_init__(self) -> None:
        require_count(len(self.means), "number of arms")
        require_positive(self.noise_sd, "noise_sd")

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.means)

    @property
    def context_dim(self) -> int:
        """Length of a context: the constant alone."""
        return 1

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        means = np.tile(np.asarray(self.means, dtype=np.float64), (horizon, 1))
        rewards = means + self.noise_sd * rng.standard_normal(means.shape)
        return World(np.ones((horizon, 1)), rewards, means)

    def values(self, world: World, objective: Objective) -> Array:
        """What every arm was worth at every step of a world, (T, A)."""
        return objective.of_mixture(1.0, world.means[:, :, None], self.noise_sd**2)

    def density(self, context: Array, arm: int, rewards: Array) -> Array:
        """Density of an arm's reward at each of the given rewards."""
        from scipy.stats import norm  # takes a while to load, and only this needs it

        return np.asarray(norm.pdf(rewards, self.means[arm], self.noise_sd))
