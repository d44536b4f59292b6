"""Round-robin pulls before a policy takes over."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyarm.errors import require_count
from polyarm.types import AnyPolicy, Array, Choice, Rng


class InitialPullsState(NamedTuple):
    """State of the inner policy, and the number of rewards so far."""

    inner: Any
    n_rewards: int


@dataclass(frozen=True)
class InitialPulls:
    """Play every arm `pulls` times in turn; then follow the inner policy, which learns from the start."""

    policy: AnyPolicy
    n_arms: int
    pulls: int = 2

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.pulls, "pulls", at_least=0)

    def init(self) -> InitialPullsState:
        """State before any reward."""
        return InitialPullsState(self.policy.init(), 0)

    def choose(self, state: InitialPullsState, context: Array, rng: Rng) -> Choice:
        """Arm to play in this context."""
        choice = self.policy.choose(state.inner, context, rng)
        if state.n_rewards >= self.pulls * self.n_arms:
            return choice
        arm = state.n_rewards % self.n_arms
        return Choice(arm=arm, scores=np.eye(self.n_arms)[arm])

    def update(self, state: InitialPullsState, context: Array, arm: int, reward: float, rng: Rng) -> InitialPullsState:
        """State after one reward."""
        inner = self.policy.update(state.inner, context, arm, reward, rng)
        return InitialPullsState(inner, state.n_rewards + 1)
