"""What is wrong with a log is found out and said."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from polyarm import evaluate
from polyarm.evaluation import Evaluation, duplicates
from polyarm.evaluation.duplicates import Duplicates
from polyarm.evaluation.weights import Weights
from tests.evaluation.worlds import ARMS, TARGET, make_world

WORLD = make_world(4000, 21)


def run(target: Any = TARGET, options: dict[str, Any] | None = None, **more: Any) -> Evaluation:
    return evaluate(WORLD.columns(**more), target, "snips", "normal", **(options or {}))


def test_a_sound_log_is_trusted() -> None:
    found = run()
    assert [d.level for d in found.targets] == ["yes"]
    assert found.log.n_duplicates == 0
    assert not found.log.test.rejected
    assert found.verdict.startswith("as_function: the log can tell; 4000 rows are worth")


def test_sound_propensities_are_seldom_rejected() -> None:
    assert not any(
        evaluate(make_world(600, seed).columns(), "uniform", "ips", "normal").log.test.rejected for seed in range(100)
    )


@pytest.mark.parametrize("fault", ["constant", "of another arm", "shuffled", "scaled", "stale"])
def test_wrong_propensities_are_found_out(fault: str) -> None:
    rows, rng = np.arange(4000), np.random.default_rng(0)
    right = WORLD.logging[rows, WORLD.arms]
    wrong = {
        "constant": np.full(4000, 1 / 3),
        "of another arm": WORLD.logging[rows, (WORLD.arms + 1) % 3],
        "shuffled": rng.permutation(right),
        "scaled": right * 0.8,
        "stale": np.roll(right, 1),
    }[fault]
    found = run(propensity=wrong)
    assert found.log.test.rejected
    assert found.targets[0].level == "no"
    assert "the propensities are not those that the log was played by" in found.verdict


def test_a_drift_that_the_propensities_do_not_know_is_found_out() -> None:
    rng = np.random.default_rng(0)
    share = np.linspace(0.2, 0.8, 4000)
    arms = np.where(rng.random(4000) < share, "a", "b")
    log = {"arm": arms, "reward": rng.random(4000), "propensity": np.full(4000, 0.5)}
    found = evaluate(log, "uniform", "snips", "normal")
    assert "depend on the time" in found.verdict


def test_arms_that_were_not_always_possible_are_no_fault_where_the_log_says_so() -> None:
    rng = np.random.default_rng(0)
    possible = np.column_stack([np.ones((4000, 2), bool), rng.random(4000) < 0.5])
    p = possible / possible.sum(axis=1, keepdims=True)
    arms = (p.cumsum(axis=1) > rng.random((4000, 1))).argmax(axis=1)
    log = {"arm": np.array(ARMS)[arms], "reward": rng.random(4000), "propensity": p[np.arange(4000), arms]}
    assert evaluate(log, "arm:a", "snips", "normal").log.test.rejected  # c seems to be played half as often as due
    told = evaluate({**log, "probabilities": p.tolist()}, "arm:a", "snips", "normal")
    assert not told.log.test.rejected
    assert told.targets[0].level == "yes"


def test_a_target_outside_the_logs_support_is_found_out() -> None:
    never = run({"d": lambda context: [0, 0, 0.9, 0.1]}, {"arms": [*ARMS, "d"]})
    assert never.targets[0].outside == pytest.approx(0.1)
    assert "10% of what the target would do the log never tries" in never.verdict
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    arms = np.where(x > 0, "a", np.where(rng.random(4000) < 0.5, "a", "b"))  # b is never tried where x > 0
    log = {"arm": arms, "reward": x, "propensity": np.where(x > 0, 1.0, 0.5), "x": x}
    found = evaluate(log, "arm:b", "snips", "normal")
    assert found.targets[0].outside == pytest.approx(0.5, abs=0.05)
    assert "nobody can know what that pays" in found.verdict
    vectors = np.where(x[:, None] > 0, [1.0, 0.0], [0.5, 0.5]).tolist()
    told = evaluate({**log, "probabilities": vectors}, "arm:b", "snips", "normal")
    assert told.targets[0].outside == pytest.approx((x > 0).mean(), abs=1e-9)


def test_duplicated_ids_are_found_out() -> None:
    columns = {name: np.concatenate([values, values[:50]]) for name, values in WORLD.columns().items()}
    found = evaluate(columns, TARGET, "snips", "normal")
    assert found.log.n_duplicates == 50
    assert "50 rows repeat an id that came before (row-0, row-1, row-2)" in found.verdict
    assert found.targets[0].level == "no"


def test_duplicates_beyond_memory_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "CAPACITY", 1000)
    kept = Duplicates()
    for start in range(0, 40_000, 2000):
        kept.add(pa.array([f"id-{i}" for i in range(start, start + 2000)]))
    assert (kept.count, kept.is_exact) == (0, False)
    for start in range(0, 20_000, 2000):
        kept.add(pa.array([f"id-{i}" for i in range(start, start + 2000)]))
    assert len(kept.seen) <= 1000
    assert kept.count == pytest.approx(20_000, rel=0.15)


def test_ids_may_be_anything() -> None:
    for ids in (pa.array([1, 2, 1]), pa.array(["é", "e", "é"]), pa.array([1.5, 2.5, 1.5]), pa.array(["", None, "a"])):
        kept = Duplicates()
        kept.add(ids)
        assert kept.count == 1


def test_too_few_effective_rows_are_told() -> None:
    found = evaluate(make_world(60, 0).columns(), "arm:c", "snips", "normal")
    assert found.targets[0].level == "no"
    assert "rows are worth only" in found.verdict


def test_too_few_rewards_are_told() -> None:
    rng = np.random.default_rng(0)
    log = {"arm": rng.choice(["a", "b"], 5000), "reward": np.zeros(5000), "propensity": np.full(5000, 0.5)}
    log["reward"][:8] = 1.0
    found = evaluate(log, "arm:a", "snips", "normal")
    assert "all reward comes from what is worth" in found.verdict
    assert found.targets[0].level == "no"


def test_estimated_propensities_are_near_and_labelled_everywhere() -> None:
    columns = WORLD.columns()
    del columns["propensity"]
    found = evaluate(columns, TARGET, ["ips", "snips", "dr", "quantile"], "normal", model="ridge")
    known = evaluate(WORLD.columns(), TARGET, ["ips", "snips", "dr"], "normal", model="ridge")
    assert found.log.propensities == "estimated"
    assert all(e.label == "estimated propensities" for e in found.estimates if e.target != "the log")
    assert all(d.label == "estimated propensities" for d in found.differences)
    assert found.targets[0].level == "care"
    assert not found.log.test.rejected
    for name in ("snips", "dr"):
        assert abs(found[name].value - known[name].value) < 3 * known[name].se
    assert "estimated propensities" in found.html(figures=False)
    assert "estimated propensities" in str(found)


def test_weights_are_counted() -> None:
    weights = Weights()
    w = np.random.default_rng(0).gamma(0.3, 2, 10_000)
    for part in np.split(w, 4):
        weights.add(part, np.ones(len(part)), np.arange(len(part)))
    assert weights.effective == pytest.approx(w.sum() ** 2 / (w**2).sum())
    top = np.sort(w)[::-1]
    assert [large.weight for large in weights.largest] == top[:5].tolist()
    assert weights.share_of_top() == pytest.approx(top[:100].sum() / w.sum(), rel=0.05)


def test_the_result_shows_itself() -> None:
    found = run(["uniform", TARGET])
    assert found._repr_html_().startswith('<div class="polyarm-evaluation">')
    assert found["uniform", "snips"] is found["snips"]
    with pytest.raises(KeyError):
        found["nobody", "snips"]
    assert "Verdict: " in found.lines()[-1]
