"""Rewards on a scale of marks."""

from dataclasses import dataclass

import numpy as np

from polyarm import special
from polyarm.environments.predictors import sample_predictor
from polyarm.errors import require, require_count
from polyarm.types import Rng, World


@dataclass(frozen=True, slots=True)
class Ratings:
    """Arm a pays a mark from 1 on, ordinal logistic: P(mark > k) = sigmoid(b_a + slopes_a'x - cuts[k - 1]).

    Coefficients are new in every world: b_a ~ N(0, 0.5^2), slopes ~ N(0, 0.5^2).  Contexts are standard normal.
    """

    n_arms: int = 5
    context_dim: int = 4
    cuts: tuple[float, ...] = (-2.5, -1.0, 0.5, 2.0)

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        ordered = bool((np.diff(self.cuts) > 0).all()) and len(self.cuts) > 0
        require(ordered, "cuts", "at least one number, in ascending order", self.cuts)

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        contexts = rng.standard_normal((horizon, self.context_dim))
        latent = sample_predictor(contexts, self.n_arms, 0.0, 0.5, 0.5, rng)
        above = special.expit(latent[..., None] - np.asarray(self.cuts))
        marks = (rng.random(latent.shape)[..., None] < above).sum(axis=2)
        return World(contexts, 1.0 + marks, 1.0 + above.sum(axis=2))
