"""Straight lines and normal noise under contexts of many shapes: what the default pays for what it need not know.

Arm a of five pays slopes[a]'x + intercept[a] + N(0, 1); slopes and intercepts are normal and new in every world.  With
a linear model that is right, printed is what `polyarm compare` says of each shape.  One command, about seven minutes of
processor time in all; runs are kept in benchmarks/results/plain_worlds, and a study that was stopped goes on.  --only
takes names of SHAPES.

    python benchmarks/plain_worlds.py [--realizations 60] [--seed 37000] [--workers 2] [--only coins,groups]
                                      [--policies "nonparametric;linear-information:intercept=True"]
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from polyarm import compare
from polyarm.environments.presets import Scenario
from polyarm.tables import to_markdown
from polyarm.types import Array, Rng, World

RESULTS = Path(__file__).parent / "results" / "plain_worlds"
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


def tails(n: int, rng: Rng) -> Array:
    return rng.standard_t(3, (n, 4))


def rare(n: int, rng: Rng) -> Array:
    return (rng.random((n, 4)) < 0.03).astype(np.float64)


def waking(n: int, rng: Rng) -> Array:
    asleep = np.where(rng.random((n, 12)) < 0.01, 10.0, -0.1)
    return np.concatenate([rng.standard_normal((n, 2)), asleep], axis=1)


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
    "tails": (tails, 0.4),
    "rare": (rare, 1.0),
    "waking": (waking, 0.3),
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--realizations", type=int, default=60)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default=",".join(SHAPES))
    parser.add_argument("--policies", default=POLICIES)
    given = parser.parse_args()
    shapes, policies = given.only.split(","), given.policies.split(";")
    if not set(shapes) <= set(SHAPES):
        parser.error(f"--only must name some of {', '.join(SHAPES)}, got {given.only}")
    for shape in shapes:
        scenario, out = Scenario(shape, PlainWorld(shape), HORIZON), RESULTS / f"{shape}-{given.seed}"
        options = {"workers": given.workers, "out": out, "progress": True}
        for table in compare(scenario, policies, given.realizations, seed=given.seed, **options).tables():
            print(table.title, to_markdown(table), sep="\n\n")


if __name__ == "__main__":
    main()
