"""Linear arms some of whose rewards are outliers."""

from dataclasses import dataclass

import numpy as np

from polyarm.environments.linear import RandomLinear
from polyarm.errors import require_count, require_number, require_positive
from polyarm.models import Objective
from polyarm.types import Array, Rng, World


@dataclass(frozen=True, slots=True)
class LinearOutliers:
    """Arm a pays slopes[a]'x + noise, whose sd is `outlier_sd` with probability `outlier_share`, else `noise_sd`.

    Slopes are new in every world: entries U(-1, 1), scaled to length 1.  Contexts are standard normal.
    """

    n_arms: int = 8
    context_dim: int = 10
    noise_sd: float = 0.5
    outlier_share: float = 0.1
    outlier_sd: float = 10.0

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_positive(self.noise_sd, "noise_sd")
        require_positive(self.outlier_sd, "outlier_sd")
        require_number(self.outlier_share, "outlier_share", "a number from 0 to 1", lambda share: 0 <= share <= 1)

    @property
    def n_components(self) -> tuple[int, ...]:
        """Number of Gaussian components of each arm."""
        return (1 if self.outlier_share in (0, 1) else 2,) * self.n_arms

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        slopes = RandomLinear(self.n_arms, self.context_dim, self.context_dim).sample_slopes(rng)
        contexts = rng.standard_normal((horizon, self.context_dim))
        means = contexts @ slopes.T
        noise_sd = np.where(rng.random(means.shape) < self.outlier_share, self.outlier_sd, self.noise_sd)
        return World(contexts, means + noise_sd * rng.standard_normal(means.shape), means)

    def values(self, world: World, objective: Objective) -> Array:
        """What every arm was worth at every step of a world, (T, A)."""
        weights = [1 - self.outlier_share, self.outlier_share]
        return objective.of_mixture(weights, world.means[:, :, None], [self.noise_sd**2, self.outlier_sd**2])
