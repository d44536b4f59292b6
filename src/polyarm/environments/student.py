"""Linear arms with Student-t noise."""

from dataclasses import dataclass

from polyarm.environments.linear import RandomLinear
from polyarm.errors import require_count, require_number, require_positive
from polyarm.types import Rng, World


@dataclass(frozen=True, slots=True)
class LinearStudent:
    """Arm a pays slopes[a]'x + scale t(dof); with 2 degrees of freedom or fewer the variance is infinite.

    Slopes are new in every world: entries U(-1, 1), scaled to length 1.  Contexts are standard normal.
    """

    n_arms: int = 8
    context_dim: int = 10
    dof: float = 2.0
    scale: float = 0.5

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_number(self.dof, "dof", "a number above 1, so that means exist", lambda dof: dof > 1)
        require_positive(self.scale, "scale")

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        slopes = RandomLinear(self.n_arms, self.context_dim, self.context_dim).sample_slopes(rng)
        contexts = rng.standard_normal((horizon, self.context_dim))
        means = contexts @ slopes.T
        return World(contexts, means + self.scale * rng.standard_t(self.dof, means.shape), means)
