"""Rewards of 0 and 1 without context, in closed form."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from polyarm.errors import (
    require,
    require_arm,
    require_context,
    require_count,
    require_generator,
    require_positive,
    require_reward,
)
from polyarm.inference.arms import with_empty_arm
from polyarm.inference.door import Door
from polyarm.inference.moments import MomentDefaults
from polyarm.inference.state_checks import require_above
from polyarm.types import Array, Rng


class BetaState(NamedTuple):
    """Numbers of ones and of zeros of every arm, (n_arms, 2)."""

    counts: Array
    made_with: str = ""

    def require_sound(self) -> None:
        """Raise unless the counts are numbers of at least 0."""
        require_above(self.counts, -1e-300, "state.counts")


def require_click(reward: float) -> float:
    """Reward, if it is 0 or 1."""
    y = require_reward(reward)
    require(y in (0.0, 1.0), "reward", "0 or 1", reward)
    return y


@dataclass(frozen=True, eq=False)
class BetaEngine(MomentDefaults):
    """An arm's rate has a Beta(prior[0] + ones, prior[1] + zeros) posterior; the context is not looked at."""

    n_arms: int
    context_dim: int
    prior: tuple[float, float] = (1.0, 1.0)
    _door: Door = field(init=False, repr=False, default_factory=Door)

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require(len(self.prior) == 2, "prior", "two numbers", self.prior)
        for number in self.prior:
            require_positive(number, "prior")

    def init(self) -> BetaState:
        """State before any reward."""
        return BetaState(np.zeros((self.n_arms, 2)), self._door.settings(self))

    def update(self, state: BetaState, context: Array, arm: int, reward: float, rng: Rng) -> BetaState:
        """State after one reward."""
        require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        y = require_click(reward)
        if state is not self._door.last:
            self._door.check(self, state)
        state.counts[a, 0 if y else 1] += 1.0
        return state

    def with_arm(self, state: BetaState) -> "tuple[BetaEngine, BetaState]":
        """The engine and its state with one more arm, the last, that has no rewards yet."""
        if state is not self._door.last:
            self._door.check(self, state)
        engine = replace(self, n_arms=self.n_arms + 1)
        return engine, with_empty_arm(state, engine.init())

    def draw_means(self, state: BetaState, context: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of every arm's rate, (n_draws, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        require_context(context, self.context_dim)
        a, b = (state.counts + self.prior).T
        return require_generator(rng).beta(a, b, (require_count(n_draws, "n_draws"), self.n_arms))

    def moments(self, state: BetaState, context: Array) -> Array:
        """Mean and standard deviation of every arm's rate, (2, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        require_context(context, self.context_dim)
        a, b = (state.counts + self.prior).T
        mean = a / (a + b)
        return np.stack([mean, np.sqrt(mean * (1 - mean) / (a + b + 1))])
