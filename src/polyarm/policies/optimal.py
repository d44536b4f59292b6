"""The best possible play."""

from dataclasses import dataclass

from polyarm.types import Array, Choice, Rng


@dataclass(frozen=True, slots=True, eq=False)
class Optimal:
    """Play the arm of highest true mean at every step of a known world; the state counts the steps."""

    means: Array

    def init(self) -> int:
        """State before any reward."""
        return 0

    def choose(self, state: int, context: Array, rng: Rng) -> Choice:
        """The best arm of this step, with the true means as scores."""
        scores = self.means[state]
        return Choice(int(scores.argmax()), scores)

    def update(self, state: int, context: Array, arm: int, reward: float, rng: Rng) -> int:
        """State after one reward."""
        return state + 1
