"""What every policy promises about the distribution that its arm is drawn from."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import polyarm as pa
from polyarm.choosing import win_shares
from polyarm.errors import InvalidArgument
from polyarm.policies import engine_of
from polyarm.types import AnyPolicy, Array, Mask
from tests.contracts.policies import POLICIES
from tests.contracts.states import bits, fed, rewards

X = np.array([1.0, -0.5])
MASKS: dict[str, Mask | None] = {"all": None, "two": np.array([True, False, True])}
SLOW = {"linear-phe", "npts", "bayes-ucb"}  # their distributions are estimated by choosing again and again
MIXED = {"nonparametric", "nonparametric that forgets"}  # each call gives the mix of one round


@pytest.fixture(params=POLICIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def policy(name: str) -> AnyPolicy:
    return POLICIES[name](3, 2)


def learnt(policy: AnyPolicy, n: int = 40) -> Any:
    return fed(policy, rewards(n, 2, 3, 0), np.random.default_rng(0))


def choice_p_value(policy: AnyPolicy, state: Any, eligible: Mask | None, shares: Array, n: int) -> float:
    """How well n choices fit the mean of distributions (rows, n_arms), each an average over at least one choice."""
    rng = np.random.default_rng(3)
    played = np.bincount([policy.choose(state, X, rng, eligible).arm for _ in range(n)], minlength=3)
    expected = shares.mean(axis=0)
    table = np.array([played, np.round(n * expected)])
    table = table[:, table.sum(axis=0) > 0]
    return 1.0 if table.shape[1] == 1 else float(stats.chi2_contingency(table).pvalue)


@pytest.mark.parametrize("mask", MASKS)
def test_choices_follow_the_distribution(name: str, policy: AnyPolicy, mask: str) -> None:
    state, eligible = learnt(policy), MASKS[mask]
    n = 500 if name in SLOW else 4000
    calls = np.tile(X, (n if name in MIXED else max(1, n // 1000), 1))
    shares = policy.probabilities_many(state, calls, np.random.default_rng(2), eligible)
    assert shares.shape == (len(calls), 3)
    assert choice_p_value(policy, state, eligible, shares, n) > 1e-4


def test_a_distribution_that_ignores_eligibility_is_found_out() -> None:
    policy = POLICIES["nonparametric"](3, 2)
    state, calls = learnt(policy, 5), np.tile(X, (20_000, 1))
    shares = policy.probabilities_many(state, calls, np.random.default_rng(2)).mean(axis=0, keepdims=True)
    wrong = shares * MASKS["two"] / (shares * MASKS["two"]).sum()
    right = policy.probabilities_many(state, calls, np.random.default_rng(2), MASKS["two"])
    assert choice_p_value(policy, state, MASKS["two"], right, 20_000) > 1e-4
    assert choice_p_value(policy, state, MASKS["two"], wrong, 20_000) < 1e-4


def test_probabilities_are_a_distribution_over_eligible_arms(policy: AnyPolicy) -> None:
    for state in (policy.init(), learnt(policy, 5), learnt(policy)):
        for mask in ([True, True, True], [False, True, True], [False, False, True]):
            eligible, rng = np.array(mask), np.random.default_rng(1)
            before = bits(state)
            p = policy.probabilities(state, X, rng, eligible)
            choice = policy.choose(state, X, rng, eligible)
            assert bits(state) == before
            assert p.shape == (3,)
            assert p.min() >= 0
            assert p.sum() == pytest.approx(1, abs=1e-12)
            assert not p[~eligible].any()
            assert eligible[choice.arm]
            assert (choice.scores[~eligible] == -np.inf).all()
            if choice.probabilities is not None:
                assert choice.probabilities[choice.arm] > 0
                assert choice.probabilities.sum() == pytest.approx(1, abs=1e-12)


def test_no_mask_and_a_mask_of_all_are_one(policy: AnyPolicy) -> None:
    state, everyone = learnt(policy), np.ones(3, np.bool_)
    choices = [policy.choose(state, X, np.random.default_rng(4), mask) for mask in (None, everyone)]
    assert choices[0].arm == choices[1].arm
    np.testing.assert_array_equal(choices[0].scores, choices[1].scores)
    shares = [policy.probabilities(state, X, np.random.default_rng(4), mask) for mask in (None, everyone)]
    np.testing.assert_array_equal(shares[0], shares[1])


@pytest.mark.parametrize("wrong", [[False] * 3, [True] * 2, [1, 0, 1], "all"])
def test_bad_masks(policy: AnyPolicy, wrong: Any) -> None:
    state, rng = learnt(policy), np.random.default_rng(0)
    for ask in (policy.choose, policy.probabilities):
        with pytest.raises(InvalidArgument, match="eligible must be 3 truth values, one or more of them true, got"):
            ask(state, X, rng, wrong)


def test_many_contexts_are_many_single_ones() -> None:
    policy = POLICIES["nonparametric"](3, 2)
    state, contexts = learnt(policy), np.random.default_rng(1).standard_normal((20, 2))
    a, b = np.random.default_rng(2), np.random.default_rng(2)
    many = policy.probabilities_many(state, contexts, a)
    np.testing.assert_array_equal(many, [policy.probabilities(state, x, b) for x in contexts])
    for bad in (np.ones(2), np.ones((4, 3)), np.full((2, 2), np.nan), np.full((2, 2), 1e9)):
        with pytest.raises(InvalidArgument, match=r"contexts.* must be"):
            policy.probabilities_many(state, bad, a)


def test_linear_thompson_sampling_in_many_contexts_is_right_in_each() -> None:
    policy = POLICIES["linear"](3, 2)
    state, contexts = learnt(policy), np.random.default_rng(1).standard_normal((20, 2))
    for mask in (None, np.array([True, False, True])):
        rng = np.random.default_rng(2)
        many = np.mean([policy.probabilities_many(state, contexts, rng, mask) for _ in range(50)], axis=0)
        single = [policy.engine.draw_means(state, x, 50_000, rng) for x in contexts]  # type: ignore[attr-defined]
        np.testing.assert_allclose(many, [win_shares(draws, mask) for draws in single], atol=0.015)  # five se


def test_the_best_arm_is_asked_of_a_policy_or_of_its_engine(policy: AnyPolicy) -> None:
    state = learnt(policy)
    if not hasattr(policy, "engine"):
        with pytest.raises(InvalidArgument, match="policy must be one with an engine, got"):
            pa.probability_best(policy, state, X, 10, np.random.default_rng(0))
        with pytest.raises(InvalidArgument, match="policy must be one with an engine, got"):
            policy.engine_state(state)
        return
    engine, inner = engine_of(policy, state)
    assert type(inner) is type(engine.init())
    one = pa.probability_best(policy, state, X, 200, np.random.default_rng(1))
    same = pa.probability_best(engine, inner, X, 200, np.random.default_rng(1))
    np.testing.assert_array_equal(one.probability, same.probability)
