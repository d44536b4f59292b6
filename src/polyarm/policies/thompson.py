"""Thompson sampling."""

from dataclasses import dataclass, replace
from typing import Any

from polyarm.choosing import PolicyDefaults, best_of, win_shares
from polyarm.errors import require_count
from polyarm.models.objectives import MEAN, Objective
from polyarm.policies.objective import draw_worths
from polyarm.types import Array, Choice, Engine, Mask, Rng, State


@dataclass(frozen=True)
class ThompsonSampling(PolicyDefaults[State]):
    """Play the arm that is best in one joint posterior draw; `probabilities` counts the best in `n_draws` of them.

    Best by its mean reward, or by another `objective` that the engine draws.

    >>> import numpy as np
    >>> from polyarm import make_policy
    >>> policy = ThompsonSampling(make_policy("linear", 2, 1).engine, n_draws=100)
    >>> share = policy.probabilities(policy.init(), np.ones(1), np.random.default_rng(0))
    >>> round(float(share.sum()), 9)
    1.0
    """

    engine: Engine[State]
    n_draws: int = 1000
    objective: Objective = MEAN

    def __post_init__(self) -> None:
        require_count(self.n_draws, "n_draws")

    def init(self) -> State:
        """State before any reward."""
        return self.engine.init()

    def choose(self, state: State, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """Arm to play in this context; ties go to the lowest number."""
        scores = draw_worths(self.engine, state, context, self.objective, 1, rng)[0]
        return best_of(scores, eligible)

    def probabilities(self, state: State, context: Array, rng: Rng, eligible: Mask | None = None) -> Array:
        """How often each arm is the best eligible one among the draws, (n_arms,)."""
        return win_shares(draw_worths(self.engine, state, context, self.objective, self.n_draws, rng), eligible)

    def probabilities_many(self, state: State, contexts: Array, rng: Rng, eligible: Mask | None = None) -> Array:
        """Distributions for many contexts in the same state, (n, n_arms)."""
        batch: Any = self.engine
        if not hasattr(batch, "win_shares") or self.objective != MEAN:
            return super().probabilities_many(state, contexts, rng, eligible)
        shares: Array = batch.win_shares(state, contexts, self.n_draws, rng, eligible)
        return shares

    def with_arm(self, state: State) -> "tuple[ThompsonSampling[State], State]":
        """The policy and the state with one more arm."""
        engine, wider = self.engine.with_arm(state)
        return replace(self, engine=engine), wider

    def update(self, state: State, context: Array, arm: int, reward: float, rng: Rng) -> State:
        """State after one reward."""
        return self.engine.update(state, context, arm, reward, rng)
