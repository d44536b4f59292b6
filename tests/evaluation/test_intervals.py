"""Intervals against formulas and simulation; a planted bug must not pass."""

import math

import numpy as np
import pytest
from benchmarks.evaluation_coverage import ESTIMATORS, KINDS, Tally, evaluate_rows, uniform_log
from scipy import stats

from polyarm import evaluate
from polyarm.evaluation.betting import ConfidenceSequence
from polyarm.evaluation.distribution import SIZE, WeightedRewards
from polyarm.evaluation.intervals import Interval, bernstein_ratio, reach_of_bernstein
from polyarm.evaluation.moments import Blocks, Moments
from polyarm.types import Array
from tests.evaluation.worlds import TARGET, make_world

N_LOGS = 400


def coverage_bounds(n: int, level: float = 0.95) -> tuple[float, float]:
    """Shares between which a true coverage stays but for one time in ten thousand."""
    low, high = stats.binom.ppf([5e-5, 1 - 5e-5], n, level) / n
    return float(low), float(high)


@pytest.mark.parametrize("kind", ["heavy-tailed", "binary"])
def test_normal_intervals_cover(kind: str) -> None:
    """A small version of benchmarks/evaluation_coverage.py."""
    tally, narrow = Tally(kind, "uniform"), 0
    for i in range(N_LOGS):
        rng = np.random.default_rng([77, i])
        found = evaluate_rows(uniform_log(KINDS[kind], 400, rng), KINDS[kind], ("normal",), rng)
        tally.add(found)
        low, high = found.intervals["normal", "dr"]
        centre, half = (low + high) / 2, (high - low) / 2 / math.sqrt(2)  # as if every row had been counted twice
        narrow += abs(centre - tally.truth) <= half
    least, most = coverage_bounds(N_LOGS)
    for name in ESTIMATORS:
        share = tally.mean(f"held normal {name}")
        assert share is not None
        assert least <= share <= most
        assert abs(tally.bias_in_se(name)) < 4
    assert narrow / N_LOGS < least  # rows counted twice are found out


def test_bootstrap_and_bernstein_agree_with_normal_on_many_rows() -> None:
    log = make_world(20_000, 1).columns()
    found = {
        how: evaluate(log, TARGET, ["ips", "snips", "dr"], how, model="ridge", reward_range=(-20, 20))
        for how in ("normal", "bootstrap", "empirical-bernstein")
    }
    for name in ("ips", "snips", "dr"):
        plain, resampled, sure = (found[how][name] for how in ("normal", "bootstrap", "empirical-bernstein"))
        assert resampled.value == pytest.approx(plain.value)
        assert resampled.high - resampled.low == pytest.approx(plain.high - plain.low, rel=0.12)
        assert sure.low < plain.low < plain.high < sure.high


def test_bernstein_is_maurer_and_pontils() -> None:
    n, variance, width, level = 50, 0.3, 2.0, 0.9
    one_sided = 1 - level  # delta of theorem 4, halved for two sides
    expected = math.sqrt(2 * variance * math.log(2 / (one_sided / 2)) / n)
    expected += 7 * width * math.log(2 / (one_sided / 2)) / (3 * (n - 1))
    assert reach_of_bernstein(variance, n, width, level) == pytest.approx(expected, rel=1e-12)
    assert reach_of_bernstein(variance, 1, width, level) == math.inf


def test_bernstein_of_a_ratio_is_where_the_test_turns() -> None:
    rng = np.random.default_rng(0)
    w = rng.gamma(2, 0.5, 5000)
    r = rng.random(5000)
    table = np.column_stack([w * r, w])
    low, high = bernstein_ratio(table.mean(axis=0), np.cov(table.T), 5000, 10.0, Interval(0, 1), 0.95)
    for v in (low, high):
        z = w * (r - v)
        assert abs(z.mean()) == pytest.approx(reach_of_bernstein(float(z.var(ddof=1)), 5000, 10.0, 0.95), rel=1e-6)


def test_moments_merge_to_those_of_all_rows() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1000, 3)) @ rng.normal(size=(3, 3)) + 1e6
    parts = [Moments(3) for _ in range(3)]
    for part, piece in zip(parts, np.split(rows, [10, 500]), strict=True):
        part.add(piece)
        part.add(np.empty((0, 3)))
    parts[0].merge(parts[1])
    parts[0].merge(parts[2])
    assert parts[0].mean == pytest.approx(rows.mean(axis=0), rel=1e-14)
    assert parts[0].covariance() == pytest.approx(np.cov(rows.T), rel=1e-8)


def test_blocks_hold_all_rows() -> None:
    blocks = Blocks(1, size=10)
    blocks.add(np.arange(7.0)[:, None])
    assert blocks.used()[:, 0].tolist() == list(range(7))
    blocks.add(np.arange(7.0, 25.0)[:, None])
    assert blocks.used().shape == (10, 2)
    assert blocks.used().sum(axis=0).tolist() == [300.0, 25.0]


def running_bounds(values: Array, mean: float) -> bool:
    """Whether a confidence sequence ever loses the mean."""
    sequence = ConfidenceSequence(Interval(0, 1), 0.95)
    sequence.add_values(values)
    return holds(sequence, mean)


def holds(sequence: ConfidenceSequence, mean: float) -> bool:
    found = sequence.interval()
    return found is not None and found.low <= mean <= found.high


def test_the_confidence_sequence_covers_at_all_times_and_a_fixed_interval_would_not() -> None:
    held = looked = 0
    for i in range(N_LOGS):
        values = np.random.default_rng([5, i]).beta(0.5, 1.5, 1000)
        held += running_bounds(values, 0.25)
        t = np.arange(1, 1001)
        means = values.cumsum() / t
        sds = np.sqrt(np.maximum((values**2).cumsum() / t - means**2, 1e-12))
        looked += bool((np.abs(means - 0.25)[30:] <= 1.96 * (sds / np.sqrt(t))[30:]).all())
    assert held / N_LOGS >= coverage_bounds(N_LOGS)[0]
    assert looked / N_LOGS < 0.8  # a 95 % interval that one looks at every day


def test_the_confidence_sequence_narrows_and_never_widens() -> None:
    rng = np.random.default_rng(0)
    sequence = ConfidenceSequence(Interval(-2, 6), 0.95)
    widths = []
    for _ in range(40):
        weights = rng.choice([0.0, 4.0], p=[0.75, 0.25], size=500)
        sequence.add_weighted(weights, 8 * rng.beta(2, 6, 500) - 2)
        found = sequence.interval()
        assert found is not None
        widths.append(found.high - found.low)
        assert holds(sequence, 0.0)
    assert (np.diff(widths) <= 0).all()
    assert widths[-1] < 0.1 * 8


def test_a_confidence_sequence_of_impossible_weights_is_none() -> None:
    sequence = ConfidenceSequence(Interval(0, 1), 0.95)
    sequence.add_weighted(np.full(100, 1e6), np.full(100, 0.5))
    assert sequence.interval() is None


def test_betting_with_weights_without_bound() -> None:
    """Weights whose largest is never known beforehand: still no more than one miss in twenty."""
    held = 0
    for i in range(200):
        rng = np.random.default_rng([6, i])
        weights = rng.pareto(2.5, 500) * 1.5  # mean 1
        sequence = ConfidenceSequence(Interval(0, 1), 0.95)
        sequence.add_weighted(weights, (rng.random(500) < 0.3).astype(float))
        held += holds(sequence, 0.3)
    assert held / 200 >= coverage_bounds(200)[0]


def naive_tail(weights: Array, rewards: Array, p: float) -> tuple[float, float]:
    """Quantile and shortfall of a weighted sample, row by row."""
    order = np.argsort(rewards)
    w, r = weights[order] / weights.sum(), rewards[order]
    place = int(np.searchsorted(np.cumsum(w), p))
    rest = p - w[:place].sum()
    return float(r[place]), float((w[:place] @ r[:place] + rest * r[place]) / p)


def test_quantile_and_shortfall_are_those_of_the_weighted_sample() -> None:
    rng = np.random.default_rng(0)
    weights, rewards = rng.gamma(1, 1, 5000), rng.standard_t(3, 5000)
    kept = WeightedRewards()
    for w, r in zip(np.split(weights, 10), np.split(rewards, 10), strict=True):
        kept.add(w, r)
    for p in (0.05, 0.1, 0.5, 0.9):
        quantile, shortfall = naive_tail(weights, rewards, p)
        assert kept.quantile(p) == pytest.approx(quantile)
        assert kept.shortfall(p) == pytest.approx(shortfall)


def test_the_tail_of_many_rows_in_bounded_memory() -> None:
    rng = np.random.default_rng(1)
    weights, rewards = rng.gamma(1, 1, 300_000), rng.standard_t(3, 300_000)
    kept = WeightedRewards()
    for w, r in zip(np.split(weights, 30), np.split(rewards, 30), strict=True):
        kept.add(w, r)
    assert len(kept.rewards) <= SIZE
    for p in (0.05, 0.5):
        quantile, shortfall = naive_tail(weights, rewards, p)
        assert kept.quantile(p) == pytest.approx(quantile, abs=2e-3)
        assert kept.shortfall(p) == pytest.approx(shortfall, abs=2e-3)


def test_intervals_of_quantile_and_shortfall_cover() -> None:
    p, n_logs = 0.2, 400
    truth = float(stats.expon.ppf(p))
    short = float((stats.expon.expect(lambda y: y, ub=truth)) / p)
    held = {"normal": 0, "sure": 0, "shortfall": 0}
    for i in range(n_logs):
        rng = np.random.default_rng([8, i])
        kept = WeightedRewards()
        kept.add(rng.choice([0.5, 2.0], p=[2 / 3, 1 / 3], size=300), rng.exponential(size=300))
        for name, (low, high) in {
            "normal": kept.quantile_normal(p, 0.95),
            "sure": kept.quantile_bernstein(p, 2.0, 0.95),
            "shortfall": kept.shortfall_normal(p, 0.95),
        }.items():
            held[name] += low <= (short if name == "shortfall" else truth) <= high
    least, most = coverage_bounds(n_logs)
    assert least <= held["normal"] / n_logs <= most
    assert least - 0.02 <= held["shortfall"] / n_logs <= most
    assert held["sure"] / n_logs >= least
