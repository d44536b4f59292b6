"""BNNVariational: Bayes by backprop with local reparametrisation, a Gaussian on every kernel weight.

Loss = -(1/B) sum_b log N(r_b; y_b, 0.1^2) + KL / n, with the activations of each row drawn from their own Gaussian,
KL = sum [ mean^2 / (2 v0) + (var / v0 - 1 - log var + log v0) / 2 ] over kernels, v0 = 2 / fan-in.  Biases are plain
numbers.  Adam at a constant rate of 0.1, unclipped (quirk Q4; `learning_rate` sets another).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from polyarm.neural.data import Data, take
from polyarm.neural.draws import draw_normals, draw_rows
from polyarm.neural.network import Network, Shape, outputs, predict, product
from polyarm.neural.schedule import step_table, steps_at
from polyarm.neural.settings import Settings
from polyarm.neural.training import make_optimizer, when_due

FLOOR = 1e-6  # added to the variance of every activation, as in the Showdown code


class Belief(NamedTuple):
    """Independent Gaussians over the weights: means, and logarithms of the standard deviations."""

    means: Network
    log_sds: Network


class Variational(NamedTuple):
    """A belief and the state of its optimiser."""

    belief: Belief
    optimizer: Any


class Noise(NamedTuple):
    """Standard normals of one gradient step: (B, H) for the hidden units, (B,) for the played outputs."""

    hidden: jax.Array
    played: jax.Array


def initial_belief(shape: Shape, key: jax.Array) -> Belief:
    """Means ~ N(0, 0.05^2), logarithms of standard deviations ~ N(-5, 0.05^2), biases included."""
    d, a, h = shape.context_dim, shape.n_arms, shape.n_hidden
    keys = jax.random.split(key, 4)
    sizes = ((d + 1, h), (h + 1, a))
    means = Network(*(jnp.float32(0.05) * draw_normals(k, size) for k, size in zip(keys[:2], sizes, strict=True)))
    log_sds = Network(*(jnp.float32(0.05) * draw_normals(k, size) - 5 for k, size in zip(keys[2:], sizes, strict=True)))
    return Belief(means, log_sds)


def kernel_divergence(means: jax.Array, log_sds: jax.Array) -> jax.Array:
    """Divergence from the prior N(0, 2 / fan-in) of one layer's kernel, without the biases in the last row."""
    prior_var = 2 / (means.shape[0] - 1)
    log_var = 2 * log_sds[:-1]
    spread = jnp.exp(log_var) / prior_var - 1 - log_var + math.log(prior_var)
    return jnp.sum(jnp.square(means[:-1]) / (2 * prior_var) + spread / 2)


def divergence(belief: Belief) -> jax.Array:
    """Divergence of both layers from their priors."""
    return sum((kernel_divergence(m, s) for m, s in zip(*belief, strict=True)), start=jnp.float32(0))


def drawn_outputs(belief: Belief, batch: Data, noise: Noise) -> jax.Array:
    """Outputs of the played arms with every activation drawn from its own Gaussian."""
    kernels = Network(*(jnp.exp(2 * s[:-1]) for s in belief.log_sds))
    x = batch.inputs
    spread = jnp.sqrt(product(jnp.square(x[:, :-1]), kernels.hidden) + FLOOR)
    hidden = jax.nn.relu(product(x, belief.means.hidden) + spread * noise.hidden)
    played = jax.nn.one_hot(batch.arms, kernels.heads.shape[1], dtype=hidden.dtype)
    mean = jnp.sum(outputs(belief.means, hidden) * played, axis=1)
    var = jnp.sum(product(jnp.square(hidden), kernels.heads) * played, axis=1)
    return mean + jnp.sqrt(var + FLOOR) * noise.played


def loss(belief: Belief, batch: Data, noise: Noise, n: jax.Array, noise_sd: float) -> jax.Array:
    """Negative evidence bound per observation."""
    error = (batch.rewards - drawn_outputs(belief, batch, noise)) / noise_sd
    fit = jnp.mean(jnp.square(error)) / 2 + math.log(noise_sd) + math.log(2 * math.pi) / 2
    return fit + divergence(belief) / n.astype(fit.dtype)


def sampled_network(belief: Belief, key: jax.Array, biases: bool) -> Network:
    """Weights drawn from the belief; biases at their means unless they are part of it."""
    layers = []
    for mean, log_sd, k in zip(*belief, jax.random.split(key), strict=True):
        sd = jnp.exp(log_sd) if biases else jnp.exp(log_sd).at[-1].set(0)
        layers.append(mean + sd * draw_normals(k, mean.shape))
    return Network(*layers)


@dataclass(frozen=True, slots=True)
class BnnVariational(Settings):
    """Variational Bayesian network; a decision draws all weights once."""

    steps: int = 50
    every: int = 1
    first_steps: int = 100
    n_long_calls: int = 10
    batch_size: int = 512
    noise_sd: float = 0.1
    learning_rate: float = 0.1
    lr_decay: float = 0.0
    rule: str = "adam"

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """The optimiser."""
        return make_optimizer(self.rule, self.learning_rate, self.lr_decay)

    def init(self, key: jax.Array) -> Variational:
        """Fresh belief."""
        belief = initial_belief(self.shape, key)
        return Variational(belief, self.optimizer.init(belief))

    def scores(self, model: Variational, data: Data, n: jax.Array, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Predicted rewards of one network drawn from the belief."""
        return predict(sampled_network(model.belief, key, biases=False), inputs)

    def learn(self, model: Variational, data: Data, n: jax.Array, key: jax.Array) -> Variational:
        """Belief after one training call."""
        table = step_table(self.first_steps, self.steps, self.n_long_calls)
        n_steps = steps_at(table, self.steps, n // self.every - 1)

        def train(now: Variational) -> Variational:
            return jax.lax.fori_loop(0, n_steps, lambda i, m: self.step(m, data, n, jax.random.fold_in(key, i)), now)

        return when_due(n, self.every, train, model)

    def step(self, model: Variational, data: Data, n: jax.Array, key: jax.Array) -> Variational:
        """One step of Adam on a minibatch."""
        rows, hidden, played = jax.random.split(key, 3)
        batch = take(data, draw_rows(rows, n, self.batch_size))
        noise = Noise(draw_normals(hidden, (self.batch_size, self.n_hidden)), draw_normals(played, (self.batch_size,)))
        gradient = jax.grad(loss)(model.belief, batch, noise, n, self.noise_sd)
        change, optimizer = self.optimizer.update(gradient, model.optimizer)
        return Variational(optax.apply_updates(model.belief, change), optimizer)

    def workspace(self, capacity: int) -> int:
        """Bytes of one realisation's minibatch with its noise and both passes."""
        return 4 * self.batch_size * (12 * self.n_hidden + 2 * self.context_dim + 6 * self.n_arms + 8)
