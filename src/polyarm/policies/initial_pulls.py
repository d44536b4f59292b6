"""Round-robin pulls before a policy takes over."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from polyarm.choosing import PolicyDefaults, one_at, surely_best_of
from polyarm.errors import require_count, require_eligible
from polyarm.types import AnyEngine, AnyPolicy, Array, Choice, Mask, Rng


class InitialPullsState(NamedTuple):
    """State of the inner policy, and the number of rewards so far."""

    inner: Any
    n_rewards: int


@dataclass(frozen=True)
class InitialPulls(PolicyDefaults[InitialPullsState]):
    """Play every arm `pulls` times in turn; then follow the inner policy, which learns from the start.

    Where the arm whose turn it is may not be played, the next one that may be is.  An arm that is added when all have
    had their turn is left to the inner policy.

    >>> import numpy as np
    >>> from polyarm import Uniform
    >>> policy, rng = InitialPulls(Uniform(3, 1), n_arms=3, pulls=1), np.random.default_rng(0)
    >>> state, arms = policy.init(), []
    >>> for _ in range(3):
    ...     arms.append(policy.choose(state, np.ones(1), rng).arm)
    ...     state = policy.update(state, np.ones(1), arms[-1], 0.0, rng)
    >>> arms
    [0, 1, 2]
    """

    policy: AnyPolicy
    n_arms: int
    pulls: int = 2

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.pulls, "pulls", at_least=0)

    def init(self) -> InitialPullsState:
        """State before any reward."""
        return InitialPullsState(self.policy.init(), 0)

    def choose(self, state: InitialPullsState, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """Arm to play in this context."""
        more = () if eligible is None else (eligible,)  # a user's policy may know of no eligible arms
        choice = self.policy.choose(state.inner, context, rng, *more)
        return choice if self._is_over(state) else surely_best_of(self._turn(state, eligible), eligible)

    def probabilities(self, state: InitialPullsState, context: Array, rng: Rng, eligible: Mask | None = None) -> Array:
        """Distribution to draw the arm from, (n_arms,)."""
        if self._is_over(state):
            return self.policy.probabilities(state.inner, context, rng, eligible)
        return self._turn(state, eligible)

    def probabilities_many(
        self, state: InitialPullsState, contexts: Array, rng: Rng, eligible: Mask | None = None
    ) -> Array:
        """Distributions for many contexts in the same state, (n, n_arms)."""
        if self._is_over(state):
            return self.policy.probabilities_many(state.inner, contexts, rng, eligible)
        return np.tile(self._turn(state, eligible), (len(contexts), 1))

    def _is_over(self, state: InitialPullsState) -> bool:
        return state.n_rewards >= self.pulls * self.n_arms

    def _turn(self, state: InitialPullsState, eligible: Mask | None) -> Array:
        mask = require_eligible(eligible, self.n_arms)
        first = state.n_rewards % self.n_arms
        wait = 0 if mask is None else int(np.roll(mask, -first).argmax())
        return one_at((first + wait) % self.n_arms, self.n_arms)

    @property
    def engine(self) -> AnyEngine:
        """Engine of the inner policy."""
        inner: Any = self.policy
        engine: AnyEngine = inner.engine
        return engine

    def engine_state(self, state: InitialPullsState) -> Any:
        """State of the inner policy's engine."""
        return self.policy.engine_state(state.inner)

    def with_arm(self, state: InitialPullsState) -> "tuple[InitialPulls, InitialPullsState]":
        """The policy and the state with one more arm."""
        policy, inner = self.policy.with_arm(state.inner)
        n_rewards = max(state.n_rewards, self.pulls * (self.n_arms + 1)) if self._is_over(state) else state.n_rewards
        return replace(self, policy=policy, n_arms=self.n_arms + 1), InitialPullsState(inner, n_rewards)

    def update(self, state: InitialPullsState, context: Array, arm: int, reward: float, rng: Rng) -> InitialPullsState:
        """State after one reward."""
        inner = self.policy.update(state.inner, context, arm, reward, rng)
        return InitialPullsState(inner, state.n_rewards + 1)
