"""The greedy rule."""

from dataclasses import dataclass
from typing import Generic

from polyarm.types import Array, Choice, Engine, Rng, State


@dataclass(frozen=True)
class Greedy(Generic[State]):
    """Play the arm whose mean reward has the highest posterior expectation; it never explores."""

    engine: Engine[State]

    def init(self) -> State:
        """State before any reward."""
        return self.engine.init()

    def choose(self, state: State, context: Array, rng: Rng) -> Choice:
        """Arm to play in this context; ties go to the lowest number."""
        scores = self.engine.expected_means(state, context)
        return Choice(arm=int(scores.argmax()), scores=scores)

    def update(self, state: State, context: Array, arm: int, reward: float, rng: Rng) -> State:
        """State after one reward."""
        return self.engine.update(state, context, arm, reward, rng)
