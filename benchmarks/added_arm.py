"""What a late arm gains by starting from what the other arms have taught, instead of from the prior.

One arm of a scenario, drawn at random in each realisation, is only there from step 500 of 2000.  `shared` adds it by
`with_arm`; `alone` gives it an engine of its own, which starts from the prior and shares nothing.  Printed is the mean
expected regret of the steps since, with standard errors and the paired difference.

    python benchmarks/added_arm.py [REALISATIONS] [SCENARIO ...]
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from polyarm import Array, InformationDirected, RobustEngine, RobustMixture, World, make_scenario
from polyarm.types import Rng

ADDED, HORIZON = 500, 2000
SCENARIOS = ("linear", "mixture-b", "revenue", "student")
SEED = 0


class Pair(NamedTuple):
    """States of the engine of the first arms and of the last arm's own."""

    first: Any
    last: Any


@dataclass(frozen=True, eq=False)
class Apart:
    """The last arm has an engine of its own."""

    first: RobustEngine
    last: RobustEngine

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.first.n_arms + 1

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return self.first.context_dim

    def update(self, state: Pair, context: Array, arm: int, reward: float, rng: Rng) -> Pair:
        """State after one reward."""
        if arm < self.first.n_arms:
            return Pair(self.first.update(state.first, context, arm, reward, rng), state.last)
        return Pair(state.first, self.last.update(state.last, context, 0, reward, rng))

    def moments(self, state: Pair, context: Array) -> Array:
        """Mean and standard deviation of every arm's mean reward, (2, n_arms)."""
        parts = self.first.moments(state.first, context), self.last.moments(state.last, context)
        return np.concatenate(parts, axis=1)


def shared(policy: Any, state: Any) -> tuple[Any, Any]:
    """The policy with an arm that starts from what the arms share."""
    return policy.with_arm(state)  # type: ignore[no-any-return]


def alone(policy: Any, state: Any) -> tuple[Any, Any]:
    """The policy with an arm that starts from the prior."""
    last = replace(policy.engine, model=replace(policy.engine.model, n_arms=1))
    return replace(policy, engine=Apart(policy.engine, last)), Pair(state, last.init())


def regret(world: World, add: Callable[[Any, Any], tuple[Any, Any]], rng: Rng) -> float:
    """Expected regret since the last arm came."""
    n_arms, dim = world.means.shape[1], world.contexts.shape[1]
    policy: Any = InformationDirected(RobustEngine(RobustMixture(n_arms - 1, dim)))
    state, total = policy.init(), 0.0
    for step, x in enumerate(world.contexts):
        if step == ADDED:
            policy, state = add(policy, state)
        arm = policy.choose(state, x, rng).arm
        state = policy.update(state, x, arm, float(world.rewards[step, arm]), rng)
        total += (world.means[step].max() - world.means[step, arm]) * (step >= ADDED)
    return float(total)


def study(name: str, realisations: int) -> Array:
    """Regrets of both, (realisations, 2), in the same worlds."""
    rows = []
    for number in range(realisations):
        rng = np.random.default_rng([SEED, number])
        world = make_scenario(name).environment.sample(HORIZON, rng)
        order = rng.permutation(world.means.shape[1])
        mixed = World(world.contexts, world.rewards[:, order], world.means[:, order])
        rows.append([regret(mixed, add, np.random.default_rng([SEED, number, 1])) for add in (shared, alone)])
    return np.array(rows)


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for scenario in sys.argv[2:] or SCENARIOS:
        found = study(scenario, n)
        gap = found[:, 1] - found[:, 0]
        table = np.column_stack([found, gap])
        mean, se = table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(n)
        shown = "  ".join(
            f"{label} {m:.1f} +- {s:.1f}" for label, m, s in zip(("shared", "alone", "saved"), mean, se, strict=True)
        )
        print(f"{scenario:12} R = {n}: {shown}", flush=True)
