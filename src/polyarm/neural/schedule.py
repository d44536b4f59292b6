"""How many gradient steps the Bayesian networks do: many in the first training calls, fewer later."""

import jax
import jax.numpy as jnp
import numpy as np


def step_table(first: int, last: int, n_calls: int) -> tuple[int, ...]:
    """Steps of the first training calls, falling evenly from `first` to `last`."""
    return tuple(int(steps) for steps in np.linspace(first, last, n_calls))


def steps_at(table: tuple[int, ...], last: int, call: jax.Array) -> jax.Array:
    """Steps of a training call, counted from zero."""
    return jnp.asarray((*table, last), jnp.int32)[jnp.minimum(call, len(table))]
