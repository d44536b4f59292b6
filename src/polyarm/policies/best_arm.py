"""The probability that each arm is the best one."""

from typing import NamedTuple

import numpy as np

from polyarm.errors import require_count
from polyarm.types import Array, Engine, Rng, State


class BestArm(NamedTuple):
    """Probability of being best of every arm, and the standard error of that Monte Carlo estimate, both (n_arms,)."""

    probability: Array
    standard_error: Array


def probability_best(engine: Engine[State], state: State, context: Array, n_draws: int, rng: Rng) -> BestArm:
    """How often each arm is best among joint posterior draws: what Thompson sampling plays it with."""
    draws = engine.draw_means(state, context, require_count(n_draws, "n_draws"), rng)
    wins = np.bincount(draws.argmax(axis=1), minlength=draws.shape[1])
    share = wins / n_draws
    pulled_in = (wins + 1) / (n_draws + 2)  # Agresti-Coull: a share of 0 or 1 is not known without error
    return BestArm(share, np.sqrt(pulled_in * (1 - pulled_in) / n_draws))
