"""RMSProp on minibatches with a learning rate that decays over the life of the network.

The rate at step s is 0.1 / (1 + 0.5 s).  The Showdown code means to restart s at every training call but does not
(quirk Q1): `lr_reset="faithful"` never restarts it, `lr_reset="fixed"` does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from polyarm.neural.network import Network, Shape, uniform_network

Gradient = Callable[[Network, jax.Array], Network]

# TF1's RMSProp: the accumulator starts at one and epsilon stands inside the root.
rule = optax.chain(
    optax.clip_by_global_norm(5.0), optax.scale_by_rms(decay=0.9, eps=1e-10, initial_scale=1.0, eps_in_sqrt=True)
)


class Trained(NamedTuple):
    """A network with the state of its optimiser and the number of gradient steps it has done."""

    network: Network
    optimizer: Any
    n_steps: jax.Array


@dataclass(frozen=True, slots=True)
class Training:
    """When and how a network is trained."""

    steps: int = 50
    every: int = 1
    batch_size: int = 512
    lr_reset: str = "faithful"
    learning_rate: float = 0.1
    decay: float = 0.5
    init_scale: float = 0.3

    def init(self, shape: Shape, key: jax.Array) -> Trained:
        """Fresh network and optimiser."""
        network = uniform_network(shape, self.init_scale, key)
        return Trained(network, rule.init(network), jnp.zeros((), jnp.int32))

    def rate(self, step: jax.Array) -> jax.Array:
        """Learning rate at a step, 0.1 / (1 + 0.5 step)."""
        return jnp.float32(self.learning_rate) / (1 + jnp.float32(self.decay) * step.astype(jnp.float32))

    def run(self, trained: Trained, gradient: Gradient, key: jax.Array) -> Trained:
        """One training call: `steps` gradient steps, the i-th with randomness from the i-th key."""
        start = trained if self.lr_reset == "faithful" else trained._replace(n_steps=jnp.zeros((), jnp.int32))

        def step(i: jax.Array, now: Trained) -> Trained:
            return self.step(now, gradient(now.network, jax.random.fold_in(key, i)))

        return jax.lax.fori_loop(0, self.steps, step, start)

    def step(self, trained: Trained, gradient: Network) -> Trained:
        """One clipped RMSProp step: theta - rate * g / sqrt(v + 1e-10), v = 0.9 v + 0.1 g^2."""
        direction, optimizer = rule.update(gradient, trained.optimizer)
        rate = self.rate(trained.n_steps)
        network = jax.tree.map(lambda w, g: w - rate * g, trained.network, direction)
        return Trained(network, optimizer, trained.n_steps + 1)


def make_optimizer(name: str, learning_rate: float, decay: float) -> optax.GradientTransformation:
    """Adam, or clipped RMSProp, at the rate learning_rate / (1 + decay s) in its step s."""
    rate = learning_rate if decay == 0 else lambda s: learning_rate / (1 + decay * s)
    return optax.adam(rate) if name == "adam" else optax.chain(rule, optax.scale_by_learning_rate(rate))


STATED = Training()  # as the paper's text has it


def when_due(n: jax.Array, every: int, learn: Callable[[Any], Any], model: Any) -> Any:
    """Model after `learn` if n is a multiple of `every`, else the model as it is."""
    return learn(model) if every == 1 else jax.lax.cond(n % every == 0, learn, lambda same: same, model)
