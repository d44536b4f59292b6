"""Worlds whose arms are judged by another objective than their mean reward."""

from dataclasses import dataclass
from typing import Any

from polyarm.errors import InvalidArgument
from polyarm.models import Objective
from polyarm.types import Environment, Rng, World


@dataclass(frozen=True, slots=True)
class Judged:
    """An environment whose worlds hold, in place of mean rewards, what each arm is worth by the objective.

    Regret, the best arm and the policy `optimal` are then those of the objective.  The environment must know the
    distributions of its rewards: `values(world, objective)`, (T, A), is what every arm was worth at every step.
    """

    environment: Environment
    objective: Objective

    def __post_init__(self) -> None:
        if not hasattr(self.environment, "values"):
            raise InvalidArgument(
                f"scenario must be one that knows the distributions of its rewards to be judged by {self.objective}, "
                f"got {type(self.environment).__name__}, which has no method `values`"
            )

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.environment.n_arms

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.environment.context_dim

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps; contexts and rewards are those of the environment."""
        knowing: Any = self.environment
        world: World = knowing.sample(horizon, rng)
        return world._replace(means=knowing.values(world, self.objective))
