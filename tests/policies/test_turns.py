"""Whose turn it is: initial pulls, neglected arms, rounds of duels and arms without rewards, each by its definition."""

from typing import Any

import numpy as np
import pytest

from polyarm.errors import InvalidArgument
from polyarm.inference import ConjugateEngine
from polyarm.inference.state_checks import DATA_LIMIT
from polyarm.kernels import information
from polyarm.kernels._jit import rng_handle
from polyarm.models import LinearGaussian, NormalInverseGamma
from polyarm.models.objectives import Quantile
from polyarm.policies import (
    UCBV,
    InformationDirected,
    InitialPulls,
    OptimisticSampling,
    RandomBlockDuels,
    ThompsonSampling,
    Uniform,
    make_policy,
    probability_best,
)
from polyarm.policies.history import FIRST_CAPACITY, first_unplayed, no_history, rewards_of, with_reward
from polyarm.policies.information import spread_out
from polyarm.policies.subsampling import next_round
from polyarm.types import AnyPolicy, Array
from tests.contracts.states import fed, rewards

X = np.array([1.0, -0.5])
ENGINE = ConjugateEngine([LinearGaussian(NormalInverseGamma(2))] * 3)


def learnt(policy: AnyPolicy, n: int = 30) -> Any:
    return fed(policy, rewards(n, 2, 3, seed=0), np.random.default_rng(0))


def masked(*arms: int) -> Any:
    return np.isin(np.arange(3), arms)


@pytest.mark.parametrize(
    ("n", "eligible", "arm"),
    [
        *((n, None, n % 3) for n in range(6)),
        *((1, masked(0, 1), 1), (2, masked(0, 1), 0), (5, masked(1), 1), (4, masked(0, 2), 2), (3, masked(1, 2), 1)),
    ],
)
def test_initial_pulls_take_turns_among_arms_that_may_be_played(n: int, eligible: Any, arm: int) -> None:
    policy, rng = InitialPulls(Uniform(3, 2), n_arms=3, pulls=2), np.random.default_rng(0)
    state = policy.init()._replace(n_rewards=n)
    certain = np.eye(3)[arm].tolist()
    choice = policy.choose(state, X, rng, eligible)
    assert choice.arm == arm
    assert choice.probabilities is not None
    assert choice.probabilities.tolist() == certain
    assert policy.probabilities(state, X, rng, eligible).tolist() == certain
    assert policy.probabilities_many(state, np.stack([X, X]), rng, eligible).tolist() == [certain, certain]


def test_when_all_had_their_turn_the_inner_policy_plays() -> None:
    inner = ThompsonSampling(ENGINE, n_draws=50)
    policy = InitialPulls(inner, n_arms=3, pulls=2)
    state = learnt(policy, 6)
    assert state.n_rewards == 6
    both: list[Any] = [(policy, state), (inner, state.inner)]
    one, same = (p.choose(s, X, np.random.default_rng(1), masked(0, 2)) for p, s in both)
    assert (one.arm, one.scores.tolist()) == (same.arm, same.scores.tolist())
    shares = [p.probabilities(s, X, np.random.default_rng(1), masked(0, 2)) for p, s in both]
    np.testing.assert_array_equal(*shares)
    many = [p.probabilities_many(s, np.stack([X, -X]), np.random.default_rng(1), masked(0, 2)) for p, s in both]
    np.testing.assert_array_equal(*many)
    assert many[0].shape == (2, 3)
    assert policy.engine is inner.engine
    assert policy.engine_state(state) is state.inner
    assert policy.update(state, X, 0, 1.0, np.random.default_rng(1)).n_rewards == 7


@pytest.mark.parametrize(("n", "after"), [(0, 0), (5, 5), (6, 8), (7, 8), (8, 8), (9, 9)])
def test_an_arm_that_comes_after_the_initial_pulls_is_left_to_the_inner_policy(n: int, after: int) -> None:
    policy = InitialPulls(Uniform(3, 2), n_arms=3, pulls=2)
    wider, state = policy.with_arm(policy.init()._replace(n_rewards=n))
    assert (wider.n_arms, state.n_rewards) == (4, after)
    assert wider._is_over(state) == policy._is_over(policy.init()._replace(n_rewards=n))


@pytest.mark.parametrize(
    ("floor", "pulls", "eligible", "due"),
    [
        (5, (20, 2, 20), None, 1),  # min(5, 42 / 12) = 3.5
        (5, (20, 3, 25), None, 1),  # min(5, 4) = 4
        (5, (20, 4, 24), None, None),  # min(5, 4) = 4 pulls are enough
        (2, (20, 2, 20), None, None),  # the floor is reached
        (3, (20, 2, 20), None, 1),
        (0, (20, 0, 20), None, None),
        (5, (20, 2, 20), masked(0, 2), None),
        (9, (50, 2, 8), masked(0, 2), None),  # min(9, 5)
        (9, (50, 2, 4), masked(0, 2), 2),
    ],
)
def test_a_neglected_arm_is_pulled_at_once(floor: int, pulls: Any, eligible: Any, due: int | None) -> None:
    """An arm is due below min(floor, t / (4 n_arms)) pulls after t rewards."""
    policy = OptimisticSampling(ENGINE, floor=floor, n_draws=20)
    state = policy.init()._replace(pulls=np.array(pulls), inner=learnt(ThompsonSampling(ENGINE)))
    plain = OptimisticSampling(ENGINE, n_draws=20)
    usual = plain.choose(state, X, np.random.default_rng(0), eligible)
    assert policy.choose(state, X, np.random.default_rng(0), eligible).arm == (usual.arm if due is None else due)
    shares = policy.probabilities(state, X, np.random.default_rng(0), eligible)
    expected = plain.probabilities(state, X, np.random.default_rng(0), eligible) if due is None else np.eye(3)[due]
    np.testing.assert_array_equal(shares, expected)


@pytest.mark.parametrize("optimism", [True, False])
def test_an_optimistic_draw_is_the_expectation_and_a_part_of_the_surprise(optimism: bool) -> None:
    policy = OptimisticSampling(ENGINE, optimism=optimism, draw_scale=0.7, n_draws=40)
    state = learnt(policy)
    assert state.pulls.sum() == 30
    assert state.pulls.tolist() == state.inner.counts.tolist()
    expected = ENGINE.expected_means(state.inner, X)
    surprise = 0.7 * (ENGINE.draw_means(state.inner, X, 40, np.random.default_rng(2)) - expected)
    lifted = expected + (surprise.clip(min=0.0) if optimism else surprise)
    shares = policy.probabilities(state, X, np.random.default_rng(2))
    np.testing.assert_array_equal(shares, np.bincount(lifted.argmax(axis=1), minlength=3) / 40)
    first = 0.7 * (ENGINE.draw_means(state.inner, X, 1, np.random.default_rng(3))[0] - expected)
    scores = expected + (first.clip(min=0.0) if optimism else first)
    np.testing.assert_array_equal(policy.choose(state, X, np.random.default_rng(3)).scores, scores)
    wider, after = policy.with_arm(state)
    assert after.pulls.tolist() == [*state.pulls, 0]
    assert wider.engine.n_arms == 4
    assert policy.engine_state(state) is state.inner


def test_what_is_judged_is_what_is_played_and_expected() -> None:
    policy: Any = InformationDirected(ENGINE, n_draws=30, n_rounds=2)
    state, X2 = learnt(policy), np.array([[1.0, -0.5], [0.3, 0.8], [0.0, 0.1]])
    for mask in (None, masked(1, 2)):
        p, means = policy.judge(state, X, np.random.default_rng(1), mask)
        np.testing.assert_array_equal(p, policy.probabilities(state, X, np.random.default_rng(1), mask))
        np.testing.assert_array_equal(means, ENGINE.expected_means(state, X))
        many, expected = policy.judge_many(state, X2, np.random.default_rng(1), mask)
        np.testing.assert_array_equal(many, policy.probabilities_many(state, X2, np.random.default_rng(1), mask))
        np.testing.assert_allclose(expected, [ENGINE.expected_means(state, x) for x in X2], rtol=1e-12)
        assert many.shape == expected.shape == (3, 3)


def test_a_choice_in_one_call_is_that_of_the_outlook_bit_for_bit() -> None:
    policy: Any = make_policy("nonparametric", 3, 2, n_draws=30)
    state, rng = policy.init(), np.random.default_rng(0)
    for t in range(60):
        state = policy.update(state, rng.standard_normal(2), t % 3, float(rng.standard_normal()), rng)
    for engine, given in ((policy.engine, state), (policy.engine.rest, state.rest)):
        choice = InformationDirected(engine, 30).choose(given, X, np.random.default_rng(4))
        mix, scores = np.empty(3), np.empty(3)
        moments, noise = engine.outlook(given, X)
        arm = information.choose(moments, noise, 30, 2.0, mix, scores, rng_handle(np.random.default_rng(4)))
        assert choice.arm == arm
        np.testing.assert_array_equal(choice.scores, scores)
        assert choice.probabilities is not None
        np.testing.assert_array_equal(choice.probabilities, mix)


def test_eligible_arms_alone_are_judged() -> None:
    """Choices among some arms are those of a bandit that has no others."""
    policy = InformationDirected(ENGINE, n_draws=30)
    state, mask = learnt(policy), masked(0, 2)
    two = ConjugateEngine(ENGINE.arms[:2])
    alone = two.init()._replace(roots=np.ascontiguousarray(state.roots[mask]), counts=state.counts[mask])
    one = policy.choose(state, X, np.random.default_rng(4), mask)
    same = InformationDirected(two, n_draws=30).choose(alone, X, np.random.default_rng(4))
    assert one.arm == np.flatnonzero(mask)[same.arm]
    assert one.probabilities is not None
    assert same.probabilities is not None
    np.testing.assert_array_equal(one.scores, spread_out(same.scores, mask, -np.inf))
    np.testing.assert_array_equal(one.probabilities, spread_out(same.probabilities, mask, 0.0))
    assert spread_out(np.array([[1.0, 2.0]]), mask, 7.0).tolist() == [[1.0, 7.0, 2.0]]


@pytest.mark.parametrize("n_draws", [1, 10, 200])
def test_the_error_of_a_share_is_that_of_a_share_pulled_towards_one_half(n_draws: int) -> None:
    found = probability_best(ENGINE, learnt(ThompsonSampling(ENGINE)), X, n_draws, np.random.default_rng(0))
    p = (found.probability * n_draws + 1) / (n_draws + 2)
    np.testing.assert_allclose(found.standard_error, np.sqrt(p * (1 - p) / n_draws), rtol=1e-12)
    assert (found.standard_error > 0).all()


def test_a_history_keeps_every_row_in_its_order_while_it_grows() -> None:
    history, rng = no_history(2, 3), np.random.default_rng(0)
    assert history.rows.shape == (2, FIRST_CAPACITY, 4)
    kept: list[list[Array]] = [[], []]
    for t in range(5 * FIRST_CAPACITY):
        arm, row = int(t % 3 == 0), rng.standard_normal(4)
        kept[arm].append(row)
        history = with_reward(history, arm, *row)
        history.require_sound()
    for arm in range(2):
        np.testing.assert_array_equal(history.rows[arm, : len(kept[arm])], kept[arm])
        np.testing.assert_array_equal(rewards_of(history, arm), [row[-1] for row in kept[arm]])
    assert history.counts.tolist() == [len(rows) for rows in kept]
    assert history.rows.shape[1] == 4 * FIRST_CAPACITY
    full = no_history(1)
    for _ in range(FIRST_CAPACITY):
        full = with_reward(full, 0, 1.0)
    assert full.rows.shape == (1, FIRST_CAPACITY, 1)


@pytest.mark.parametrize(
    ("counts", "eligible", "arm"),
    [
        ([0, 0, 0], None, 0),
        ([1, 0, 0], None, 1),
        ([1, 2, 0], None, 2),
        ([1, 2, 1], None, None),
        ([0, 0, 0], masked(1, 2), 1),
        ([0, 1, 0], masked(1, 2), 2),
        ([0, 1, 1], masked(1, 2), None),
    ],
)
def test_the_first_arm_without_a_reward_comes_first(counts: list[int], eligible: Any, arm: int | None) -> None:
    choice = first_unplayed(np.array(counts), eligible)
    assert (None if choice is None else choice.arm) == arm
    if choice is not None and choice.probabilities is not None:
        assert choice.probabilities.tolist() == np.eye(3)[choice.arm].tolist()


def leader_by_hand(values: list[list[float]]) -> int:
    """The arm of the most rewards, or of the highest mean among these."""
    most = max(map(len, values))
    means = [float(np.mean(v)) if len(v) == most else -np.inf for v in values]
    return int(np.argmax(means))


@pytest.mark.parametrize("seed", range(20))
def test_a_round_is_one_of_those_that_some_blocks_give(seed: int) -> None:
    """Every arm due has a block of the leader's rewards that it beats, every other one that beats it."""
    rng = np.random.default_rng(seed)
    n_arms, enough = int(rng.integers(2, 5)), float(rng.choice([0.0, 1.5, 2.5]))
    values = [rng.standard_normal(rng.integers(1, 7)).tolist() for _ in range(n_arms)]
    history = no_history(n_arms)
    for arm, mine in enumerate(values):
        for y in mine:
            history = with_reward(history, arm, y)
    leader = leader_by_hand(values)
    seen = np.array([next_round(history, enough, np.random.default_rng(s)) for s in range(60)])
    for arm, mine in enumerate(values):
        n, beaten = len(mine), set()
        for start in range(len(values[leader]) - n + 1):
            beaten.add(n < enough or np.mean(mine) >= np.mean(values[leader][start : start + n]))
        if arm != leader:
            assert set(seen[:, arm].tolist()) <= {int(b) for b in beaten}
    others = np.delete(seen, leader, axis=1)
    np.testing.assert_array_equal(seen[:, leader], ~others.any(axis=1))


def test_rounds_are_counted_and_force_exploration_by_their_logarithm() -> None:
    """The n-th round asks for sqrt(log n) rewards of every arm: from the second round on for more than none."""
    forced, free = RandomBlockDuels(2, 1), RandomBlockDuels(2, 1, forced_exploration=False)
    for number, due in ((1, [1, 0]), (2, [1, 0]), (3, [0, 1]), (60, [0, 1])):  # log 3 > 1
        for policy, expected in ((forced, due), (free, [1, 0])):
            state: Any = policy.init()
            history = with_reward(with_reward(state.history, 0, 1.0), 1, -5.0)
            after = policy._with_reward(
                state._replace(history=history, round=number - 1, due=np.array([1, 0])),
                0,
                1.0,
                np.random.default_rng(0),
            )
            assert (after.round, after.due.tolist()) == (number, expected)
    state = forced.update(forced.init(), np.ones(1), 0, 1.0, np.random.default_rng(0))
    assert (state.round, state.due.tolist()) == (0, [0, 0])  # no round before every arm has a reward


def test_a_round_is_played_by_those_who_are_due() -> None:
    policy = RandomBlockDuels(3, 2)
    state = learnt(policy)._replace(due=np.array([1, 0, 1]))
    choice = policy.choose(state, X, np.random.default_rng(0))
    assert choice.probabilities is not None
    assert choice.probabilities.tolist() == [0.5, 0.0, 0.5]
    for eligible, shares in ((masked(0, 1), [1.0, 0.0, 0.0]), (masked(1), [0.0, 1.0, 0.0])):
        choice = policy.choose(state, X, np.random.default_rng(0), eligible)
        assert choice.probabilities is not None
        assert choice.probabilities.tolist() == shares
    neither = state._replace(due=np.array([1, 0, 0]))
    choice = policy.choose(neither, X, np.random.default_rng(0), masked(1, 2))
    assert choice.probabilities is not None
    assert choice.probabilities.tolist() == [0.0, 0.5, 0.5]


def broken(state: Any, **changes: Any) -> Any:
    return state._replace(**{name: change(getattr(state, name).copy()) for name, change in changes.items()})


def put(place: Any, value: Any) -> Any:
    def change(array: Array) -> Array:
        array[place] = value
        return array

    return change


def test_states_of_rewards_that_cannot_be_are_refused_by_name() -> None:
    history = learnt(make_policy("npts", 3, 2))
    n = int(history.counts[1])
    for change, told in (
        ({"counts": put(1, -1)}, r"state\.counts must be from 0 to 16"),
        ({"counts": put(1, history.rows.shape[1] + 1)}, r"state\.counts must be from 0 to 16"),
        ({"rows": put((1, n - 1, 0), np.nan)}, r"state\.rows\[1\] must be at most"),
        ({"rows": put((1, 0, 0), 1.1 * DATA_LIMIT)}, r"state\.rows\[1\] must be at most"),
    ):
        with pytest.raises(InvalidArgument, match=told):
            broken(history, **change).require_sound()
    broken(history, counts=put(1, 0), rows=put((1, 0, 0), np.nan)).require_sound()  # a row that is not in use
    broken(history, counts=put(slice(None), 0)).require_sound()
    rounds = learnt(RandomBlockDuels(3, 2))
    for wrong in (-1, 2):
        with pytest.raises(InvalidArgument, match=r"state\.due must be from 0 to 1"):
            broken(rounds, due=put(0, wrong)).require_sound()
    with pytest.raises(InvalidArgument, match=r"state\.round must be at least 0"):
        rounds._replace(round=-1).require_sound()
    with pytest.raises(InvalidArgument, match=r"state\.counts must be from 0"):
        rounds._replace(history=broken(history, counts=put(0, -1))).require_sound()
    rounds._replace(round=0).require_sound()


def test_moments_that_no_rewards_have_are_refused_by_name() -> None:
    state = learnt(UCBV(3, 2))
    for changes, told in (
        ({"counts": put(1, -1)}, r"state\.counts must be from 0"),
        ({"means": put(1, np.inf)}, r"state\.means must be finite"),
        ({"squares": put(1, np.nan)}, r"state\.squares must be finite"),
        ({"squares": put(1, -1e-9)}, r"state\.squares must be at least 0"),
    ):
        with pytest.raises(InvalidArgument, match=told):
            broken(state, **changes).require_sound()
    with pytest.raises(InvalidArgument, match=r"state\.low must be at most the highest reward"):
        state._replace(low=state.high + 1.0).require_sound()
    state._replace(low=state.high).require_sound()
    broken(state, squares=put(1, 0.0)).require_sound()
    fresh = UCBV(3, 2).init()
    fresh.require_sound()
    for low, high in ((0.0, -np.inf), (np.inf, 0.0), (0.0, 1.0)):
        with pytest.raises(InvalidArgument, match=r"state\.low must be"):
            fresh._replace(low=low, high=high).require_sound()


def test_running_moments_are_those_of_all_rewards() -> None:
    policy, rng = UCBV(2, 1), np.random.default_rng(0)
    state, values = policy.init(), rng.standard_normal((40, 2)) * 3 + 7
    for row in values:
        for arm, y in enumerate(row):
            state = policy.update(state, np.ones(1), arm, float(y), rng)
    np.testing.assert_allclose(state.means, values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(state.squares, ((values - values.mean(axis=0)) ** 2).sum(axis=0), rtol=1e-12)
    assert (state.low, state.high) == (values.min(), values.max())
    assert state.counts.tolist() == [40, 40]


def test_pseudo_rewards_have_the_residual_sd_of_all_ridge_regressions() -> None:
    """Residual squares of a ridge regression with its penalty: y'y - b'A b, over all rewards of all arms."""
    policy: Any = make_policy("linear-phe", 3, 2, ridge=0.7)
    data, total = rewards(30, 2, 3, seed=0), 0.0
    state = fed(policy, data, np.random.default_rng(0))
    for arm in range(3):
        rows = [(x, y) for x, a, y in data if a == arm]
        design, values = np.array([x for x, _ in rows]), np.array([y for _, y in rows])
        fit = np.linalg.solve(0.7 * np.eye(2) + design.T @ design, design.T @ values)
        total += float(values @ values - fit @ design.T @ values)
    assert policy.pseudo_reward(state) == pytest.approx(np.sqrt(total / 30), rel=1e-10)
    assert make_policy("linear-phe", 3, 2, noise_sd=0.4).pseudo_reward(state) == 0.4  # type: ignore[attr-defined]


def test_an_intercept_of_linear_bounds_is_a_column_of_ones() -> None:
    policy: Any = make_policy("linear-ucb", 3, 2, intercept=True, ridge=0.6, bound="oful")
    plain: Any = make_policy("linear-ucb", 3, 3, ridge=0.6, bound="oful")
    data = rewards(30, 2, 3, seed=0)
    state = fed(policy, data, np.random.default_rng(0))
    same = fed(plain, [(np.append(x, 1.0), arm, y) for x, arm, y in data], np.random.default_rng(0))
    np.testing.assert_array_equal(state.roots, same.roots)
    np.testing.assert_array_equal(policy.widths(state), plain.widths(same))
    scores = [policy.choose(state, X, np.random.default_rng(0)).scores]
    scores += [plain.choose(same, np.append(X, 1.0), np.random.default_rng(0)).scores]
    np.testing.assert_array_equal(*scores)
    fresh = policy.init()
    np.testing.assert_allclose(fresh.roots[2], np.diag([0.6**0.5] * 3 + [0.0]), rtol=1e-12)


@pytest.mark.parametrize("rule", [InformationDirected, ThompsonSampling])
def test_an_objective_is_played_for_among_eligible_arms_alone(rule: Any) -> None:
    policy = rule(ENGINE, n_draws=40, objective=Quantile(0.2))
    state, mask = learnt(policy), masked(0, 2)
    for seed in range(20):
        choice = policy.choose(state, X, np.random.default_rng(seed), mask)
        assert choice.arm in (0, 2)
        assert choice.scores[1] == -np.inf
        assert choice.scores[choice.arm] == choice.scores.max()
        p = policy.probabilities(state, X, np.random.default_rng(seed), mask)
        assert p[1] == 0.0
        assert p.sum() == pytest.approx(1.0)
        many = policy.probabilities_many(state, np.stack([X, X]), np.random.default_rng(seed), mask)
        np.testing.assert_array_equal(many[0], p)
    rows = ENGINE.draw_objectives(state, X, Quantile(0.2), 40, np.random.default_rng(7))
    if rule is ThompsonSampling:
        share = policy.probabilities(state, X, np.random.default_rng(7))
        np.testing.assert_array_equal(share, np.bincount(rows.argmax(axis=1), minlength=3) / 40)
        first = ENGINE.draw_objectives(state, X, Quantile(0.2), 1, np.random.default_rng(7))[0]
        np.testing.assert_array_equal(policy.choose(state, X, np.random.default_rng(7)).scores, first)
    else:
        rounds = InformationDirected(ENGINE, n_draws=40, n_rounds=2, objective=Quantile(0.2))
        rng = np.random.default_rng(7)
        wanted = np.mean([policy.probabilities(state, X, rng) for _ in range(2)], axis=0)
        np.testing.assert_array_equal(rounds.probabilities(state, X, np.random.default_rng(7)), wanted)
