"""Arms whose mean reward is linear in the context."""

from dataclasses import dataclass

import numpy as np

from polyarm.errors import require, require_array, require_count, require_positive
from polyarm.models import Objective
from polyarm.types import Array, Rng, World


@dataclass(frozen=True, slots=True)
class LinearGaussian:
    """Arm a pays N(slopes[a]'x, noise_sd^2), with every entry of the context x uniform on (0, 1)."""

    slopes: tuple[tuple[float, ...], ...]
    noise_sd: float = 1.0

    def __post_init__(self) -> None:
        require(require_array(self.slopes, "slopes").ndim == 2, "slopes", "one row per arm", self.slopes)
        require_positive(self.noise_sd, "noise_sd")

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.slopes)

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return len(self.slopes[0])

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        contexts = rng.random((horizon, self.context_dim))
        means = contexts @ np.asarray(self.slopes, dtype=np.float64).T
        return World(contexts, means + self.noise_sd * rng.standard_normal(means.shape), means)

    def values(self, world: World, objective: Objective) -> Array:
        """What every arm was worth at every step of a world, (T, A)."""
        return objective.of_mixture(1.0, world.means[:, :, None], self.noise_sd**2)

    def density(self, context: Array, arm: int, rewards: Array) -> Array:
        """Density of an arm's reward in this context at each of the given rewards."""
        from scipy.stats import norm  # takes a while to load, and only this needs it

        return np.asarray(norm.pdf(rewards, np.dot(self.slopes[arm], context), self.noise_sd))


@dataclass(frozen=True, slots=True)
class RandomLinear:
    """The linear bandit of the Deep Bayesian Bandits Showdown, with new slopes in every world.

    Slopes of an arm: entries U(-1, 1), all but `n_nonzero` of them set to 0, then scaled to length 1.
    Contexts: standard normal.  Noise of arm a: N(0, (noise_sd (a + 1))^2).
    """

    n_arms: int = 8
    context_dim: int = 10
    n_nonzero: int = 10
    noise_sd: float = 0.01

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require(1 <= self.n_nonzero <= self.context_dim, "n_nonzero", "from 1 to context_dim", self.n_nonzero)
        require_positive(self.noise_sd, "noise_sd")

    def sample_slopes(self, rng: Rng) -> Array:
        """Slopes of every arm, (n_arms, context_dim), each row of length 1."""
        slopes = rng.uniform(-1.0, 1.0, (self.n_arms, self.context_dim))
        order = rng.permuted(np.tile(np.arange(self.context_dim), (self.n_arms, 1)), axis=1)
        slopes[order >= self.n_nonzero] = 0.0
        return np.asarray(slopes / np.linalg.norm(slopes, axis=1, keepdims=True))

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        slopes = self.sample_slopes(rng)
        contexts = rng.standard_normal((horizon, self.context_dim))
        means = contexts @ slopes.T
        return World(contexts, means + self.noise_sds * rng.standard_normal(means.shape), means)

    @property
    def noise_sds(self) -> Array:
        """Standard deviation of every arm's noise, (n_arms,)."""
        return np.asarray(self.noise_sd * np.arange(1, self.n_arms + 1), dtype=np.float64)

    def values(self, world: World, objective: Objective) -> Array:
        """What every arm was worth at every step of a world, (T, A)."""
        return objective.of_mixture(1.0, world.means[:, :, None], self.noise_sds[:, None] ** 2)
