"""The rules of the front door."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from polyarm import Bandit, Quantile
from polyarm.bandit.lottery import draw_arm
from polyarm.errors import Conflict, InvalidArgument, NumericalFailure, UnknownArm, UnknownDecision, UnknownName
from polyarm.policies.presets import PRESETS
from tests.bandit.shapes import ARMS, COLUMNS, played, visitor
from tests.contracts.states import bits

CONTEXT = {"hour": 20, "age": None, "device": "desktop", "member": False, "price": 99.5}
KINDS = ("beta", "logistic", "poisson", "ordinal", "hurdle")  # policies for one kind of reward
OPTIONS: dict[str, dict[str, Any]] = {"oracle-mixture": {"n_components": 2}}


def linear(context: Any = None, **settings: Any) -> Bandit:
    return Bandit(ARMS, context, policy="linear", seed=7, **settings)


@pytest.mark.parametrize("policy", PRESETS)
@pytest.mark.parametrize("context", [None, COLUMNS], ids=["alone", "columns"])
def test_every_policy_can_be_put_to_work(policy: str, context: Any) -> None:
    bandit = played(
        Bandit(ARMS, context, policy=policy, seed=3, options=OPTIONS.get(policy)), 12, whole=policy.startswith(KINDS)
    )
    decision = bandit.choose(CONTEXT if context else None, eligible=["short", "video"])
    assert decision.arm != "long"
    assert decision.probabilities["long"] == 0.0
    assert sum(decision.probabilities.values()) == 1.0
    assert bandit.recompute(decision) == decision == bandit.decision(decision.id)
    again = Bandit.from_bytes(bandit.to_bytes())
    assert again.to_bytes() == bandit.to_bytes()
    assert again.recompute("d5") == bandit.decision("d5")


def test_a_decision_says_what_was_decided() -> None:
    bandit = played(linear(COLUMNS), 10)
    decision = bandit.choose(CONTEXT, id="mine")
    assert decision.id == "mine"
    assert decision.propensity == decision.probabilities[decision.arm]
    assert decision.n_learnt == bandit.n_learnt == 7
    assert decision.context == CONTEXT
    assert decision.means is not None
    assert tuple(decision.means) == tuple(decision.probabilities) == ARMS
    assert draw_arm(7, "mine", list(decision.probabilities.values())) == ARMS.index(decision.arm)
    with pytest.raises(Conflict, match="id must be new, got 'mine' of an earlier decision"):
        bandit.choose(CONTEXT, id="mine")


def test_the_same_seed_and_ids_decide_the_same() -> None:
    first, second = played(linear(COLUMNS), 30), played(linear(COLUMNS), 30)
    assert [first.decision(f"d{i}") for i in range(30)] == [second.decision(f"d{i}") for i in range(30)]
    other = played(Bandit(ARMS, COLUMNS, policy="linear", seed=8), 30)
    assert [other.decision(f"d{i}").arm for i in range(30)] != [first.decision(f"d{i}").arm for i in range(30)]


def test_played_frequencies_are_the_logged_probabilities() -> None:
    bandit = Bandit(["a", "b", "c", "d"], 2, policy="linear", seed=5, min_propensity=5e-4)
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(300, 2))
    bandit.learn_logged(contexts, rng.choice(["a", "b", "c", "d"], 300).tolist(), contexts[:, 0] + rng.normal(size=300))
    found = bandit.choose_many(rng.normal(size=(20_000, 2)), ids=[f"d{i}" for i in range(20_000)])
    names = np.array(found.arms)
    assert found.probabilities.min() == pytest.approx(5e-4, abs=1e-15)
    residuals = [(names == arm) - found.probabilities[:, i] for i, arm in enumerate("abcd")]
    variance = (found.probabilities * (1 - found.probabilities)).sum(axis=0)
    z = np.array([r.sum() for r in residuals]) / np.sqrt(variance)
    assert stats.norm.sf(np.abs(z)).min() > 5e-4
    assert all(bandit.recompute(found.ids[i]) == found[i] for i in (0, 19_999))


def test_a_least_propensity_is_kept() -> None:
    bandit = linear(min_propensity=0.1)
    for i in range(60):
        bandit.learn(bandit.choose(id=str(i)), float(i))
    decision = bandit.choose()
    assert min(decision.probabilities.values()) >= 0.1
    two = bandit.choose(eligible=["short", "long"])
    assert min(two.probabilities["short"], two.probabilities["long"]) >= 0.1
    assert two.probabilities["video"] == 0
    with pytest.raises(InvalidArgument, match=r"min_propensity must be at most 1 / 3 for 3 arms, got 0\.4"):
        linear(min_propensity=0.4)
    full = linear(min_propensity=1 / 3)
    with pytest.raises(InvalidArgument, match="min_propensity must be at most 1 / 4 for 4 arms"):
        full.add_arm("audio")
    assert full.choose().probabilities == pytest.approx(dict.fromkeys(ARMS, 1 / 3))


def test_rewards_come_late_in_any_order_and_once() -> None:
    bandit = linear()
    first, second, third = (bandit.choose() for _ in range(3))
    assert list(bandit.pending) == [first.id, second.id, third.id]
    assert bandit.learn(third.id, 1.0) is True
    assert bandit.learn(first, 2.0) is True
    assert bandit.learn(first, 2.0) is False
    assert bandit.n_learnt == 2
    with pytest.raises(Conflict, match=r"reward of decision '.*' must be given once, got 3.0 after 2.0"):
        bandit.learn(first, 3.0)
    with pytest.raises(UnknownDecision, match="id must be that of a decision of this bandit, got 'nobody'"):
        bandit.learn("nobody", 1.0)
    assert list(bandit.pending) == [second.id]
    assert bandit.drop(second) is True
    assert bandit.drop(second) is False
    assert not bandit.pending
    with pytest.raises(UnknownDecision, match="must be open, got one that was dropped"):
        bandit.learn(second, 1.0)
    with pytest.raises(Conflict, match="must be open, got one whose reward was learnt"):
        bandit.drop(first)
    with pytest.raises(UnknownDecision):
        bandit.drop("nobody")
    assert (bandit.reward(first), bandit.reward(second)) == (2.0, None)


def test_many_rewards_are_learnt_in_order_or_not_at_all() -> None:
    bandit, one_by_one = linear(COLUMNS), linear(COLUMNS)
    rng = np.random.default_rng(1)
    contexts = [visitor(rng) for _ in range(20)]
    ids = [f"v{i}" for i in range(20)]
    found = bandit.choose_many(contexts, ids=ids)
    assert found.arms == [d.arm for d in found]
    assert found[3:5] == [bandit.decision("v3"), bandit.decision("v4")]
    before = bandit.to_bytes()
    for rewards, error in (([1.0] * 19, InvalidArgument), ([1.0] * 19 + [np.nan], InvalidArgument)):
        with pytest.raises(error, match="rewards"):
            bandit.learn_many(ids, rewards)
    with pytest.raises(UnknownDecision):
        bandit.learn_many([*ids, "nobody"], [1.0] * 21)
    with pytest.raises(Conflict):
        bandit.learn_many([*ids, "v0"], [*range(20), 7.0])
    assert bandit.to_bytes() == before
    assert bandit.learn_many([*ids, "v0"], [*range(20), 0.0]) == [True] * 20 + [False]
    one_by_one.choose_many(contexts, ids=ids)
    assert all(one_by_one.learn(name, float(y)) for y, name in enumerate(ids))
    assert bits(one_by_one._learner.state) == bits(bandit._learner.state)


def test_a_batch_sees_one_state_and_may_be_empty() -> None:
    bandit = linear()
    assert {d.n_learnt for d in bandit.choose_many(5)} == {0}
    assert len(bandit.choose_many(0)) == 0
    assert bandit.learn_many([], []) == []
    with pytest.raises(InvalidArgument, match="ids must be one for each of 2 contexts"):
        bandit.choose_many(2, ids=["a"])
    with pytest.raises(InvalidArgument, match="ids must be all different"):
        bandit.choose_many(2, ids=["a", "a"])
    with pytest.raises(InvalidArgument, match="contexts must be a number of decisions"):
        bandit.choose_many(1.5)


def test_yesterdays_table_is_a_start() -> None:
    bandit = linear(COLUMNS)
    rng = np.random.default_rng(2)
    contexts = [visitor(rng) for _ in range(50)]
    arms = [ARMS[i % 3] for i in range(50)]
    rewards = [float(i % 3) for i in range(50)]
    assert bandit.learn_logged(contexts, arms, rewards) == 50
    assert bandit.n_learnt == 50
    assert bandit.n_decisions == 0
    means = bandit.choose(contexts[0]).means
    assert means is not None
    assert means["short"] < means["long"] < means["video"]
    before = bandit.to_bytes()
    with pytest.raises(UnknownArm, match="arm must be one of short, long, video, got 'radio'"):
        bandit.learn_logged(contexts[:1], ["radio"], [1.0])
    with pytest.raises(InvalidArgument, match="rewards must be one for each of 1 contexts, got 2"):
        bandit.learn_logged(contexts[:1], ["short"], [1.0, 2.0])
    assert bandit.to_bytes() == before


def test_arms_come_and_go() -> None:
    bandit = played(Bandit(ARMS, COLUMNS, seed=7), 20)
    before = bandit.decision("d19")
    bandit.add_arm("audio")
    assert list(bandit.arms) == [*ARMS, "audio"]
    assert "audio" in bandit.choose(CONTEXT).probabilities
    bandit.retire_arm("long")
    assert list(bandit.arms) == ["short", "video", "audio"]
    assert list(bandit.retired) == ["long"]
    assert bandit.choose(CONTEXT).probabilities["long"] == 0
    assert bandit.recompute("d19") == before == bandit.decision("d19")
    with pytest.raises(UnknownArm, match="eligible must be arms that are played, got the retired 'long'"):
        bandit.choose(CONTEXT, eligible=["long"])
    with pytest.raises(InvalidArgument, match="arm must be a new name, got 'long'; restore_arm brings"):
        bandit.add_arm("long")
    bandit.restore_arm("long")
    assert not bandit.retired
    for name in ("short", "video", "audio"):
        bandit.retire_arm(name)
    with pytest.raises(InvalidArgument, match="arm must be not the last one that is played, got 'long'"):
        bandit.retire_arm("long")
    assert bandit.choose(CONTEXT).propensity == 1.0
    assert Bandit.from_bytes(bandit.to_bytes()).to_bytes() == bandit.to_bytes()


def test_rewards_of_a_retired_arm_are_still_learnt() -> None:
    bandit = linear()
    decision = bandit.choose(eligible=["long"])
    bandit.retire_arm("long")
    assert bandit.learn(decision, 3.0)


def test_what_is_open_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    bandit = linear(max_pending=2)
    first, second, third = (bandit.choose(id=name) for name in "abc")
    assert list(bandit.pending) == ["b", "c"]
    assert "dropped 1 open decisions beyond max_pending=2: ['a']" in caplog.text
    with pytest.raises(UnknownDecision, match="dropped"):
        bandit.learn(first, 1.0)
    assert bandit.learn(second, 1.0)
    assert bandit.learn(third, 1.0)


def test_a_failed_update_leaves_the_last_good_state(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = played(linear(COLUMNS), 100)
    before, policy = bandit.to_bytes(), type(bandit._learner.policy)
    update = policy.update

    def spoil(self: Any, state: Any, x: Any, arm: int, reward: float, rng: Any) -> Any:
        after = update(self, state, x, arm, reward, rng)
        if reward == 13.0:
            after.roots[:] = np.nan
            raise NumericalFailure("state must be finite, got nan")
        return after

    monkeypatch.setattr(policy, "update", spoil)
    with pytest.raises(NumericalFailure):
        bandit.learn(bandit.pending[0], 13.0)
    with pytest.raises(NumericalFailure):
        bandit.learn_many(bandit.pending, [1.0, 2.0, 13.0])
    assert bandit.to_bytes() == before
    assert bandit.learn(bandit.pending[0], 1.0)


def test_a_policy_that_gives_no_distribution_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = linear()
    before = bandit.to_bytes()
    monkeypatch.setattr(type(bandit._learner.policy), "probabilities", lambda *_: np.array([np.nan, 0.5, 0.5]))
    with pytest.raises(NumericalFailure, match="probabilities must be a distribution"):
        bandit.choose()
    assert bandit.to_bytes() == before


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"arms": []}, InvalidArgument, "arms must be different texts"),
        ({"arms": "ab"}, InvalidArgument, "arms must be different texts"),
        ({"arms": ["a", "a"]}, InvalidArgument, "arms must be different texts"),
        ({"arms": ["a", 2]}, InvalidArgument, "arms must be different texts"),
        ({"policy": "best"}, UnknownName, "policy must be one of nonparametric"),
        ({"policy": None}, InvalidArgument, "policy must be the name of a policy"),
        ({"options": {"nonsense": 1}}, InvalidArgument, "options of policy 'nonparametric' must be its settings"),
        ({"options": {"memory": np.ones(2)}}, InvalidArgument, r"options\['memory'\] must be a plain value"),
        ({"min_propensity": -1}, InvalidArgument, "min_propensity must be a number from 0 to 1"),
        ({"seed": -1}, InvalidArgument, "seed must be an integer of at least 0"),
        ({"seed": 2**64}, InvalidArgument, "seed must be below 2"),
        ({"max_pending": 0}, InvalidArgument, "max_pending must be an integer of at least 1"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Bandit(**{"arms": ["a", "b"], **settings})


@pytest.mark.parametrize("reward", [np.nan, np.inf, "high", None, 1e300])
def test_bad_rewards_change_nothing(reward: Any) -> None:
    bandit = linear()
    decision = bandit.choose()
    before = bandit.to_bytes()
    with pytest.raises(InvalidArgument, match="reward must be"):
        bandit.learn(decision, reward)
    assert bandit.to_bytes() == before


def test_units_do_not_matter_to_the_default() -> None:
    """Another zero and another unit of contexts and rewards: the same decisions, to the last one."""
    rng = np.random.default_rng(4)
    degrees = np.round(8 * rng.normal(15, 8, 120)) / 8  # eighths and powers of two: no rounding tells them apart
    noise = rng.normal(size=120)
    arms = []
    for shift, unit, pay in ((0.0, 1.0, 1.0), (256.0, 1.0, 1.0), (32.0, 2.0, 128.0)):
        bandit = Bandit(["ice", "soup"], {"temperature": float}, seed=1)
        for i, degree in enumerate(degrees):
            decision = bandit.choose({"temperature": unit * degree + shift}, id=str(i))
            bandit.learn(decision, pay * ((degree - 15) * (1 if decision.arm == "ice" else -1) + noise[i]))
        arms.append([bandit.decision(str(i)).arm for i in range(120)])
    assert arms[0] == arms[1]
    assert arms[0] == arms[2]


@pytest.mark.parametrize("objective", [Quantile(0.123456789), "shortfall:0.1"], ids=str)
def test_arms_can_be_judged_by_more_than_their_mean(objective: Any) -> None:
    bandit = Bandit(["safe", "wild"], policy="linear", objective=objective, seed=1)
    rng = np.random.default_rng(0)
    rewards = np.where(np.arange(80) % 2, 1.2 + 3 * rng.normal(size=80), 1.0 + 0.1 * rng.normal(size=80))
    bandit.learn_logged(80, ["safe", "wild"] * 40, rewards)
    found = bandit.predict()
    assert found["safe"].probability_best > 0.95
    assert found["wild"].worth < found["safe"].worth
    decision = bandit.choose()
    again = Bandit.from_bytes(bandit.to_bytes())
    assert again.settings == bandit.settings
    assert again.recompute(decision.id) == decision
    if isinstance(objective, Quantile):
        assert again.settings.objective == "quantile:0.123456789"


def test_an_objective_that_a_policy_cannot_have_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="objective must be the mean"):
        Bandit(["a", "b"], policy="ucb-v", objective="quantile:0.1")
    with pytest.raises(UnknownName, match="objective must be one of mean"):
        Bandit(["a", "b"], objective="luck")
