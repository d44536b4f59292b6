"""What a learned policy has seen: fixed-capacity buffers, of which the first n rows are filled."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Data(NamedTuple):
    """Observations in order of arrival.

    inputs (capacity, d + 1) contexts with a trailing one, arms (capacity,) and rewards (capacity,).
    """

    inputs: jax.Array
    arms: jax.Array
    rewards: jax.Array


def empty(capacity: int, context_dim: int, dtype: Any) -> Data:
    """Buffers with room for `capacity` observations."""
    return Data(
        inputs=jnp.zeros((capacity, context_dim + 1), dtype),
        arms=jnp.zeros(capacity, jnp.int32),
        rewards=jnp.zeros(capacity, dtype),
    )


def append(data: Data, n: jax.Array, row: Data) -> Data:
    """Data with one more observation at place n."""
    return jax.tree.map(lambda buffer, value: buffer.at[n].set(value.astype(buffer.dtype)), data, row)


def observation(inputs: jax.Array, arm: jax.Array | int, reward: jax.Array | float) -> Data:
    """One observation in the shape of a row of Data."""
    return Data(jnp.asarray(inputs), jnp.asarray(arm), jnp.asarray(reward))


def take(data: Data, rows: jax.Array) -> Data:
    """Observations at these rows."""
    return jax.tree.map(lambda buffer: buffer[rows], data)


def first(data: Data, capacity: int) -> Data:
    """Buffers cut to their first `capacity` rows."""
    return jax.tree.map(lambda buffer: buffer[:capacity], data)


def with_room(data: Data, capacity: int) -> Data:
    """Buffers grown to `capacity` rows."""

    def grow(buffer: jax.Array) -> jax.Array:
        return jnp.pad(buffer, [(0, capacity - len(buffer))] + [(0, 0)] * (buffer.ndim - 1))

    return jax.tree.map(grow, data)
