"""Processor time of an interaction in wide contexts, beside linear Thompson sampling in plain NumPy.

python benchmarks/wide_contexts.py [--arms 8] [--columns 20 30 64] [--steps 600] [--runs 3]
"""

import argparse
import time
from typing import Any

import numpy as np

from polyarm import make_policy
from polyarm.experiments.bench import NumpyLinear

WARM_UP = 200  # steps that are played and not timed


def measure(n_arms: int, n_columns: int, n_steps: int, seed: int) -> tuple[list[float], list[float]]:
    """Mean microseconds of choose and update, and regret, of the default policy and of NumPy, step by step in turn."""
    rng = np.random.default_rng(seed)
    slopes = rng.standard_normal((n_arms, n_columns)) / np.sqrt(n_columns)
    policies: list[Any] = [make_policy("nonparametric", n_arms, n_columns), NumpyLinear(n_arms, n_columns)]
    states, spent, regret = [policy.init() for policy in policies], [0.0, 0.0], [0.0, 0.0]
    for step in range(n_steps):
        x, noise = rng.standard_normal(n_columns), 0.5 * float(rng.standard_normal())
        means = slopes @ x
        for i, policy in enumerate(policies):
            start = time.process_time()
            arm = policy.choose(states[i], x, rng).arm
            states[i] = policy.update(states[i], x, arm, float(means[arm]) + noise, rng)
            if step >= WARM_UP:
                spent[i] += time.process_time() - start
            regret[i] += float(means.max() - means[arm])
    return [1e6 * seconds / (n_steps - WARM_UP) for seconds in spent], regret


def main() -> None:
    """Print one line for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, default=8)
    parser.add_argument("--columns", type=int, nargs="+", default=[20, 30, 64])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    if given.steps <= WARM_UP:
        parser.error(f"--steps must be more than the {WARM_UP} that are not timed, got {given.steps}")
    for n_columns in given.columns:
        for seed in range(given.runs):
            (own, plain), regret = measure(given.arms, n_columns, given.steps, seed)
            print(
                f"{given.arms} arms, {n_columns} columns: {own:.0f} us, NumPy {plain:.0f} us, x {own / plain:.2f};"
                f" regret {regret[0]:.0f}, {regret[1]:.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
