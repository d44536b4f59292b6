"""A world in another guise: what a good policy should not mind.

Each draws the inner world first, from the same stream, so that it meets the plain scenario's worlds pair by pair.
"""

from dataclasses import dataclass

import numpy as np

from polyarm.errors import require_number, require_positive
from polyarm.types import Environment, Rng, World


@dataclass(frozen=True, slots=True)
class Rounded:
    """The inner world with rewards rounded to multiples of `grid`.

    Its means stay exact where rewards are smooth on that grid: normal noise of sd s moves them by less than
    exp(-2 pi^2 s^2 / grid^2) of it.
    """

    inner: Environment
    grid: float = 0.01

    def __post_init__(self) -> None:
        require_positive(self.grid, "grid")

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.inner.n_arms

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.inner.context_dim

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        world = self.inner.sample(horizon, rng)
        return world._replace(rewards=np.round(world.rewards / self.grid) * self.grid)


@dataclass(frozen=True, slots=True)
class Shifted:
    """The inner world with `shift` added to every column of the context; the means do not change."""

    inner: Environment
    shift: float

    def __post_init__(self) -> None:
        require_number(self.shift, "shift", "a finite number")

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.inner.n_arms

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.inner.context_dim

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        world = self.inner.sample(horizon, rng)
        return world._replace(contexts=world.contexts + self.shift)


@dataclass(frozen=True, slots=True)
class WildStart:
    """The inner world with `size` added to or taken from every arm's first reward, by the toss of a coin."""

    inner: Environment
    size: float = 1e5

    def __post_init__(self) -> None:
        require_positive(self.size, "size")

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.inner.n_arms

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.inner.context_dim

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        world = self.inner.sample(horizon, rng)
        rewards = world.rewards.copy()
        rewards[0] += self.size * (1.0 if rng.random() < 0.5 else -1.0)
        return world._replace(rewards=rewards)
