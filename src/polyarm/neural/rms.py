"""NeuralRMS: play the arm one network predicts most of; random are only its start and its minibatches."""

from dataclasses import dataclass

import jax

from polyarm.neural.data import Data, take
from polyarm.neural.draws import draw_rows
from polyarm.neural.network import predict, squared_error_gradient
from polyarm.neural.settings import Settings
from polyarm.neural.training import STATED, Gradient, Trained, Training, when_due


def plain_gradient(data: Data, n: jax.Array, batch_size: int) -> Gradient:
    """Gradient of the squared error on minibatches drawn with replacement from the first n observations."""
    return lambda network, key: squared_error_gradient(network, take(data, draw_rows(key, n, batch_size)))


@dataclass(frozen=True, slots=True)
class NeuralRms(Settings):
    """Greedy network trained by RMSProp."""

    training: Training = STATED

    def init(self, key: jax.Array) -> Trained:
        """Fresh network."""
        return self.training.init(self.shape, key)

    def scores(self, model: Trained, data: Data, n: jax.Array, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Predicted rewards."""
        return predict(model.network, inputs)

    def learn(self, model: Trained, data: Data, n: jax.Array, key: jax.Array) -> Trained:
        """Network after one training call."""
        gradient = plain_gradient(data, n, self.training.batch_size)
        return when_due(n, self.training.every, lambda now: self.training.run(now, gradient, key), model)
