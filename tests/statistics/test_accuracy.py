"""The constant-time engine stays close to a long Gibbs run where the seating matters: crossing regressions."""

import numpy as np
import pytest
from benchmarks.engine_accuracy import PROBLEMS, long_run, short_runs
from scipy.stats import wasserstein_distance

from polyarm.types import Array

RUNS = 150


def errors(problem: str, n: int, **options: int) -> tuple[float, float]:
    """Wasserstein distance to the long run in its standard deviations, and the ratio of standard deviations."""
    x, y = PROBLEMS[problem](n, np.random.default_rng(0))
    at: Array = np.append(1.0, np.full(x.shape[1] - 1, 0.8))
    gold = long_run(x, y, at, seed=1, draws=600)
    ours = short_runs("budget", options, x, y, at, [n], RUNS)[0]
    return wasserstein_distance(ours, gold) / gold.std(), ours.std() / gold.std()


@pytest.mark.parametrize(("problem", "n"), [("reg2", 30), ("reg2", 200), ("reg5", 200)])
def test_budget_is_close_to_a_long_run(problem: str, n: int) -> None:
    distance, ratio = errors(problem, n)
    assert distance < 0.2
    assert 0.9 < ratio < 1.1


def test_seating_without_moves_is_not() -> None:
    distance, ratio = errors("reg2", 200, moves=0)
    assert distance > 0.2 or ratio > 1.1
