"""Every kind of target, against values that are known."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from polyarm import Bandit, evaluate
from polyarm.errors import InvalidArgument
from tests.evaluation.worlds import ARMS, TARGET, as_function, make_world

WORLD = make_world(1500, 11)


def ips(target: Any, **more: Any) -> float:
    return evaluate(WORLD.columns(**more), target, "ips", "normal", context=["x", "z"])["ips"].value


def expected(probabilities: Any) -> float:
    rows = np.arange(1500)
    p = np.broadcast_to(probabilities, (1500, 3))[rows, WORLD.arms]
    return float((WORLD.rewards * p / WORLD.logging[rows, WORLD.arms]).mean())


def one_context(context: dict[str, Any]) -> list[float]:
    one = {name: np.array([value]) for name, value in context.items()}
    return [float(p) for p in as_function(one)[0]]


def test_targets_that_know_their_probabilities() -> None:
    chosen = WORLD.target.argmax(axis=1)
    assert ips("uniform") == pytest.approx(expected(1 / 3))
    assert ips("arm:b") == ips("b") == pytest.approx(expected([0, 1, 0]))
    assert ips(TARGET) == pytest.approx(expected(WORLD.target))
    assert ips(one_context) == pytest.approx(expected(WORLD.target))
    by_arm = lambda context: dict(zip(ARMS, one_context(context), strict=True))  # noqa: E731
    assert ips(by_arm) == pytest.approx(expected(WORLD.target))
    assert ips("column:pi", pi=WORLD.target.tolist()) == pytest.approx(expected(WORLD.target))
    played = WORLD.target[np.arange(1500), WORLD.arms]
    assert ips("column:pi", pi=played) == pytest.approx(expected(WORLD.target))
    assert ips("column:choice", choice=np.array(ARMS)[chosen]) == pytest.approx(expected(np.eye(3)[chosen]))


def test_a_column_of_the_played_arms_probability_alone_leaves_the_model_out() -> None:
    played = WORLD.target[np.arange(1500), WORLD.arms]
    found = evaluate(WORLD.columns(pi=played), "column:pi", ["snips", "dr"], "normal", model="ridge")
    assert {e.estimator for e in found.estimates} == {"reward", "snips"}
    assert "column:pi: dr left out; they need all the target's probabilities, not the played arm's." in found.notes


@pytest.mark.parametrize(
    ("target", "more", "message"),
    [
        (lambda context: [0.5, 0.5], {}, "must be probabilities of shape"),
        (lambda context: [0.5, 0.6, 0.1], {}, "must be probabilities that sum to 1"),
        (lambda context: {"a": 0.5, "d": 0.5}, {}, "must be probabilities of the arms a, b, c"),
        ("column:pi", {"pi": np.full(1500, 1.2)}, "must be probabilities from 0 to 1"),
        ("column:pi", {"pi": ["nobody"] * 1500}, "must be one of the arms"),
        ("column:pi", {"pi": [[0.5, 0.5]] * 1500}, "must be lists of 3 probabilities"),
        (3, {}, "target must be a name, a function or a bandit"),
        ([], {}, "target must be at least one target"),
    ],
)
def test_wrong_targets_are_refused(target: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        ips(target, **more)


def test_a_policy_is_trained_on_other_rows() -> None:
    found = evaluate(WORLD.columns(), ["linear", "uniform"], ["snips", "dr"], "normal", model="ridge")
    best = float(WORLD.means.max(axis=1).mean())
    assert abs(found["linear", "dr"].value - best) < 4 * found["linear", "dr"].se
    loss = next(d for d in found.differences if (d.target, d.versus, d.estimator) == ("uniform", "linear", "dr"))
    assert loss.high < 0
    noise = WORLD.columns(reward=np.random.default_rng(0).normal(size=1500))
    fooled = evaluate(noise, "linear", "dr", "normal", model="ridge")["dr"]
    assert fooled.low < 0 < fooled.high  # trained on the rows it is judged by, it would look good on noise


def test_replay_of_a_learner_earns_what_it_would_earn_itself() -> None:
    """Two arms without context: mean reward of the first steps of Gaussian Thompson sampling, against playing it."""
    from polyarm.policies import make_policy

    replays, doubly, steps = [], [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        arms = rng.integers(2, size=120)
        log = {
            "arm": np.array(["a", "b"])[arms],
            "reward": arms + rng.normal(size=120),
            "propensity": np.full(120, 0.5),
        }
        found = evaluate(log, "replay:gaussian", ["replay", "dr"], "normal", model="ridge", seed=seed)
        replays.append(found["replay"].value)
        doubly.append(found["dr"].value)
        steps.append(int(found.notes[0].split("from ")[1].split()[0]))
    assert 50 < np.mean(steps) < 70
    policy = make_policy("gaussian", 2, 1)
    earned = []
    for seed in range(300):
        rng = np.random.default_rng([1, seed])
        state, total = policy.init(), 0.0
        for _ in range(60):
            arm = policy.choose(state, np.ones(1), rng).arm
            reward = arm + rng.normal()
            state = policy.update(state, np.ones(1), arm, reward, rng)
            total += reward
        earned.append(total / 60)
    for values in (replays, doubly):
        se = np.sqrt(np.var(values, ddof=1) / 40 + np.var(earned, ddof=1) / 300)
        assert abs(np.mean(values) - np.mean(earned)) < 4 * se


def played_bandit(n: int, seed: int) -> Bandit:
    bandit = Bandit(arms=ARMS, context={"x": float, "z": float}, policy="linear", min_propensity=0.1, seed=seed)
    world = make_world(n, seed)
    for i in range(n):
        decision = bandit.choose({"x": world.contexts[i, 0], "z": world.contexts[i, 1]})
        bandit.learn(decision, float(world.means[i, ARMS.index(decision.arm)]))
    return bandit


def test_bandits_as_logs_and_as_targets(tmp_path: Path) -> None:
    bandit = played_bandit(200, 0)
    for _ in range(3):
        bandit.choose({"x": 0.0, "z": 0.0})
    before = bandit.to_bytes()
    bandit.save(tmp_path / "b.polyarm")
    pa.parquet.write_table(bandit.log(), tmp_path / "log.parquet")
    values = []
    for log in (bandit, bandit.log(), tmp_path / "b.polyarm", tmp_path / "log.parquet"):
        found = evaluate(log, {"u": "uniform", "now": bandit}, ["snips", "dr"], "normal", model="ridge")
        assert found.log.set_aside == {"reward is missing: the decision is still open": 3}
        assert found.log.context == ("x", "z")
        values.append([e.value for e in found.estimates])
    assert all(value == pytest.approx(values[0]) for value in values)
    saved = evaluate(bandit, str(tmp_path / "b.polyarm"), "snips", "normal")
    assert saved["snips"].value == pytest.approx(values[0][3], rel=0.1)
    assert bandit.to_bytes() == before
    assert found["now", "snips"].value > found["u", "snips"].value + 0.2


def test_a_bandit_with_an_arm_that_the_log_never_had_is_found_out() -> None:
    bandit = played_bandit(100, 1)
    log = bandit.log()
    bandit.add_arm("d")
    found = evaluate(log, bandit, "snips", "normal")
    assert found.log.arms == (*ARMS, "d")
    assert found.targets[0].outside > 0.05
    assert "this log cannot tell" in found.verdict


def test_a_bandit_needs_its_columns() -> None:
    bandit = Bandit(arms=ARMS, context={"hour": float}, seed=0)
    with pytest.raises(InvalidArgument, match="must be a bandit whose context columns the log has"):
        ips(bandit)
