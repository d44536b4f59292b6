import numpy as np
import pytest
from scipy import stats

from polyarm.experiments.reporting.statistics import (
    fit_growth,
    holm,
    paired_difference,
    summarize,
    total_variation,
    z_score,
)

RNG = np.random.default_rng(0)
A, B = RNG.normal(1.0, 2.0, 40), RNG.normal(0.5, 1.0, 40)


def test_summary_equals_scipy() -> None:
    found = summarize(A)
    assert found.mean == pytest.approx(A.mean())
    assert found.se == pytest.approx(stats.sem(A))
    assert found.std == pytest.approx(stats.tstd(A))
    assert found.median == pytest.approx(np.median(A))
    assert found.p95 == pytest.approx(stats.scoreatpercentile(A, 95))


def test_paired_difference_equals_scipy() -> None:
    found, wanted = paired_difference(A, B), stats.ttest_rel(A, B)
    interval = wanted.confidence_interval(0.95)
    assert found.p_value == pytest.approx(wanted.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.mean == pytest.approx((A - B).mean())


def test_single_and_equal_values_do_not_warn() -> None:
    assert np.isnan(summarize(A[:1]).se)
    assert np.isnan(paired_difference(A[:1], B[:1]).p_value)
    assert paired_difference(A, A) == (0.0, 0.0, 0.0, 1.0)
    assert paired_difference(A + 1, A).p_value < 1e-12


def test_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    covered = [
        found.low <= 0.3 <= found.high
        for found in (paired_difference(rng.normal(0.3, 1, 12), np.zeros(12)) for _ in range(4000))
    ]
    assert abs(np.mean(covered) - 0.95) < 4 * (0.95 * 0.05 / 4000) ** 0.5


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_growth_recovers_what_was_planted() -> None:
    steps = np.geomspace(10, 20_000, 50)
    found = fit_growth(steps, 3 * np.sqrt(steps) * np.log(steps) ** 1.5)
    assert (found.factor, found.log_power) == pytest.approx((3, 1.5))
    assert fit_growth(steps, 2 * steps**0.7).power == pytest.approx(0.7)


def test_total_variation_of_two_normals() -> None:
    grid = np.linspace(-12, 14, 4001)
    found = total_variation(stats.norm.pdf(grid), stats.norm.pdf(grid, 2), grid)
    assert found == pytest.approx(2 * stats.norm.cdf(1) - 1, abs=1e-5)


def test_z_score() -> None:
    assert z_score(11, 3, 1, 4) == pytest.approx(2)
