"""The shape every learned baseline has: pure functions from a model and its data to scores and to a better model."""

from typing import Any, Protocol, TypeVar

import jax

from polyarm.neural.data import Data

Model = TypeVar("Model")


class Learner(Protocol[Model]):
    """Frozen settings of one baseline; n is the number of observations, the same for all realisations of a batch."""

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        ...

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        ...

    @property
    def initial_pulls(self) -> int:
        """Times each arm is played in turn before the model decides."""
        ...

    @property
    def dtype(self) -> Any:
        """Type of the buffers."""
        ...

    def init(self, key: jax.Array) -> Model:
        """Model before any observation."""
        ...

    def scores(self, model: Model, data: Data, n: jax.Array, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Scores of all arms for one context, (n_arms,); the largest is played."""
        ...

    def learn(self, model: Model, data: Data, n: jax.Array, key: jax.Array) -> Model:
        """Model after the training that follows the n-th observation."""
        ...

    def window(self, n: int) -> int | None:
        """Leading rows that hold all the learner reads while it has n observations; None for the whole buffer."""
        ...

    def workspace(self, capacity: int) -> int:
        """Bytes one realisation needs beside its buffers."""
        ...


AnyLearner = Learner[Any]
