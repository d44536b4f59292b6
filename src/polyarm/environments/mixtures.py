"""Arms whose reward is a mixture of linear Gaussians."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyarm.errors import require, require_count
from polyarm.models import Objective
from polyarm.types import Array, Rng, World


class Component(NamedTuple):
    """One linear Gaussian of a mixture: weight, slopes over the context, and the sd around them."""

    weight: float
    slopes: tuple[float, ...]
    noise_sd: float = 1.0


@dataclass(frozen=True, slots=True)
class MixtureBandit:
    """Each arm pays from its own mixture; every entry of the context is uniform on (0, 1)."""

    arms: tuple[tuple[Component, ...], ...]

    def __post_init__(self) -> None:
        require_count(len(self.arms), "number of arms")
        for arm in self.arms:
            weights = [part.weight for part in arm]
            require(
                min(weights, default=0) > 0 and bool(np.isclose(sum(weights), 1)),
                "weights",
                "above 0 with sum 1",
                weights,
            )
            require(all(part.noise_sd > 0 for part in arm), "noise_sd", "above 0", arm)
            dims = {len(part.slopes) for part in arm} | {self.context_dim}
            require(len(dims) == 1, "slopes", "of one length for every component", arm)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return len(self.arms[0][0].slopes)

    @property
    def n_components(self) -> tuple[int, ...]:
        """Number of components of each arm."""
        return tuple(len(arm) for arm in self.arms)

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        contexts = rng.random((horizon, self.context_dim))
        rewards = np.column_stack([_sample_arm(arm, contexts, rng) for arm in self.arms])
        return World(contexts, rewards, contexts @ np.array([_mean_slopes(arm) for arm in self.arms]).T)

    def values(self, world: World, objective: Objective) -> Array:
        """What every arm was worth at every step of a world, (T, A)."""
        columns = [
            objective.of_mixture(
                [part.weight for part in arm],
                world.contexts @ np.array([part.slopes for part in arm], dtype=np.float64).T,
                [part.noise_sd**2 for part in arm],
            )
            for arm in self.arms
        ]
        return np.column_stack(columns)

    def density(self, context: Array, arm: int, rewards: Array) -> Array:
        """Density of an arm's reward in this context at each of the given rewards."""
        from scipy.stats import norm  # takes a while to load, and only this needs it

        parts = (p.weight * norm.pdf(rewards, np.dot(p.slopes, context), p.noise_sd) for p in self.arms[arm])
        return np.asarray(sum(parts))


def _mean_slopes(arm: tuple[Component, ...]) -> Array:
    return np.asarray(sum(part.weight * np.asarray(part.slopes, dtype=np.float64) for part in arm))


def _sample_arm(arm: tuple[Component, ...], contexts: Array, rng: Rng) -> Array:
    which = rng.choice(len(arm), size=len(contexts), p=[part.weight for part in arm])
    slopes = np.array([part.slopes for part in arm], dtype=np.float64)[which]
    noise_sd = np.array([part.noise_sd for part in arm])[which]
    return np.asarray((contexts * slopes).sum(axis=1) + noise_sd * rng.standard_normal(len(contexts)))
