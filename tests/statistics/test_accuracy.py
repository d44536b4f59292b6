"""The constant-time engine stays close to a long Gibbs run where the seating matters: crossing regressions."""

import numpy as np
import pytest
from benchmarks.engine_accuracy import PROBLEMS, long_run, short_runs
from scipy.stats import wasserstein_distance

from polyarm.inference import Budget
from polyarm.types import Array

RUNS = 150


def errors(x: Array, y: Array, runs: int = RUNS, **options: int) -> tuple[float, float]:
    """Wasserstein distance to the long run in its standard deviations, and the ratio of standard deviations."""
    at: Array = np.append(1.0, np.full(x.shape[1] - 1, 0.8))
    gold = long_run(x, y, at, seed=1, draws=600)
    ours = short_runs("budget", options, x, y, at, [len(y)], runs)[0]
    return wasserstein_distance(ours, gold) / gold.std(), ours.std() / gold.std()


@pytest.mark.parametrize(("problem", "n"), [("reg2", 30), ("reg2", 200), ("reg5", 200)])
def test_budget_is_close_to_a_long_run(problem: str, n: int) -> None:
    distance, ratio = errors(*PROBLEMS[problem](n, np.random.default_rng(0)))
    assert distance < 0.2
    assert 0.9 < ratio < 1.1


def test_seating_without_moves_is_not() -> None:
    distance, ratio = errors(*PROBLEMS["reg2"](200, np.random.default_rng(0)), moves=0)
    assert distance > 0.2 or ratio > 1.1


def test_a_young_arm_does_not_lag_behind() -> None:
    """Three regressions whose weights in the posterior turn over shortly before the hundredth reward."""
    x, y = (part[:100] for part in PROBLEMS["reg5"](300, np.random.default_rng(3)))
    distance, ratio = errors(x, y, 400)
    assert distance < 0.2
    assert 0.9 < ratio < 1.1
    assert errors(x, y, 400, warmup_rewards=0)[0] > 0.25  # the same without the moves of youth


def test_moves_of_youth() -> None:
    rule = Budget(64, warmup_rewards=320)
    assert [rule.moves_at(n) for n in (1, 5, 50, 100, 200, 320, 1000, 10**6)] == [64, 64, 500, 655, 163, 64, 64, 64]
    assert [Budget(64, warmup_rewards=0).moves_at(n) for n in (1, 100, 10_000)] == [64, 64, 64]
    assert Budget(0).moves_at(100) == 0
