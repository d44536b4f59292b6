"""Linear arms whose slopes change over time."""

from dataclasses import dataclass

import numpy as np

from polyarm.errors import require_count, require_positive
from polyarm.types import Array, Rng, World


@dataclass(frozen=True, slots=True)
class Drift:
    """Arm a pays N(slopes[t, a]'x, noise_sd^2); regret is against the best arm of the moment.

    Every slope is a stationary process with mean 0 and variance 1.  Smooth: autoregressive, correlation 1/2 between
    steps that are `half_life` apart.  Abrupt: drawn anew every `half_life` steps.  Contexts: entries U(0, 1).
    """

    n_arms: int = 4
    context_dim: int = 2
    noise_sd: float = 0.5
    half_life: float = 250.0
    abrupt: bool = False

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_positive(self.noise_sd, "noise_sd")
        require_positive(self.half_life, "half_life")

    def sample_slopes(self, horizon: int, rng: Rng) -> Array:
        """Slopes of every arm at every step, (horizon, n_arms, context_dim)."""
        shocks = rng.standard_normal((horizon, self.n_arms, self.context_dim))
        if self.abrupt:
            era = (np.arange(horizon) // self.half_life).astype(np.int64)
            return np.asarray(shocks[era])
        from scipy.signal import lfilter  # takes a while to load, and only this needs it

        keep = 0.5 ** (1 / self.half_life)
        shocks[1:] *= np.sqrt(1 - keep**2)
        return np.asarray(lfilter([1.0], [1.0, -keep], shocks, axis=0))

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        slopes = self.sample_slopes(horizon, rng)
        contexts = rng.random((horizon, self.context_dim))
        means = np.einsum("td,tad->ta", contexts, slopes)
        return World(contexts, means + self.noise_sd * rng.standard_normal(means.shape), means)
