"""Mixtures without context, where a single Gaussian misjudges how sure it is."""

from dataclasses import dataclass

import numpy as np

from polyarm.environments.mixtures import Component, MixtureBandit, _sample_arm
from polyarm.types import Rng, World


@dataclass(frozen=True, slots=True)
class StaticMixture(MixtureBandit):
    """Each arm pays from its own mixture at every step; the context is the constant 1, a slope is a location."""

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        contexts = np.ones((horizon, 1))
        rewards = np.column_stack([_sample_arm(arm, contexts, rng) for arm in self.arms])
        means = [sum(part.weight * part.slopes[0] for part in arm) for arm in self.arms]
        return World(contexts, rewards, np.tile(np.array(means, dtype=np.float64), (horizon, 1)))


def two_modes(mean: float, distance: float = 3.0) -> tuple[Component, Component]:
    """An arm with modes of sd 1 at mean - distance and mean + distance."""
    return Component(0.5, (mean - distance,)), Component(0.5, (mean + distance,))


BIMODAL_BEST = StaticMixture((two_modes(0.2), (Component(1.0, (0.0,)),)))
BIMODAL_BOTH = StaticMixture((two_modes(0.5, 5.0), two_modes(0.0, 5.0)))
