"""Bayesian upper confidence bounds."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from polyarm.choosing import PolicyDefaults, best_of
from polyarm.errors import require_count
from polyarm.types import AnyEngine, Array, Choice, Mask, Rng


class BayesUCBState(NamedTuple):
    """State of the engine and number of rewards so far."""

    inner: Any
    n_rewards: int


@dataclass(frozen=True)
class BayesUCB(PolicyDefaults[BayesUCBState]):
    """Play the arm with the highest upper quantile of its mean reward, at level 1 - 1/(t log(T)^c).

    Kaufmann, Cappe & Garivier 2012, with quantiles of `n_draws` posterior draws; without a horizon the logarithm is
    left out (c = 0), which is their recommendation.

    >>> import numpy as np
    >>> from polyarm import make_policy
    >>> policy = BayesUCB(make_policy("linear", 3, 2).engine, n_draws=50)
    >>> policy.choose(policy.init(), np.ones(2), np.random.default_rng(0)).arm in range(3)
    True
    """

    n_choices: ClassVar[int] = 100  # each of them takes n_draws draws

    engine: AnyEngine
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

    def choose(self, state: BayesUCBState, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """Arm to play in this context; ties go to the lowest number."""
        draws = self.engine.draw_means(state.inner, context, self.n_draws, rng)
        scores = np.quantile(draws, self.level(state.n_rewards), axis=0)
        return best_of(scores, eligible)

    def engine_state(self, state: BayesUCBState) -> Any:
        """State of the engine."""
        return state.inner

    def with_arm(self, state: BayesUCBState) -> "tuple[BayesUCB, BayesUCBState]":
        """The policy and the state with one more arm."""
        engine, inner = self.engine.with_arm(state.inner)
        return replace(self, engine=engine), state._replace(inner=inner)

    def update(self, state: BayesUCBState, context: Array, arm: int, reward: float, rng: Rng) -> BayesUCBState:
        """State after one reward."""
        return BayesUCBState(self.engine.update(state.inner, context, arm, reward, rng), state.n_rewards + 1)
