"""Thompson sampling that never scores an arm below what is expected of it."""

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

import numpy as np

from polyarm.errors import require_count, require_positive
from polyarm.types import Array, Choice, Engine, IntArray, Rng, State


class OptimisticState(NamedTuple):
    """State of the engine, and how often every arm was pulled, (n_arms,)."""

    inner: Any
    pulls: IntArray


@dataclass(frozen=True)
class OptimisticSampling(Generic[State]):
    """Play the arm that is best in one joint posterior draw that was made hopeful, less wild, or both.

    `optimism` lifts a draw below an arm's posterior mean to that mean (May et al. 2012); `temper` multiplies the draw's
    distance from it; an arm with fewer than min(floor, t / (4 n_arms)) pulls after t rewards is pulled at once.
    """

    engine: Engine[State]
    optimism: bool = True
    temper: float = 0.85
    floor: int = 0

    def __post_init__(self) -> None:
        require_positive(self.temper, "temper")
        require_count(self.floor, "floor", at_least=0)

    def init(self) -> OptimisticState:
        """State before any reward."""
        return OptimisticState(self.engine.init(), np.zeros(self.engine.n_arms, np.int64))

    def choose(self, state: OptimisticState, context: Array, rng: Rng) -> Choice:
        """Arm to play in this context; ties go to the lowest number."""
        expected = self.engine.expected_means(state.inner, context)
        surprise = self.temper * (self.engine.draw_means(state.inner, context, 1, rng)[0] - expected)
        scores = expected + (np.maximum(surprise, 0.0) if self.optimism else surprise)
        rare = int(state.pulls.argmin())
        due = min(self.floor, state.pulls.sum() / (4 * len(scores)))
        return Choice(arm=rare if state.pulls[rare] < due else int(scores.argmax()), scores=scores)

    def update(self, state: OptimisticState, context: Array, arm: int, reward: float, rng: Rng) -> OptimisticState:
        """State after one reward."""
        inner = self.engine.update(state.inner, context, arm, reward, rng)
        state.pulls[arm] += 1
        return state._replace(inner=inner)
