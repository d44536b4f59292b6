"""How far an arm's true mean is from what states of the default's sampler say, in standard deviations.

    python benchmarks/one_state.py [--runs 200] [--scenarios mixture-a,mixture-b,...] [--seed 0] [--chains 1]

Arms are played in turn; when each has had so many rewards, mean and standard deviation of every arm in new contexts are
held against the truth.  Told are root mean squares of error / standard deviation, none counted as more than CAP: as
the states of so many chains claim (`moments`), and as the exploration rule takes it (`outlook`).  1 is right, above 1
is too sure.
"""

import argparse
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from polyarm.environments.presets import make_scenario
from polyarm.policies import make_policy
from polyarm.types import Array

SCENARIOS = "mixture-a,mixture-b,heavy-tailed,exponential,laplace/6-arms,linear-noise,nonlinear,unequal-noise"
REWARDS = (1, 2, 3, 5, 8, 12, 20, 40)  # of every arm
CONTEXTS = 4
CAP = 10.0


def errors_of_run(scenario: str, rewards: tuple[int, ...], seed: int, run: int, n_chains: int) -> Array:
    """Errors over standard deviations, claimed and of the rule, (2, numbers of rewards, contexts x arms)."""
    environment = make_scenario(scenario).environment
    A, n = environment.n_arms, max(rewards)
    world = environment.sample(A * n + CONTEXTS * len(rewards), np.random.default_rng((seed, run)))
    policy: Any = make_policy("nonparametric", A, environment.context_dim, n_chains=n_chains)
    engine, state, rng = policy.engine, policy.init(), np.random.default_rng((seed, run, 1))
    found = np.empty((2, len(rewards), CONTEXTS, A))
    for t in range(A * n):
        state = policy.update(state, world.contexts[t], t % A, float(world.rewards[t, t % A]), rng)
        if (t + 1) % A == 0 and (t + 1) // A in rewards:
            i = rewards.index((t + 1) // A)
            new = slice(A * n + CONTEXTS * i, A * n + CONTEXTS * (i + 1))
            x = world.contexts[new]
            for row, moments in enumerate((engine.moments_many(state, x), engine.outlook_many(state, x)[0])):
                found[row, i] = (world.means[new] - moments[:, 0]) / moments[:, 1]
    return found.reshape(2, len(rewards), -1)


def root_mean_squares(errors: Array) -> Array:
    """Over runs, contexts and arms, (2, numbers of rewards), of errors (runs, 2, numbers of rewards, ...)."""
    return np.asarray(np.sqrt(np.mean(np.minimum(np.abs(errors), CAP) ** 2, axis=(0, 3))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--scenarios", default=SCENARIOS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chains", type=int, default=1)
    given = parser.parse_args()
    print("| scenario | " + " | ".join(map(str, REWARDS)) + " |")
    print("|---|" + "---|" * len(REWARDS))
    for scenario in given.scenarios.split(","):
        runs = track(range(given.runs), scenario, transient=True, console=Console(stderr=True))
        found = [errors_of_run(scenario, REWARDS, given.seed, run, given.chains) for run in runs]
        claimed, ours = root_mean_squares(np.array(found))
        print(f"| {scenario} | " + " | ".join(f"{a:.2f}, {b:.2f}" for a, b in zip(claimed, ours, strict=True)) + " |")


if __name__ == "__main__":
    main()
