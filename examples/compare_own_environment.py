"""Write an environment and a policy in a few lines, and compare the policy with ours."""

from dataclasses import dataclass

import numpy as np

import polyarm as pa


@dataclass(frozen=True)
class LateOrOnTime:
    """Three couriers: minutes gained on the promise, with a heavy tail of delays that depends on the distance."""

    n_arms: int = 3
    context_dim: int = 2  # a constant, and the distance in km

    def sample(self, horizon: int, rng: np.random.Generator) -> pa.World:
        distance = rng.uniform(0, 5, horizon)
        means = np.column_stack([4 - distance, 1 + 0 * distance, 2 - 0.5 * distance])
        delays = rng.standard_exponential((horizon, 3)) * np.array([2.0, 1.0, 4.0])
        rewards = means - delays + np.array([2.0, 1.0, 4.0])
        return pa.World(np.column_stack([np.ones(horizon), distance]), rewards, means)


@dataclass(frozen=True)
class AlwaysSecond(pa.PolicyDefaults[int]):
    """A policy needs three methods: its state before any reward, its choice, and its update."""

    def init(self) -> int:
        return 0

    def choose(
        self, state: int, context: pa.Array, rng: np.random.Generator, eligible: pa.Mask | None = None
    ) -> pa.Choice:
        return pa.Choice(1, np.zeros(3))

    def update(self, state: int, context: pa.Array, arm: int, reward: float, rng: np.random.Generator) -> int:
        return state + 1


if __name__ == "__main__":
    second = pa.PolicySpec("second", factory=lambda n_arms, context_dim: AlwaysSecond())
    found = pa.compare(LateOrOnTime(), ["nonparametric", "linear", second], realizations=10, horizon=300)
    print(found.to_json())
