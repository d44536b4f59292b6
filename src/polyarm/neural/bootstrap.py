"""NeuralBootstrapped: several networks, each with its own store of the data; a random one decides each round.

Whether store q holds observation j is a coin of its own, thrown by hashing (store key, j): no list of rows is kept.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from polyarm.neural.data import Data, take
from polyarm.neural.draws import draw_rows
from polyarm.neural.network import Network, predict, squared_error_gradient
from polyarm.neural.settings import Settings
from polyarm.neural.training import STATED, Gradient, Trained, Training, when_due


class Ensemble(NamedTuple):
    """Networks on a leading axis, and the random bits of their stores, (q, 2)."""

    members: Trained
    store_keys: jax.Array


def stored_rows(store_key: jax.Array, n: jax.Array, capacity: int, inclusion: float) -> tuple[jax.Array, jax.Array]:
    """Rows held by one store, first come first, and their number; the first observation is always held."""
    place = jnp.arange(capacity)
    key = jax.random.wrap_key_data(store_key, impl="threefry2x32")
    coins: jax.Array = jax.vmap(lambda j: jax.random.uniform(jax.random.fold_in(key, j), (), jnp.float32))(place)
    held = ((coins < jnp.float32(inclusion)) | (place == 0)) & (place < n)
    target = jnp.where(held, jnp.cumsum(held) - 1, capacity)
    rows = jnp.zeros(capacity, jnp.int32).at[target].set(place.astype(jnp.int32), mode="drop")
    return rows, jnp.sum(held)


@dataclass(frozen=True, slots=True)
class NeuralBootstrapped(Settings):
    """Ensemble of networks, each trained on the observations its store happened to include."""

    training: Training = STATED
    n_networks: int = 3
    inclusion: float = 0.95

    def init(self, key: jax.Array) -> Ensemble:
        """Fresh networks and stores."""
        starts, stores = jax.random.split(key)
        members = jax.vmap(lambda k: self.training.init(self.shape, k))(jax.random.split(starts, self.n_networks))
        return Ensemble(members, jax.random.key_data(jax.random.split(stores, self.n_networks)))

    def scores(self, model: Ensemble, data: Data, n: jax.Array, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Predicted rewards of a network picked at random."""
        pick = jax.random.randint(key, (), 0, self.n_networks)
        values: jax.Array = jax.vmap(predict, in_axes=(0, None))(model.members.network, inputs)
        return values[pick]

    def learn(self, model: Ensemble, data: Data, n: jax.Array, key: jax.Array) -> Ensemble:
        """Ensemble after one training call of every network on its own store."""
        keys = jax.random.split(key, self.n_networks)

        def train(now: Ensemble) -> Ensemble:
            return now._replace(members=jax.vmap(self._train_member, (0, 0, None, None, 0))(*now, data, n, keys))

        return when_due(n, self.training.every, train, model)

    def _train_member(self, member: Trained, store_key: jax.Array, data: Data, n: jax.Array, key: jax.Array) -> Trained:
        rows, n_held = stored_rows(store_key, n, len(data.arms), self.inclusion)
        return self.training.run(member, self._gradient(take(data, rows), n_held), key)

    def _gradient(self, store: Data, n_held: jax.Array) -> Gradient:
        def gradient(network: Network, key: jax.Array) -> Network:
            return squared_error_gradient(network, take(store, draw_rows(key, n_held, self.training.batch_size)))

        return gradient

    def workspace(self, capacity: int) -> int:
        """Bytes of one realisation's minibatches and stores."""
        stores = 8 * capacity * (self.context_dim + 4)
        return self.n_networks * (Settings.workspace(self, capacity) + stores)
