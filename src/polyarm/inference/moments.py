"""What follows from the moments that an engine knows."""

from typing import Any

import numpy as np

from polyarm.errors import require_contexts
from polyarm.kernels import information
from polyarm.kernels._jit import rng_handle
from polyarm.types import Array, Rng


def draw_arm(moments: Array, noise: Array, n_draws: int, power: float, rng: Rng) -> tuple[int, Array, Array]:
    """An arm by information-directed sampling, with scores and mix."""
    mix, scores = np.empty(len(noise)), np.empty(len(noise))
    arm = information.choose(moments, noise, n_draws, power, mix, scores, rng_handle(rng))
    return arm, scores, mix


class MomentDefaults:
    """Inherit from it to write an engine whose `moments` give the rest."""

    def moments_many(self, state: Any, contexts: Array) -> Array:
        """Mean and standard deviation of every arm's mean reward in many contexts, (n, 2, n_arms)."""
        engine: Any = self
        return np.stack([engine.moments(state, x) for x in require_contexts(contexts, engine.context_dim)])

    def expected_means(self, state: Any, context: Array) -> Array:
        """Posterior expectation of every arm's mean reward, (n_arms,)."""
        engine: Any = self
        return np.asarray(engine.moments(state, context)[0])
