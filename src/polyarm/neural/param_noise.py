"""NeuralParamNoise: decide with Gaussian noise on every weight, its size adapted to how far decisions move.

After a training call the noise grows by 1 % where the noisy network's softmax stays within a divergence of
-log(1 - eps + eps / A) of the plain one's, and shrinks by 1 % otherwise; then eps <- 0.99 eps.  With training in every
round eps dies within a few hundred rounds and the noise with it (quirk Q2): `adaptation="faithful"` keeps that,
`"fixed"` adapts every 50 rounds only, as often as in the Showdown's own experiments.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from polyarm.neural.data import Data
from polyarm.neural.draws import draw_normals, draw_rows
from polyarm.neural.network import Network, predict
from polyarm.neural.rms import plain_gradient
from polyarm.neural.settings import Settings
from polyarm.neural.training import STATED, Trained, Training, when_due

ADAPT_EVERY_FIXED = 50


class Noisy(NamedTuple):
    """A trained network, the spread of its decision noise and the divergence parameter eps."""

    trained: Trained
    noise_sd: jax.Array
    eps: jax.Array


def perturbed(network: Network, noise_sd: jax.Array, key: jax.Array) -> Network:
    """Network with independent N(0, noise_sd^2) added to every weight and bias."""
    keys = jax.random.split(key)
    return Network(*(w + noise_sd * draw_normals(k, w.shape) for w, k in zip(network, keys, strict=True)))


def divergence_limit(eps: jax.Array, n_arms: int) -> jax.Array:
    """-log(1 - eps + eps / A)."""
    return -jnp.log(1 - eps + eps / n_arms)


def decision_divergence(plain: jax.Array, noisy: jax.Array) -> jax.Array:
    """Mean Kullback-Leibler divergence between softmax decisions, negative and undefined terms counted as zero."""
    log_p, log_q = jax.nn.log_softmax(plain), jax.nn.log_softmax(noisy)
    return jnp.nan_to_num(jnp.mean(jnp.maximum(jnp.sum(jnp.exp(log_p) * (log_p - log_q), axis=-1), 0)))


@dataclass(frozen=True, slots=True)
class NeuralParamNoise(Settings):
    """Network that explores by perturbing its weights."""

    training: Training = STATED
    noise_sd: float = 0.05
    eps: float = 0.1
    eps_decay: float = 0.99
    n_probes: int = 300
    adaptation: str = "faithful"

    def init(self, key: jax.Array) -> Noisy:
        """Fresh network."""
        return Noisy(self.training.init(self.shape, key), jnp.float32(self.noise_sd), jnp.float32(self.eps))

    def scores(self, model: Noisy, data: Data, n: jax.Array, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Predicted rewards of a perturbed network."""
        return predict(perturbed(model.trained.network, model.noise_sd, key), inputs)

    def learn(self, model: Noisy, data: Data, n: jax.Array, key: jax.Array) -> Noisy:
        """Model after one training call and the adaptation of its noise."""
        descent, probes = jax.random.split(key)
        gradient = plain_gradient(data, n, self.training.batch_size)

        def train(now: Noisy) -> Noisy:
            return now._replace(trained=self.training.run(now.trained, gradient, descent))

        every = self.training.every if self.adaptation == "faithful" else max(ADAPT_EVERY_FIXED, self.training.every)
        trained = when_due(n, self.training.every, train, model)
        return when_due(n, every, lambda now: self.adapt(now, data, n, probes), trained)

    def adapt(self, model: Noisy, data: Data, n: jax.Array, key: jax.Array) -> Noisy:
        """Model whose noise is one percent larger or smaller."""
        rows, noise = jax.random.split(key)
        x = data.inputs[draw_rows(rows, n, self.n_probes)]
        network = model.trained.network
        moved = decision_divergence(predict(network, x), predict(perturbed(network, model.noise_sd, noise), x))
        grows = moved < divergence_limit(model.eps, self.n_arms)
        step = jnp.where(grows, jnp.float32(1.01), jnp.float32(1 / 1.01))
        return Noisy(model.trained, model.noise_sd * step, model.eps * jnp.float32(self.eps_decay))
