"""What unequal noise costs a learner that is told more about it than anybody knows, and what the unit is worth.

    python benchmarks/told_noise.py [--realizations 100] [--seed 140000] [--workers 2]

`told` has the exact posterior of every arm's line given the arm's own noise variance, which it is told, and plays by
the default's exploration rule.  Its prior is N(0, v) for every slope, v being 0.5 where slopes really come from, and
with `intercept` as much for an intercept, which is really 0.  The default and LinUCB are told neither noise nor slopes,
but LinUCB's prior and width are made for rewards of one size: it is shown in rewards of other sizes, too, regret being
counted in the unit of the scenario.  A run is locked in when its last tenth plays the best arm less than half of the
time.
"""

import argparse
import functools
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from rich.progress import track

from polyarm.environments import UnequalNoise
from polyarm.environments.presets import make_scenario
from polyarm.experiments.running.play import play, sample_world
from polyarm.experiments.running.seeds import policy_rng, world_rng
from polyarm.inference.moments import draw_arm
from polyarm.policies import make_policy
from polyarm.types import Array, Choice, Rng

SCENARIO = make_scenario("unequal-noise")
N_DRAWS, POWER = 100, 2.0  # of the default's rule
LOCKED = 0.5


class Lines(NamedTuple):
    """Normal posteriors of the arms' lines: information (A, D, D), its product with the mean (A, D), covariance."""

    information: Array
    weighted: Array
    covariance: Array


class Told:
    """Bayesian linear regression per arm with known noise, under information-directed sampling."""

    def __init__(self, noise_sd: Array, prior_var: float, intercept: bool, dim: int) -> None:
        self.noise_var, self.intercept = noise_sd**2, intercept
        self.prior_var, self.n_features = prior_var, dim + intercept
        self.relative_noise = self.noise_var / np.median(self.noise_var)

    def init(self) -> Lines:
        A, D = len(self.noise_var), self.n_features
        one = np.stack([np.eye(D)] * A)
        return Lines(one / self.prior_var, np.zeros((A, D)), one * self.prior_var)

    def features(self, context: Array) -> Array:
        return np.append(context, 1.0) if self.intercept else context

    def choose(self, lines: Lines, context: Array, rng: Rng) -> Choice:
        f = self.features(context)
        mean = np.einsum("aij,aj,i->a", lines.covariance, lines.weighted, f)
        sd = np.sqrt(np.einsum("i,aij,j->a", f, lines.covariance, f))
        return Choice(*draw_arm(np.stack([mean, sd]), self.relative_noise, N_DRAWS, POWER, rng))

    def update(self, lines: Lines, context: Array, arm: int, reward: float, rng: Rng) -> Lines:
        f = self.features(context)
        lines.information[arm] += np.outer(f, f) / self.noise_var[arm]
        lines.weighted[arm] += f * reward / self.noise_var[arm]
        lines.covariance[arm] = np.linalg.inv(lines.information[arm])
        return lines


def told(prior_var: float, intercept: bool = False) -> Any:
    environment: Any = SCENARIO.environment
    assert isinstance(environment, UnequalNoise)
    noise_sd = np.geomspace(environment.lowest_sd, environment.highest_sd, environment.n_arms)
    return Told(noise_sd, prior_var, intercept, environment.context_dim)


def preset(name: str) -> Any:
    return make_policy(name, SCENARIO.environment.n_arms, SCENARIO.environment.context_dim)


LEARNERS: dict[str, tuple[Callable[[], Any], float]] = {  # and the size of rewards beside the scenario's
    "told, v = 0.5": (functools.partial(told, 0.5), 1.0),
    "told, v = 5": (functools.partial(told, 5.0), 1.0),
    "told, v = 50": (functools.partial(told, 50.0), 1.0),
    "told, intercept, v = 0.5": (functools.partial(told, 0.5, True), 1.0),
    "told, intercept, v = 5": (functools.partial(told, 5.0, True), 1.0),
    "told, intercept, v = 50": (functools.partial(told, 50.0, True), 1.0),
    "nonparametric": (functools.partial(preset, "nonparametric"), 1.0),
    "linear-ucb": (functools.partial(preset, "linear-ucb"), 1.0),
    "linear-ucb, rewards of an eighth": (functools.partial(preset, "linear-ucb"), 0.125),
    "linear-ucb, rewards eight times as large": (functools.partial(preset, "linear-ucb"), 8.0),
}


def run_one(label: str, seed: int, realization: int) -> tuple[float, float]:
    """Regret of a run, and the share of the best arm in its last tenth."""
    build, size = LEARNERS[label]
    T = SCENARIO.horizon
    world = sample_world(SCENARIO.environment, T, world_rng(seed, realization))
    run = play(build(), world._replace(rewards=world.rewards * size), policy_rng(seed, realization, label))
    late = slice(T - T // 10, T)
    share = float((run.arms[late] == world.means[late].argmax(axis=1)).mean())
    return float((world.means.max(axis=1) - world.means[np.arange(T), run.arms]).sum()), share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--realizations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=140_000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    jobs = [(label, given.seed, r) for label in LEARNERS for r in range(given.realizations)]
    with ProcessPoolExecutor(given.workers, multiprocessing.get_context("spawn")) as pool:
        found = list(track(pool.map(run_one, *zip(*jobs, strict=True), chunksize=4), total=len(jobs)))
    print("| learner | R | mean ± se | median | p95 | locked in |\n|---|---|---|---|---|---|")
    for i, label in enumerate(LEARNERS):
        regret, share = np.array(found[i * given.realizations : (i + 1) * given.realizations]).T
        se = regret.std() / len(regret) ** 0.5
        print(
            f"| {label} | {len(regret)} | {regret.mean():.0f} ± {se:.0f} | {np.median(regret):.0f} | "
            f"{np.quantile(regret, 0.95):.0f} | {100 * np.mean(share < LOCKED):.1f} % |"
        )


if __name__ == "__main__":
    main()
