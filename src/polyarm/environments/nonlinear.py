"""Arms whose mean reward is a smooth function of the context."""

from dataclasses import dataclass

import numpy as np

from polyarm.errors import require_count, require_positive
from polyarm.types import Array, Rng, World


@dataclass(frozen=True, slots=True)
class SmoothBandit:
    """Arm a pays N(f_a(x), noise_sd^2); every world draws new functions f_a, sums of random waves.

    f(x) = sqrt(2 / n_waves) sum_k cos(w_k'x / length_scale + phase_k), w_k standard normal: nearly a draw of a Gaussian
    process with mean 0, variance 1 and that length scale (Rahimi & Recht 2007).  Contexts: entries U(-1, 1).
    """

    n_arms: int = 4
    context_dim: int = 2
    length_scale: float = 0.7
    noise_sd: float = 0.3
    n_waves: int = 50

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_positive(self.length_scale, "length_scale")
        require_positive(self.noise_sd, "noise_sd")
        require_count(self.n_waves, "n_waves")

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        contexts = rng.uniform(-1.0, 1.0, (horizon, self.context_dim))
        means = np.column_stack([self._wave(contexts, rng) for _ in range(self.n_arms)])
        return World(contexts, means + self.noise_sd * rng.standard_normal(means.shape), means)

    def _wave(self, contexts: Array, rng: Rng) -> Array:
        frequencies = rng.standard_normal((self.context_dim, self.n_waves)) / self.length_scale
        phases = rng.uniform(0.0, 2 * np.pi, self.n_waves)
        return np.asarray(np.sqrt(2 / self.n_waves) * np.cos(contexts @ frequencies + phases).sum(axis=1))
