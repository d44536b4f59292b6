"""Numbers of the reports, from sums, against the rows that the sums were made of."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from polyarm.service import catalog, ledger
from polyarm.service.database import open_database
from polyarm.service.ledger import PLAYS, SUMS
from polyarm.service.messages import ExperimentSettings
from polyarm.service.offpolicy import FEW, always_each_arm
from polyarm.service.reports import Sums, interval, propensity_test


def test_the_value_of_one_arm_is_that_of_its_weighted_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    propensity, reward = rng.uniform(0.1, 0.9, 80), rng.normal(3.0, 2.0, 80)
    w = 1.0 / propensity
    few = [1, 2.0, 4.0, 2.0, 4.0, 4.0, 8.0, 16.0]  # one reward of 2 at propensity 1/2
    terms = (np.ones(80), reward, reward**2, w, w * reward, w**2, w**2 * reward, (w * reward) ** 2)
    plays = [0.0] * len(PLAYS)
    database = open_database(str(tmp_path / "s.db"))
    with database.writing.begin() as connection:
        catalog.add_experiment(connection, ExperimentSettings("shop", ["a", "b", "c"]), "test")
        half = [[float(term[part].sum()) for term in terms] for part in (slice(0, 50), slice(50, 80))]
        cells = {
            ("shop", 1, "a", "bandit"): half[0],
            ("shop", 2, "a", "bandit"): half[1],
            ("shop", 1, "b", "bandit"): few,
        }
        ledger.add_to_rollups(connection, {cell: [*plays, *sums] for cell, sums in cells.items()})
        found = {value.arm: value for value in always_each_arm(connection, catalog.get_experiment(connection, "shop"))}
    database.close()
    mean = np.sum(w * reward) / np.sum(w)
    half_width = 1.96 * np.sqrt(np.sum(w**2 * (reward - mean) ** 2)) / np.sum(w)
    assert len(SUMS) == len(PLAYS) + len(terms)
    assert found["a"].mean == pytest.approx(mean)
    assert found["a"].interval == pytest.approx((mean - half_width, mean + half_width))
    assert found["a"].effective == pytest.approx(np.sum(w) ** 2 / np.sum(w**2))
    assert found["a"].effective > FEW
    assert (found["b"].mean, found["b"].interval) == (2.0, None)
    assert "c" not in found


def test_plays_are_held_against_their_probabilities() -> None:
    def sums(plays: int, expected: float, variance: float) -> Sums:
        return Sums(plays, expected, variance, 0, 0.0, 0.0)

    p_value = propensity_test({("a", "bandit"): sums(70, 50.0, 25.0), ("b", "bandit"): sums(101, 100.0, 49.0)})
    assert p_value == pytest.approx(2 * 2 * stats.norm.sf(20 / 5))
    assert propensity_test({("a", "holdout"): sums(70, 50.0, 25.0), ("b", "bandit"): sums(9, 0.0, 4.0)}) is None


def test_the_interval_of_a_mean_is_students() -> None:
    y = np.array([1.0, 4.0, 2.5, 9.0])
    mean, bounds = interval(4, float(y.sum()), float((y**2).sum()))
    half_width = stats.t.ppf(0.975, 3) * y.std(ddof=1) / math.sqrt(4)
    assert mean == pytest.approx(y.mean())
    assert bounds == pytest.approx((y.mean() - half_width, y.mean() + half_width))
    assert interval(0, 0.0, 0.0) == (None, None)
    assert interval(1, 2.0, 4.0) == (2.0, None)
