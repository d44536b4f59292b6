"""The best possible play."""

from dataclasses import dataclass

from polyarm.choosing import PolicyDefaults, surely_best_of
from polyarm.types import Array, Choice, Mask, Rng


@dataclass(frozen=True, slots=True, eq=False)
class Optimal(PolicyDefaults[int]):
    """Play the arm of highest true mean at every step of a known world; the state counts the steps."""

    means: Array

    def init(self) -> int:
        """State before any reward."""
        return 0

    def choose(self, state: int, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """The best arm of this step, with the true means as scores."""
        return surely_best_of(self.means[state], eligible)

    def update(self, state: int, context: Array, arm: int, reward: float, rng: Rng) -> int:
        """State after one reward."""
        return state + 1
