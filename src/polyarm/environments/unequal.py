"""Linear arms whose noise differs by factors."""

from dataclasses import dataclass

import numpy as np

from polyarm.environments.linear import RandomLinear
from polyarm.errors import require, require_count, require_positive
from polyarm.types import Rng, World


@dataclass(frozen=True, slots=True)
class UnequalNoise:
    """Arm a pays N(slopes[a]'x, sd_a^2), the sds in equal ratios from `lowest_sd` to `highest_sd`.

    Slopes are new in every world: entries U(-1, 1), scaled to length `slope_norm`.  Contexts are standard normal.
    """

    n_arms: int = 6
    context_dim: int = 2
    lowest_sd: float = 0.05
    highest_sd: float = 20.0
    slope_norm: float = 1.0

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms", at_least=2)
        require_count(self.context_dim, "context_dim")
        require_positive(self.slope_norm, "slope_norm")
        ordered = 0 < self.lowest_sd <= self.highest_sd < np.inf
        require(ordered, "lowest_sd and highest_sd", "ordered and above 0", (self.lowest_sd, self.highest_sd))

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        slopes = RandomLinear(self.n_arms, self.context_dim, self.context_dim).sample_slopes(rng)
        contexts = rng.standard_normal((horizon, self.context_dim))
        means = self.slope_norm * contexts @ slopes.T
        noise_sd = np.geomspace(self.lowest_sd, self.highest_sd, self.n_arms)
        return World(contexts, means + noise_sd * rng.standard_normal(means.shape), means)
