"""One hidden layer of ReLU units under one linear head per arm, and the gradient of its squared error.

x      (B, d + 1)  contexts with a trailing one, so that the last row of a weight matrix is the bias
gate   (B, H)      factor on each hidden unit (dropout), or None
f_a(x) = [relu(x W) * gate, 1] V_a
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from polyarm.neural.data import Data
from polyarm.neural.draws import draw_uniforms


class Network(NamedTuple):
    """Weights: hidden (d + 1, H) and heads (H + 1, A), biases in the last rows."""

    hidden: jax.Array
    heads: jax.Array


class Shape(NamedTuple):
    """Sizes of a network."""

    context_dim: int
    n_arms: int
    n_hidden: int = 50


def product(a: jax.Array, b: jax.Array) -> jax.Array:
    """Matrix product in full single precision (a GPU would use 10-bit mantissas by default)."""
    return jnp.matmul(a, b, precision="highest")


def uniform_network(shape: Shape, scale: float, key: jax.Array) -> Network:
    """Weights uniform in (-scale, scale), biases zero."""
    keys = jax.random.split(key)
    d, a, h = shape.context_dim, shape.n_arms, shape.n_hidden
    return Network(
        hidden=_with_zero_row((2 * draw_uniforms(keys[0], (d, h)) - 1) * jnp.float32(scale)),
        heads=_with_zero_row((2 * draw_uniforms(keys[1], (h, a)) - 1) * jnp.float32(scale)),
    )


def _with_zero_row(weights: jax.Array) -> jax.Array:
    return jnp.concatenate([weights, jnp.zeros((1, weights.shape[1]), weights.dtype)])


def features(network: Network, x: jax.Array) -> jax.Array:
    """Hidden units after the ReLU."""
    return jax.nn.relu(product(x, network.hidden))


def outputs(network: Network, hidden: jax.Array) -> jax.Array:
    """Value of every arm given the hidden units."""
    return product(hidden, network.heads[:-1]) + network.heads[-1]


def predict(network: Network, x: jax.Array) -> jax.Array:
    """Value of every arm, (..., A)."""
    return outputs(network, features(network, x))


def squared_error(network: Network, batch: Data, gate: jax.Array | None = None) -> jax.Array:
    """Mean over the batch of (f_a(x) - r)^2 for the played arms."""
    hidden = features(network, batch.inputs) if gate is None else features(network, batch.inputs) * gate
    played = jnp.take_along_axis(outputs(network, hidden), batch.arms[:, None], axis=1)[:, 0]
    return jnp.mean(jnp.square(played - batch.rewards))


def squared_error_gradient(network: Network, batch: Data, gate: jax.Array | None = None) -> Network:
    """Gradient of `squared_error`, through the played heads alone."""
    active = product(batch.inputs, network.hidden)
    slope = (active > 0).astype(active.dtype) if gate is None else jnp.where(active > 0, gate, 0)
    hidden = active * slope
    head = network.heads.T[batch.arms]
    error = (jnp.sum(hidden * head[:, :-1], axis=1) + head[:, -1] - batch.rewards) * jnp.float32(2 / len(batch.rewards))
    share = jax.nn.one_hot(batch.arms, network.heads.shape[1], dtype=error.dtype) * error[:, None]
    back = error[:, None] * head[:, :-1] * slope
    return Network(
        hidden=_transposed_product(batch.inputs, back),
        heads=jnp.concatenate([_transposed_product(hidden, share), jnp.sum(share, axis=0)[None]]),
    )


def _transposed_product(a: jax.Array, b: jax.Array) -> jax.Array:
    return jax.lax.dot_general(a, b, (((0,), (0,)), ((), ())), precision="highest")
