"""Bayesian upper confidence bounds."""

import math
from dataclasses import dataclass
from typing import Generic, NamedTuple

import numpy as np

from polyarm.errors import require_count
from polyarm.types import Array, Choice, Engine, Rng, State


class BayesUCBState(NamedTuple):
    """State of the engine and number of rewards so far."""

    inner: object
    n_rewards: int


@dataclass(frozen=True)
class BayesUCB(Generic[State]):
    """Play the arm with the highest upper quantile of its mean reward, at level 1 - 1/(t log(T)^c).

    Kaufmann, Cappe & Garivier 2012, with quantiles of `n_draws` posterior draws; without a horizon the logarithm is
    left out (c = 0), which is their recommendation.
    """

    engine: Engine[State]
    n_draws: int = 200
    horizon: int | None = None
    exponent: float = 0.0

    def __post_init__(self) -> None:
        require_count(self.n_draws, "n_draws", at_least=2)
        if self.horizon is not None:
            require_count(self.horizon, "horizon", at_least=2)

    def init(self) -> BayesUCBState:
        """State before any reward."""
        return BayesUCBState(self.engine.init(), 0)

    def level(self, n_rewards: int) -> float:
        """Quantile level after that many rewards."""
        t = n_rewards + 1
        slack = t * math.log(self.horizon) ** self.exponent if self.horizon else t
        return max(0.5, 1 - 1 / slack)

    def choose(self, state: BayesUCBState, context: Array, rng: Rng) -> Choice:
        """Arm to play in this context; ties go to the lowest number."""
        inner: State = state.inner  # type: ignore[assignment]
        draws = self.engine.draw_means(inner, context, self.n_draws, rng)
        scores = np.quantile(draws, self.level(state.n_rewards), axis=0)
        return Choice(arm=int(scores.argmax()), scores=scores)

    def update(self, state: BayesUCBState, context: Array, arm: int, reward: float, rng: Rng) -> BayesUCBState:
        """State after one reward."""
        inner: State = state.inner  # type: ignore[assignment]
        return BayesUCBState(self.engine.update(inner, context, arm, reward, rng), state.n_rewards + 1)
