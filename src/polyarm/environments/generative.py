"""Environments made of generative reward models."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyarm.errors import require_count
from polyarm.types import Array, RewardModel, Rng, World


def uniform_contexts(horizon: int, context_dim: int, rng: Rng) -> Array:
    """Contexts with every entry uniform on (0, 1)."""
    return rng.random((horizon, context_dim))


def normal_contexts(horizon: int, context_dim: int, rng: Rng) -> Array:
    """Contexts with every entry standard normal."""
    return rng.standard_normal((horizon, context_dim))


@dataclass(frozen=True, slots=True)
class GenerativeBandit:
    """One reward model per arm; every world draws new parameters from each model's prior."""

    models: tuple[RewardModel[Any], ...]
    context_dim: int
    sample_contexts: Callable[[int, int, Rng], Array] = uniform_contexts

    def __post_init__(self) -> None:
        require_count(len(self.models), "number of arms")
        require_count(self.context_dim, "context_dim")

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.models)

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        params = [model.sample_params(rng) for model in self.models]
        contexts = self.sample_contexts(horizon, self.context_dim, rng)
        arms = list(zip(self.models, params, strict=True))
        means = [[model.mean_reward(p, x) for model, p in arms] for x in contexts]
        rewards = [[model.sample_reward(p, x, rng) for model, p in arms] for x in contexts]
        return World(contexts, np.array(rewards, dtype=np.float64), np.array(means, dtype=np.float64))
