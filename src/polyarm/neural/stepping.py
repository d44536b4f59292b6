"""One round of a learned policy as pure functions, shared by the live policy and the batched simulator.

All randomness of a realisation comes from one key: its start, the decision of round n and the training after n
observations each hash their own number into it, so that no draw depends on who asks or in which batch.
"""

from typing import Any

import jax
import jax.numpy as jnp

from polyarm.neural.data import Data, first
from polyarm.neural.learner import AnyLearner

START, DECISION, TRAINING = range(3)


def realisation_key(seed: jax.Array) -> jax.Array:
    """Key of one realisation."""
    return jax.random.key(seed, impl="threefry2x32")


def stage_key(key: jax.Array, stage: int, n: jax.Array | int) -> jax.Array:
    """Key of one stage of the round after n observations."""
    return jax.random.fold_in(jax.random.fold_in(key, stage), n)


def with_one(contexts: jax.Array, dtype: Any) -> jax.Array:
    """Contexts with a trailing one, in the learner's precision."""
    x = jnp.asarray(contexts, dtype)
    return jnp.concatenate([x, jnp.ones((*x.shape[:-1], 1), dtype)], axis=-1)


def visible(learner: AnyLearner, data: Data, window: int | None) -> Data:
    """Rows that the learner reads."""
    return data if window is None else first(data, min(window, len(data.arms)))


def score(learner: AnyLearner, model: Any, data: Data, n: jax.Array, inputs: jax.Array, key: jax.Array) -> jax.Array:
    """Scores of all arms; in the first rounds a one for the arm whose turn it is."""
    turn = jax.nn.one_hot(n % learner.n_arms, learner.n_arms, dtype=learner.dtype)

    def decide() -> jax.Array:
        return learner.scores(model, data, n, inputs, key).astype(learner.dtype)

    return jax.lax.cond(n < learner.initial_pulls * learner.n_arms, lambda: turn, decide)
