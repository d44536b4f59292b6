"""Logs whose truth is known."""

from typing import Any, NamedTuple

import numpy as np

from polyarm.evaluation import Vectorised
from polyarm.types import Array, IntArray

ARMS = ("a", "b", "c")


class World(NamedTuple):
    """Contexts (n, 2), the logger's and the target's probabilities (n, 3), plays, rewards and mean rewards (n, 3)."""

    contexts: Array
    logging: Array
    target: Array
    arms: IntArray
    rewards: Array
    means: Array

    def columns(self, **more: Any) -> dict[str, Any]:
        """The log as columns."""
        rows = np.arange(len(self.arms))
        return {
            "id": [f"row-{i}" for i in rows],
            "arm": np.array(ARMS)[self.arms],
            "reward": self.rewards,
            "propensity": self.logging[rows, self.arms],
            "x": self.contexts[:, 0],
            "z": self.contexts[:, 1],
            **more,
        }


def softmax(scores: Array) -> Array:
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def target_probabilities(contexts: Array) -> Array:
    return softmax(contexts @ np.array([[1.0, -1.0, 0.5], [0.0, 1.0, -1.0]]))


def make_world(n: int, seed: int) -> World:
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(n, 2))
    means = 1 + contexts @ np.array([[1.0, -1.0, 0.0], [0.0, 0.5, 1.0]])
    logging = 0.7 * softmax(contexts @ np.array([[0.5, 0.0, -0.5], [1.0, 0.0, 0.0]])) + 0.1
    arms = (logging.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    rewards = means[np.arange(n), arms] + rng.normal(size=n)
    return World(contexts, logging, target_probabilities(contexts), arms, rewards, means)


def as_function(columns: dict[str, Any]) -> Array:
    return target_probabilities(np.column_stack([columns["x"], columns["z"]]))


TARGET = Vectorised(as_function)
