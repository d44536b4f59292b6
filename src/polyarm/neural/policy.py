"""A learned baseline that steps one interaction at a time."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from polyarm.choosing import PolicyDefaults, best_of, one_at, win_shares
from polyarm.errors import InvalidArgument, require_arm, require_context, require_reward
from polyarm.neural.data import Data, append, empty, observation, with_room
from polyarm.neural.learner import AnyLearner
from polyarm.neural.precision import numerics
from polyarm.neural.stepping import DECISION, START, TRAINING, realisation_key, score, stage_key, visible, with_one
from polyarm.types import Array, Choice, Mask, Rng

FIRST_CAPACITY = 64


class LiveState(NamedTuple):
    """Number of observations, their buffers (doubled when full) and the model."""

    n: Any
    data: Data
    model: Any


@dataclass(frozen=True, slots=True)
class LearnedPolicy(PolicyDefaults[LiveState]):
    """A learned baseline as a live policy.

    Without a seed every draw comes from the generators it is given, and the network starts at the first update.  With a
    seed those are ignored and all draws follow from it, exactly as in the simulator.  `probabilities` counts the best
    in `n_draws` choices.
    """

    learner: AnyLearner
    seed: int | None = None
    capacity: int = FIRST_CAPACITY
    n_draws: int = 1000

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.learner.n_arms

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.learner.context_dim

    def init(self) -> LiveState:
        """State before any reward; its model only has the right shapes until the first update."""
        with numerics():
            shapes = jax.eval_shape(self.learner.init, realisation_key(jnp.uint64(0)))
            model = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
            data = empty(self.capacity, self.context_dim, self.learner.dtype)
            return LiveState(np.int64(0), jax.tree.map(np.asarray, data), model)

    def choose(self, state: LiveState, context: Array, rng: Rng, eligible: Mask | None = None) -> Choice:
        """Eligible arm with the largest score."""
        x = require_context(context, self.context_dim)
        n = int(state.n)
        with numerics():
            seeds = self._seed(rng), self._seed(rng)
            model = _start(self.learner, seeds[0]) if n == 0 else state.model
            scores = _choose(self.learner, self.learner.window(n), model, state.data, n, x, seeds[1])
        return best_of(np.asarray(scores, np.float64), eligible)

    def probabilities(self, state: LiveState, context: Array, rng: Rng, eligible: Mask | None = None) -> Array:
        """How often each eligible arm scores highest, (n_arms,); with a seed, a one for the arm that it gives."""
        if self.seed is not None:
            return one_at(self.choose(state, context, rng, eligible).arm, self.n_arms)
        x = require_context(context, self.context_dim)
        n = int(state.n)
        with numerics():
            seeds = rng.integers(2**63, size=(2, self.n_draws)).astype(np.uint64)
            scores = _choose_often(self.learner, self.learner.window(n), state.model, state.data, n, x, seeds)
        return win_shares(np.asarray(scores, np.float64), eligible)

    def update(self, state: LiveState, context: Array, arm: int, reward: float, rng: Rng) -> LiveState:
        """State after one reward and the training it calls for."""
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        y = require_reward(reward)
        n = int(state.n)
        with numerics():
            model = _start(self.learner, self._seed(rng)) if n == 0 else state.model
            data = state.data if n < len(state.data.arms) else with_room(state.data, 2 * n)
            row = observation(with_one(jnp.asarray(x), self.learner.dtype), a, y)
            data, model = _update(self.learner, self.learner.window(n + 1), model, data, n, row, self._seed(rng))
            return LiveState(np.int64(n + 1), *jax.tree.map(np.asarray, (data, model)))

    def with_arm(self, state: LiveState) -> "tuple[LearnedPolicy, LiveState]":
        """A network has one output per arm: it refuses."""
        raise InvalidArgument(
            "policy must be one without a network to add an arm, whose outputs are fixed, "
            f"got {type(self.learner).__name__}; make a new policy and let it learn from the log"
        )

    def _seed(self, rng: Rng) -> np.uint64:
        return np.uint64(rng.integers(2**63) if self.seed is None else self.seed)


@partial(jax.jit, static_argnames="learner")
def _start(learner: AnyLearner, seed: jax.Array) -> Any:
    return learner.init(stage_key(realisation_key(seed), START, 0))


@partial(jax.jit, static_argnames=("learner", "window"))
def _choose(
    learner: AnyLearner, window: int | None, model: Any, data: Data, n: jax.Array, x: jax.Array, seed: jax.Array
) -> jax.Array:
    key = stage_key(realisation_key(seed), DECISION, n)
    return score(learner, model, visible(learner, data, window), n, with_one(x, learner.dtype), key)


@partial(jax.jit, static_argnames=("learner", "window"))
def _choose_often(
    learner: AnyLearner, window: int | None, model: Any, data: Data, n: jax.Array, x: jax.Array, seeds: jax.Array
) -> jax.Array:
    def once(starts: jax.Array, draws: jax.Array) -> jax.Array:
        fresh = _start(learner, starts)
        current = jax.tree.map(lambda new, old: jnp.where(n == 0, new, old), fresh, model)
        return _choose(learner, window, current, data, n, x, draws)

    return jax.vmap(once)(seeds[0], seeds[1])


@partial(jax.jit, static_argnames=("learner", "window"))
def _update(
    learner: AnyLearner, window: int | None, model: Any, data: Data, n: jax.Array, row: Data, seed: jax.Array
) -> tuple[Data, Any]:
    grown = append(data, n, row)
    key = stage_key(realisation_key(seed), TRAINING, n + 1)
    return grown, learner.learn(model, visible(learner, grown, window), n + 1, key)
