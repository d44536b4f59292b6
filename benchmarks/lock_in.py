"""How many runs lock in however well one explores: a learner that is told every arm's reward at every step.

    python benchmarks/lock_in.py [--realizations 100] [--seed 140000] [--only rates/few,revenue]

A run is locked in when its last tenth plays the best arm less than half of the time.  The learner never explores: it
plays the arm of the highest expected reward given all rewards of all arms so far, for rates by counting, else by the
default's model.  A policy sees one reward a step, so that nobody can expect to lock in more rarely by knowing more;
what is left is arms that are too much alike to be told apart in so many steps.
"""

import argparse
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from polyarm.environments.presets import Scenario, make_scenario
from polyarm.experiments.running.play import sample_world
from polyarm.experiments.running.seeds import policy_rng, world_rng
from polyarm.policies import make_policy
from polyarm.types import IntArray, Rng, World

SCENARIOS = "rates/few,rates/rare,rates/common,rates/wide,revenue,unequal-noise,laplace/20-arms"
LOCKED = 0.5


def by_counting(world: World) -> IntArray:
    """Arms that paid most often before each step; the first step's is any."""
    before = np.cumsum(world.rewards, axis=0) - world.rewards
    return np.asarray(before.argmax(axis=1))


def by_model(scenario: Scenario, world: World, rng: Rng) -> IntArray:
    """Arms of the highest expected reward by the default's model of all rewards so far."""
    A = scenario.environment.n_arms
    policy: Any = make_policy("nonparametric", A, scenario.environment.context_dim)
    engine, state, arms = policy.engine, policy.init(), np.zeros(len(world.contexts), np.int64)
    for t, x in enumerate(world.contexts):
        arms[t] = engine.expected_means(state, x).argmax()
        for arm in range(A):
            state = policy.update(state, x, arm, float(world.rewards[t, arm]), rng)
    return arms


def late_share(world: World, arms: IntArray) -> float:
    """Share of the last tenth of the steps in which the best arm was played."""
    late = slice(len(arms) - len(arms) // 10, len(arms))
    return float((arms[late] == world.means[late].argmax(axis=1)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--realizations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=140_000)
    parser.add_argument("--only", default=SCENARIOS)
    given = parser.parse_args()
    print("| scenario | R | locked in, told every reward |\n|---|---|---|")
    for name in given.only.split(","):
        scenario, shares = make_scenario(name), []
        for r in track(range(given.realizations), name, transient=True, console=Console(stderr=True)):
            world = sample_world(scenario.environment, scenario.horizon, world_rng(given.seed, r))
            rates = name.startswith("rates/")
            rng = policy_rng(given.seed, r, "told")
            shares.append(late_share(world, by_counting(world) if rates else by_model(scenario, world, rng)))
        print(f"| {name} | {len(shares)} | {100 * np.mean(np.array(shares) < LOCKED):.1f} % |", flush=True)


if __name__ == "__main__":
    main()
