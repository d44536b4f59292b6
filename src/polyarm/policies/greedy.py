"""The greedy rule."""

from dataclasses import dataclass, replace

from polyarm.choosing import PolicyDefaults, surely_best_of
from polyarm.types import Array, Choice, Engine, Mask, Rng, State


@dataclass(frozen=True)
class Greedy(PolicyDefaults[State]):
    """Play the arm whose mean reward has the highest posterior expectation; it never explores.

    >>> import numpy as np
    >>> from polyarm import make_policy
    >>> policy, rng = Greedy(make_policy("linear", 2, 1).engine), np.random.default_rng(0)
    >>> state = policy.update(policy.init(), np.ones(1), 1, 3.0, rng)
    >>> policy.choose(state, np.ones(1), rng).arm
    1
    """

    engine: Engine[State]

    def init(self) -> State:
        """State before any reward."""
        return self.engine.init()

    def choose(self, state: State, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """Arm to play in this context; ties go to the lowest number."""
        scores = self.engine.expected_means(state, context)
        return surely_best_of(scores, eligible)

    def with_arm(self, state: State) -> "tuple[Greedy[State], State]":
        """The policy and the state with one more arm."""
        engine, wider = self.engine.with_arm(state)
        return replace(self, engine=engine), wider

    def update(self, state: State, context: Array, arm: int, reward: float, rng: Rng) -> State:
        """State after one reward."""
        return self.engine.update(state, context, arm, reward, rng)
