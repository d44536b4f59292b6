"""NeuralDropout: hidden units are kept with probability 0.8, in training and, one mask for all heads, in decisions."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from polyarm.neural.data import Data, take
from polyarm.neural.draws import draw_mask, draw_rows
from polyarm.neural.network import Network, features, outputs, squared_error_gradient
from polyarm.neural.settings import Settings
from polyarm.neural.training import STATED, Trained, Training, when_due


@dataclass(frozen=True, slots=True)
class NeuralDropout(Settings):
    """Network with inverted dropout on its hidden layer, trained by RMSProp."""

    training: Training = STATED
    keep: float = 0.8

    def init(self, key: jax.Array) -> Trained:
        """Fresh network."""
        return self.training.init(self.shape, key)

    def gate(self, key: jax.Array, n_rows: int) -> jax.Array:
        """Factors of the hidden units, (n_rows, H): 1 / keep, or zero where a unit is dropped."""
        return draw_mask(key, self.keep, (n_rows, self.n_hidden)).astype(jnp.float32) * jnp.float32(1 / self.keep)

    def scores(self, model: Trained, data: Data, n: jax.Array, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Predicted rewards under one mask."""
        return outputs(model.network, features(model.network, inputs) * self.gate(key, 1)[0])

    def learn(self, model: Trained, data: Data, n: jax.Array, key: jax.Array) -> Trained:
        """Network after one training call, with a mask for every row of every minibatch."""

        def gradient(network: Network, key: jax.Array) -> Network:
            rows, masks = jax.random.split(key)
            batch = take(data, draw_rows(rows, n, self.training.batch_size))
            return squared_error_gradient(network, batch, self.gate(masks, self.training.batch_size))

        return when_due(n, self.training.every, lambda now: self.training.run(now, gradient, key), model)

    def workspace(self, capacity: int) -> int:
        """Bytes of one realisation's minibatch with its mask and random bits."""
        return 4 * 512 * (6 * self.n_hidden + 2 * self.context_dim + 3 * self.n_arms + 8)
