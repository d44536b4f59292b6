"""The policy that learns nothing."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from polyarm.choosing import PolicyDefaults
from polyarm.errors import (
    require_arm,
    require_context,
    require_count,
    require_eligible,
    require_generator,
    require_reward,
)
from polyarm.inference.arms import with_empty_arm
from polyarm.types import Array, Choice, Mask, Rng


class NoState(NamedTuple):
    """Nothing."""


@dataclass(frozen=True)
class Uniform(PolicyDefaults[NoState]):
    """Play every arm with the same probability.

    >>> import numpy as np
    >>> policy = Uniform(n_arms=4, context_dim=1)
    >>> policy.probabilities(policy.init(), np.ones(1), np.random.default_rng(0)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    n_arms: int
    context_dim: int

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")

    def init(self) -> NoState:
        """State before any reward."""
        return NoState()

    def choose(self, state: NoState, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """Arm to play in this context."""
        require_context(context, self.context_dim)
        mask = require_eligible(eligible, self.n_arms)
        require_generator(rng)
        if mask is None:
            shares = np.full(self.n_arms, 1 / self.n_arms)
            return Choice(int(rng.integers(self.n_arms)), shares, shares)
        arms = np.flatnonzero(mask)
        shares = mask / len(arms)
        return Choice(int(arms[rng.integers(len(arms))]), np.where(mask, shares, -np.inf), shares)

    def with_arm(self, state: NoState) -> "tuple[Uniform, NoState]":
        """The policy and the state with one more arm, without rewards."""
        policy = replace(self, n_arms=self.n_arms + 1)
        return policy, with_empty_arm(state, policy.init())

    def update(self, state: NoState, context: Array, arm: int, reward: float, rng: Rng) -> NoState:
        """State after one reward."""
        require_context(context, self.context_dim)
        require_arm(arm, self.n_arms)
        require_reward(reward)
        return state
