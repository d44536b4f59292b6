"""The constant-time engine stays close to a long Gibbs run where the seating matters: crossing regressions."""

import functools

import numpy as np
import pytest
from benchmarks.engine_accuracy import PROBLEMS, long_run, short_runs
from scipy.stats import wasserstein_distance

from polyarm.inference import Budget
from polyarm.types import Array

RUNS = 150


@functools.cache
def posterior(problem: str, n: int, first: int, seed: int) -> tuple[Array, Array, Array, Array]:
    """Contexts and rewards of the first so many of a problem, a point, and draws of the mean there by a long run."""
    x, y = (part[:first] for part in PROBLEMS[problem](n, np.random.default_rng(seed)))
    at: Array = np.append(1.0, np.full(x.shape[1] - 1, 0.8))
    return x, y, at, long_run(x, y, at, seed=1, draws=600)


def errors(
    problem: str, n: int, first: int = 10**6, seed: int = 0, runs: int = RUNS, **options: int
) -> tuple[float, float]:
    """Wasserstein distance to the long run in its standard deviations, and the ratio of standard deviations."""
    x, y, at, gold = posterior(problem, n, first, seed)
    ours = short_runs("budget", options, x, y, at, [len(y)], runs)[0]
    return wasserstein_distance(ours, gold) / gold.std(), ours.std() / gold.std()


@pytest.mark.parametrize(("problem", "n"), [("reg2", 30), ("reg2", 200), ("reg5", 200)])
def test_budget_is_close_to_a_long_run(problem: str, n: int) -> None:
    distance, ratio = errors(problem, n)
    assert distance < 0.2
    assert 0.9 < ratio < 1.1


def test_seating_without_moves_is_not() -> None:
    distance, ratio = errors("reg2", 200, runs=60, moves=0)
    assert distance > 0.2 or ratio > 1.1


def test_a_young_arm_does_not_lag_behind() -> None:
    """Three regressions whose weights in the posterior turn over shortly before the hundredth reward."""
    young = ("reg5", 300, 100, 3)
    distance, ratio = errors(*young, runs=400)
    assert distance < 0.2
    assert 0.9 < ratio < 1.1
    assert errors(*young, warmup_rewards=0)[0] > 0.25  # the same without the moves of youth


def test_moves_of_youth() -> None:
    rule = Budget(64, warmup_rewards=320)
    assert [rule.moves_at(n) for n in (1, 5, 50, 100, 200, 320, 1000, 10**6)] == [64, 64, 500, 655, 163, 64, 64, 64]
    assert [Budget(64, warmup_rewards=0).moves_at(n) for n in (1, 100, 10_000)] == [64, 64, 64]
    assert Budget(0).moves_at(100) == 0
