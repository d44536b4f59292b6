"""What every network baseline is told: the sizes of the problem and how often each arm is tried first."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from polyarm.neural.network import Shape


@dataclass(frozen=True, slots=True)
class Settings:
    """Sizes of the problem; each arm is played `initial_pulls` times in turn before the network decides."""

    n_arms: int
    context_dim: int
    initial_pulls: int = 2
    n_hidden: int = 50

    @property
    def shape(self) -> Shape:
        """Sizes of the network."""
        return Shape(self.context_dim, self.n_arms, self.n_hidden)

    @property
    def dtype(self) -> Any:
        """Networks work in single precision."""
        return jnp.float32

    def window(self, n: int) -> int | None:
        """Networks read minibatches, whose cost does not depend on the size of the buffer."""
        return None

    def workspace(self, capacity: int) -> int:
        """Bytes of one realisation's minibatch, with its hidden layer three times over."""
        return 4 * 512 * (3 * self.n_hidden + 2 * self.context_dim + 3 * self.n_arms + 8)
