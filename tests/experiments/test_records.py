"""What a run leaves behind, and what is told of it, from arrays written down by hand."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

from polyarm.experiments.reporting.statistics import paired_difference, summarize
from polyarm.experiments.reporting.summary import summary, without_nan
from polyarm.experiments.running.play import Run
from polyarm.experiments.running.records import checkpoints, last_tenth, record
from polyarm.experiments.running.results import Results
from polyarm.types import World

HORIZON = 30


def world(seed: int) -> World:
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((HORIZON, 3))
    rewards = means + rng.standard_normal((HORIZON, 3))
    return World(contexts=rng.standard_normal((HORIZON, 2)), rewards=rewards, means=means)


def run(seed: int, share: float) -> Run:
    """Arms that are best in so many steps."""
    rng = np.random.default_rng(100 + seed)
    best = world(seed).means.argmax(axis=1)
    arms = np.where(rng.random(HORIZON) < share, best, (best + 1) % 3)
    return Run(arms, 0.5 + seed)


@pytest.mark.parametrize(("horizon", "start"), [(1, 0), (9, 8), (19, 18), (20, 18), (100, 90), (109, 99)])
def test_the_last_tenth(horizon: int, start: int) -> None:
    assert last_tenth(horizon) == start


@pytest.mark.parametrize("horizon", [1, 2, 30, 1500])
def test_checkpoints_are_about_a_hundred_more_of_them_early_and_the_last(horizon: int) -> None:
    steps = checkpoints(horizon)
    wanted = {round(horizon * k / 80) for k in range(81)} | {round(horizon ** (k / 32)) for k in range(33)}
    assert set(steps.tolist()) == {step for step in wanted | {last_tenth(horizon), horizon} if step >= 1}
    assert (np.diff(steps) > 0).all()


def test_rows_are_sums_up_to_their_steps() -> None:
    here, played = world(0), run(0, 0.6)
    rows = record("a", 7, here, played).to_pylist()
    assert [row["step"] for row in rows] == checkpoints(HORIZON).tolist()
    for row in rows:
        n = row["step"]
        arms, best = played.arms[:n], here.means[:n].max(axis=1)
        assert (row["policy"], row["realization"], row["seconds"]) == ("a", 7, 0.5)
        assert row["regret"] == pytest.approx(sum(best - here.means[np.arange(n), arms]))
        assert row["observed_regret"] == pytest.approx(sum(best - here.rewards[np.arange(n), arms]))
        assert row["optimal_plays"] == sum(here.means[:n].argmax(axis=1) == arms)
        assert row["plays"] == [int((arms == arm).sum()) for arm in range(3)]


@pytest.fixture
def results() -> Results:
    tables = [record(label, i, world(i), run(i, share)) for label, share in (("a", 0.9), ("b", 0.2)) for i in range(4)]
    settings = {"policies": {"a": {}, "b": {}}, "horizon": HORIZON, "scenario": "hand", "seed": 3}
    return Results(pa.concat_tables(tables), settings)


def test_results_are_read_back_by_policy_and_realisation(results: Results) -> None:
    assert results.labels == ["a", "b"]
    np.testing.assert_array_equal(results.realizations, range(4))
    np.testing.assert_array_equal(results.steps, checkpoints(HORIZON))
    steps = len(results.steps)
    assert results.curves("a", "plays").shape == (4, steps, 3)
    for label, share in (("a", 0.9), ("b", 0.2)):
        for i in range(4):
            arms, best = run(i, share).arms, world(i).means.argmax(axis=1)
            right = arms == best
            np.testing.assert_allclose(results.optimal_share(label)[i], [right[:n].mean() for n in results.steps])
            assert results.locked_in(label)[i] == float(right[27:].mean() < 0.5)
            gap = world(i).means.max(axis=1) - world(i).means[np.arange(HORIZON), arms]
            assert results.final(label)[i] == pytest.approx(gap.sum())
    assert results.locked_in("b").mean() > 0


def test_a_summary_tells_means_shares_and_paired_differences(results: Results) -> None:
    told = summary(results, "a")
    assert (told["scenario"], told["horizon"], told["realizations"], told["seed"]) == ("hand", HORIZON, 4, 3)
    for label in ("a", "b"):
        mine = told["policies"][label]
        assert mine["regret"]["mean"] == pytest.approx(results.final(label).mean())
        assert mine["observed_regret"]["std"] == pytest.approx(results.final(label, "observed_regret").std(ddof=1))
        assert mine["optimal_arm_share"] == pytest.approx(
            results.curves(label, "optimal_plays")[:, -1].mean() / HORIZON
        )
        assert mine["lock_in_share"] == results.locked_in(label).mean()
        assert mine["seconds_per_realization"] == pytest.approx(2.0)
    assert list(told["differences"]) == ["b"]
    paired = stats.ttest_rel(results.final("b"), results.final("a"))
    assert told["differences"]["b"]["versus"] == "a"
    assert told["differences"]["b"]["p_value"] == pytest.approx(paired.pvalue)
    assert told["differences"]["b"]["ci95"] == pytest.approx(list(paired.confidence_interval(0.95)))
    assert list(summary(results)["differences"]) == ["b"]


def test_what_is_no_number_is_null_and_all_else_stays() -> None:
    told = {"a": math.nan, "b": [1.5, math.inf, "x", None], "c": {"d": (2, -math.inf)}}
    assert without_nan(told) == {"a": None, "b": [1.5, None, "x", None], "c": {"d": [2, None]}}


def test_two_values_have_a_standard_deviation() -> None:
    assert summarize(np.array([1.0, 4.0])).std == pytest.approx(math.sqrt(4.5))
    assert math.isnan(summarize(np.array([1.0])).std)


def test_two_pairs_have_an_interval() -> None:
    found = paired_difference(np.array([1.0, 4.0]), np.array([0.0, 1.0]))
    exact = stats.ttest_rel([1.0, 4.0], [0.0, 1.0])
    assert found.p_value == pytest.approx(exact.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(exact.confidence_interval(0.95)))


def test_realisations_are_those_of_the_first_policy(results: Results) -> None:
    rows = results.table.filter((pc.field("policy") == "a") | (pc.field("realization") < 2))
    np.testing.assert_array_equal(Results(rows, results.settings).realizations, range(4))


def test_a_study_of_one_policy_is_told_without_differences() -> None:
    settings = {"policies": {"a": {}}, "horizon": HORIZON, "scenario": "hand", "seed": 3}
    alone = Results(record("a", 0, world(0), run(0, 0.9)), settings)
    np.testing.assert_array_equal(alone.steps, checkpoints(HORIZON))
    told = summary(alone)
    assert told["realizations"] == 1
    assert told["differences"] == {}
    assert math.isnan(told["policies"]["a"]["regret"]["se"])
