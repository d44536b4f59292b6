"""Linear arms with Laplace noise."""

from dataclasses import dataclass

from polyarm.environments.linear import RandomLinear
from polyarm.errors import require_count, require_positive
from polyarm.types import Rng, World


@dataclass(frozen=True, slots=True)
class LinearLaplace:
    """Arm a pays slopes[a]'x + Laplace noise of standard deviation `noise_sd`.

    Slopes are new in every world: entries U(-1, 1), scaled to length 1.  Contexts are standard normal.
    """

    n_arms: int = 6
    context_dim: int = 5
    noise_sd: float = 1.0

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_positive(self.noise_sd, "noise_sd")

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        slopes = RandomLinear(self.n_arms, self.context_dim, self.context_dim).sample_slopes(rng)
        contexts = rng.standard_normal((horizon, self.context_dim))
        means = contexts @ slopes.T
        return World(contexts, means + rng.laplace(0.0, self.noise_sd / 2**0.5, means.shape), means)
