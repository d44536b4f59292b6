"""How far each engine's draws of an arm's mean are from a long Gibbs run, in posterior standard deviations.

python benchmarks/engine_accuracy.py --engines budget variational --runs 100 --data-sets 5 --sizes 30 100 300 1000

The error is the Wasserstein distance between draws of independent runs over one stream of rewards and the draws of
four long chains; the floor is that distance for other long chains.  Every state gives EACH draws, to lower the noise.
Streams differ in how hard they are, so that the mean over data sets and the worst one are both told.
"""

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
from scipy.stats import wasserstein_distance

from polyarm.inference import Budget, GibbsEngine, make_engine
from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.types import AnyEngine, Array, Rng

CHAINS, DRAWS, THIN, BURN_IN, EACH = 4, 400, 5, 100, 25
SHORT = 1000  # rewards up to which long chains are four times as long: they cost little there


def two_lines(n: int, rng: Rng) -> tuple[Array, Array]:
    """reg2: two crossing lines over one covariate."""
    x = np.column_stack([np.ones(n), rng.uniform(-1, 1, n)])
    w = np.array([[0.5, 1.5], [-0.5, -1.0]])[(rng.random(n) < 0.4).astype(int)]
    return x, (x * w).sum(axis=1) + 0.3 * rng.standard_normal(n)


def three_planes(n: int, rng: Rng) -> tuple[Array, Array]:
    """reg5: three regressions in five dimensions."""
    x = np.column_stack([np.ones(n), rng.uniform(-1, 1, (n, 4))])
    planes = np.random.default_rng(99).normal(0, 1, (3, 5))
    w = planes[rng.choice(3, n, p=[0.5, 0.3, 0.2])]
    return x, (x * w).sum(axis=1) + 0.3 * rng.standard_normal(n)


PROBLEMS = {"reg2": two_lines, "reg5": three_planes}


def model_of(dim: int) -> LinearMixture:
    return LinearMixture(NormalInverseGamma(dim, 0.0, 4.0, 2.0, 0.5), 1.0)


def fed(engine: AnyEngine, x: Array, y: Array, rng: Rng, state: Any = None) -> Any:
    state = engine.init() if state is None else state
    for xi, yi in zip(x, y, strict=True):
        state = engine.update(state, xi, 0, float(yi), rng)
    return state


def long_run(x: Array, y: Array, at: Array, seed: int, draws: int = DRAWS) -> Array:
    """Draws of the mean in one context by long chains of full sweeps with split-merge."""
    engine = GibbsEngine([model_of(x.shape[1])], Budget(64))
    found = []
    for chain in range(CHAINS):
        rng = np.random.default_rng([seed, chain])
        state = fed(engine, x, y, rng)
        for step in range(BURN_IN + draws * THIN // CHAINS):
            state = engine.split_merge(engine.sweep(state, 0, rng), 0, 1, rng)
            if step >= BURN_IN and step % THIN == 0:
                found.append(engine.draw_means(state, at, EACH, rng)[:, 0])
    return np.concatenate(found)


def short_runs(name: str, options: dict[str, Any], x: Array, y: Array, at: Array, sizes: list[int], runs: int) -> Array:
    """Draws of every run for every size, (sizes, runs * EACH)."""
    engine = make_engine(name, [model_of(x.shape[1])], **options)
    out = np.empty((len(sizes), runs, EACH))
    for run in range(runs):
        rng = np.random.default_rng([7, run])
        state, start = engine.init(), 0
        for i, size in enumerate(sizes):
            state = fed(engine, x[start:size], y[start:size], rng, state)
            out[i, run] = engine.draw_means(state, at, EACH, rng)[:, 0]
            start = size
    return out.reshape(len(sizes), -1)


def measure(
    problem: str, engines: list[str], sizes: list[int], runs: int, seed: int, with_floor: bool
) -> list[dict[str, Any]]:
    x, y = PROBLEMS[problem](max(sizes), np.random.default_rng(seed))
    at = np.concatenate([[1.0], np.full(x.shape[1] - 1, 0.8)])
    draws = [DRAWS if n > SHORT else 4 * DRAWS for n in sizes]
    gold = [long_run(x[:n], y[:n], at, 1, m) for n, m in zip(sizes, draws, strict=True)]
    floor = [long_run(x[:n], y[:n], at, 2, m) for n, m in zip(sizes, draws, strict=True)] if with_floor else gold
    rows = []
    for name in engines:
        start = time.perf_counter()
        found = short_runs(name, {}, x, y, at, sizes, runs)
        each = (time.perf_counter() - start) / runs / max(sizes)
        for n, ours, truth, other in zip(sizes, found, gold, floor, strict=True):
            sd = truth.std()
            row = {
                "problem": problem,
                "engine": name,
                "seed": seed,
                "n": n,
                "w1": wasserstein_distance(ours, truth) / sd,
                "floor": wasserstein_distance(other, truth) / sd,
                "sd_ratio": ours.std() / sd,
                "us_per_reward": 1e6 * each,
            }
            rows.append(row)
            print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}), flush=True)
    return rows


def summarise(rows: list[dict[str, Any]]) -> None:
    """Print the mean error over data sets, the worst, and the range of the ratios of standard deviations."""
    for key in dict.fromkeys((row["problem"], row["engine"], row["n"]) for row in rows):
        own = [row for row in rows if (row["problem"], row["engine"], row["n"]) == key]
        w1, ratio = ([row[name] for row in own] for name in ("w1", "sd_ratio"))
        print(*key, f"mean {np.mean(w1):.2f} worst {max(w1):.2f} sd ratio {min(ratio):.2f} to {max(ratio):.2f}")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", nargs="+", default=["budget"])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[30, 100, 300, 1000, 3000, 10000])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--data-sets", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="of the first data set")
    parser.add_argument("--floor", action="store_true", help="run other long chains too")
    options = parser.parse_args(arguments)
    rows = []
    for problem in options.problems:
        for seed in range(options.seed, options.seed + options.data_sets):
            rows += measure(problem, options.engines, sorted(options.sizes), options.runs, seed, options.floor)
    summarise(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
