"""Straight lines and normal noise under contexts of many shapes: what the default pays for what it need not know.

Arm a of five pays slopes[a]'x + intercept[a] + N(0, 1); slopes and intercepts are normal and new in every world.  With
a linear model that is right, printed are expected regret, median, 95th percentile and the paired difference.  One
command, about five minutes of processor time for the whole table; --only takes names of SHAPES.

    python benchmarks/plain_worlds.py [--realizations 60] [--seed 37000] [--workers 2] [--only coins,groups]
                                      [--policies "nonparametric;linear-information:intercept=True"]
"""

import argparse
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from rich.progress import track

from polyarm.environments.presets import Scenario
from polyarm.experiments.reporting.statistics import paired_difference, summarize
from polyarm.experiments.running.play import play
from polyarm.experiments.running.policy_specs import parse_policy
from polyarm.experiments.running.seeds import policy_rng, world_rng
from polyarm.types import Array, Rng, World

ARMS, HORIZON, SEED = 5, 1500, 37_000
POLICIES = "nonparametric;linear-information:intercept=True;linear-ucb:intercept=True;linear:intercept=True"


def normal(n: int, rng: Rng) -> Array:
    return rng.standard_normal((n, 4))


def uniform(n: int, rng: Rng) -> Array:
    return rng.random((n, 4))


def coins(n: int, rng: Rng) -> Array:
    return (rng.random((n, 6)) < rng.uniform(0.1, 0.9, 6)).astype(np.float64)


def skewed(n: int, rng: Rng) -> Array:
    return rng.exponential(1.0, (n, 4))


def wild(n: int, rng: Rng) -> Array:
    return np.asarray(np.exp(rng.standard_normal((n, 3))))


def clusters(n: int, rng: Rng) -> Array:
    places = 3.0 * rng.standard_normal((5, 4))
    return np.asarray(places[rng.integers(0, 5, n)] + 0.5 * rng.standard_normal((n, 4)))


def correlated(n: int, rng: Rng) -> Array:
    return np.asarray(rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal((n, 6)))


def groups(n: int, rng: Rng) -> Array:
    return np.asarray(np.eye(12)[rng.integers(0, 12, n)])


def mixed(n: int, rng: Rng) -> Array:
    return np.concatenate([np.eye(4)[rng.integers(0, 4, n)], rng.standard_normal((n, 3))], axis=1)


def none(n: int, rng: Rng) -> Array:
    return np.ones((n, 1))


SHAPES: dict[str, tuple[Callable[[int, Rng], Array], float]] = {  # contexts, and standard deviation of slopes
    "normal": (normal, 0.7),
    "uniform": (uniform, 1.0),
    "coins": (coins, 1.0),
    "skewed": (skewed, 0.5),
    "wild": (wild, 0.3),
    "clusters": (clusters, 0.5),
    "correlated": (correlated, 0.5),
    "groups": (groups, 1.0),
    "mixed": (mixed, 0.7),
    "none": (none, 0.5),
}


class PlainWorld:
    """Arms that are straight lines over contexts of one shape."""

    n_arms = ARMS

    def __init__(self, shape: str) -> None:
        self.contexts, self.slope_sd = SHAPES[shape]
        self.context_dim = self.contexts(1, np.random.default_rng(0)).shape[1]

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        x = self.contexts(horizon, rng)
        means = x @ (self.slope_sd * rng.standard_normal((self.context_dim, ARMS)))
        means += self.slope_sd * rng.standard_normal(ARMS)
        return World(x, means + rng.standard_normal(means.shape), means)


def regret(shape: str, label: str, seed: int, realization: int) -> float:
    """Expected regret of one run."""
    world = (environment := PlainWorld(shape)).sample(HORIZON, world_rng(seed, realization))
    policy = parse_policy(label).build(Scenario(shape, environment, HORIZON))
    arms = play(policy, world, policy_rng(seed, realization, label)).arms
    return float((world.means.max(axis=1) - world.means[np.arange(HORIZON), arms]).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--realizations", type=int, default=60)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default=",".join(SHAPES))
    parser.add_argument("--policies", default=POLICIES)
    given = parser.parse_args()
    shapes, labels = given.only.split(","), given.policies.split(";")
    if not set(shapes) <= set(SHAPES):
        parser.error(f"--only must name some of {', '.join(SHAPES)}, got {given.only}")
    jobs = [(s, p, given.seed, r) for s in shapes for r in range(given.realizations) for p in labels]
    with ProcessPoolExecutor(given.workers, multiprocessing.get_context("spawn")) as pool:
        runs = pool.map(regret, *zip(*jobs, strict=True), chunksize=4)
        found = np.array(list(track(runs, total=len(jobs)))).reshape(len(shapes), given.realizations, len(labels))
    print(f"T = {HORIZON}, R = {given.realizations}, seed {given.seed}, expected regret: mean ± standard error")
    print("| contexts | policy | regret | median | 95th percentile | first policy's minus this one's (95 % CI) |")
    print("|---|---|---|---|---|---|")
    for shape, by_policy in zip(shapes, found.transpose(0, 2, 1), strict=True):
        for label, values in zip(labels, by_policy, strict=True):
            s, gap = summarize(values), paired_difference(by_policy[0], values)
            apart = "-" if label == labels[0] else f"{gap.mean:+.1f} ({gap.low:+.1f}, {gap.high:+.1f})"
            print(f"| {shape} | {label} | {s.mean:.1f} ± {s.se:.1f} | {s.median:.1f} | {s.p95:.0f} | {apart} |")


if __name__ == "__main__":
    main()
