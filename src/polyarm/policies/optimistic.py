"""Thompson sampling that never scores an arm below what is expected of it."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from polyarm.choosing import PolicyDefaults, best_of, one_at, win_shares
from polyarm.errors import require_count, require_eligible, require_positive
from polyarm.renaming import renamed
from polyarm.types import AnyEngine, Array, Choice, IntArray, Mask, Rng


class OptimisticState(NamedTuple):
    """State of the engine, and how often every arm was pulled, (n_arms,)."""

    inner: Any
    pulls: IntArray


@renamed(draw_scale="temper")
@dataclass(frozen=True)
class OptimisticSampling(PolicyDefaults[OptimisticState]):
    """Play the arm that is best in one joint posterior draw that was made hopeful, less wild, or both.

    `optimism` lifts a draw below an arm's posterior mean to that mean (May et al. 2012); `draw_scale` multiplies its
    distance from it; an arm with fewer than min(floor, t / (4 n_arms)) pulls after t rewards is pulled at once.
    `probabilities` counts the best in `n_draws` draws.

    >>> import numpy as np
    >>> from polyarm import make_policy
    >>> policy = OptimisticSampling(make_policy("linear", 3, 2).engine)
    >>> policy.choose(policy.init(), np.ones(2), np.random.default_rng(0)).arm in range(3)
    True
    """

    engine: AnyEngine
    optimism: bool = True
    draw_scale: float = 0.85
    floor: int = 0
    n_draws: int = 1000

    def __post_init__(self) -> None:
        require_positive(self.draw_scale, "draw_scale")
        require_count(self.floor, "floor", at_least=0)
        require_count(self.n_draws, "n_draws")

    def init(self) -> OptimisticState:
        """State before any reward."""
        return OptimisticState(self.engine.init(), np.zeros(self.engine.n_arms, np.int64))

    def choose(self, state: OptimisticState, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """Arm to play in this context; ties go to the lowest number."""
        choice = best_of(self._draws(state, context, 1, rng)[0], eligible)
        neglected = self._neglected(state, eligible)
        return choice if neglected is None else choice._replace(arm=neglected)

    def probabilities(self, state: OptimisticState, context: Array, rng: Rng, eligible: Mask | None = None) -> Array:
        """How often each arm is the best eligible one among the draws, (n_arms,)."""
        neglected = self._neglected(state, eligible)
        if neglected is not None:
            return one_at(neglected, len(state.pulls))
        return win_shares(self._draws(state, context, self.n_draws, rng), eligible)

    def _draws(self, state: OptimisticState, context: Array, n_draws: int, rng: Rng) -> Array:
        expected = self.engine.expected_means(state.inner, context)
        surprise = self.draw_scale * (self.engine.draw_means(state.inner, context, n_draws, rng) - expected)
        return np.asarray(expected + (np.maximum(surprise, 0.0) if self.optimism else surprise))

    def _neglected(self, state: OptimisticState, eligible: Mask | None) -> int | None:
        mask = require_eligible(eligible, len(state.pulls))
        pulls = state.pulls if mask is None else np.where(mask, state.pulls, np.iinfo(np.int64).max)
        rare = int(pulls.argmin())
        due = min(self.floor, state.pulls.sum() / (4 * len(pulls)))
        return rare if pulls[rare] < due else None

    def engine_state(self, state: OptimisticState) -> Any:
        """State of the engine."""
        return state.inner

    def with_arm(self, state: OptimisticState) -> "tuple[OptimisticSampling, OptimisticState]":
        """The policy and the state with one more arm."""
        engine, inner = self.engine.with_arm(state.inner)
        return replace(self, engine=engine), OptimisticState(inner, np.append(state.pulls, 0))

    def update(self, state: OptimisticState, context: Array, arm: int, reward: float, rng: Rng) -> OptimisticState:
        """State after one reward."""
        inner = self.engine.update(state.inner, context, arm, reward, rng)
        state.pulls[arm] += 1
        return state._replace(inner=inner)
