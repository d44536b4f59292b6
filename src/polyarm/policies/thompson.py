"""Thompson sampling."""

from dataclasses import dataclass
from typing import Generic

from polyarm.types import Array, Choice, Engine, Rng, State


@dataclass(frozen=True)
class ThompsonSampling(Generic[State]):
    """Play the arm that is best in one joint posterior draw."""

    engine: Engine[State]

    def init(self) -> State:
        """State before any reward."""
        return self.engine.init()

    def choose(self, state: State, context: Array, rng: Rng) -> Choice:
        """Arm to play in this context; ties go to the lowest number."""
        scores = self.engine.draw_means(state, context, 1, rng)[0]
        return Choice(arm=int(scores.argmax()), scores=scores)

    def update(self, state: State, context: Array, arm: int, reward: float, rng: Rng) -> State:
        """State after one reward."""
        return self.engine.update(state, context, arm, reward, rng)
