"""The rivals' scores against their papers' formulas, written down slowly."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import ks_2samp

from polyarm.errors import InvalidArgument
from polyarm.inference.door import described
from polyarm.policies import (
    NPTS,
    UCBV,
    LinearPHE,
    LinearUCB,
    MedianOfMeansUCB,
    RandomBlockDuels,
    make_policy,
)
from polyarm.policies.history import no_history, with_reward
from polyarm.policies.subsampling import next_round
from polyarm.types import AnyPolicy, Array

X = np.array([0.4, -1.2, 0.7])
ONE = np.ones(1)


def rounds(n: int, n_arms: int = 2, dim: int = 3) -> list[tuple[Array, int, float]]:
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(dim), i % n_arms, float(rng.normal(i % n_arms))) for i in range(n)]


def fed(policy: AnyPolicy, data: Sequence[tuple[Array, int, float]]) -> object:
    state, rng = policy.init(), np.random.default_rng(1)
    for x, arm, y in data:
        state = policy.update(state, x, arm, y, rng)
    return state


def dense(arm: int, ridge: float) -> tuple[float, float, float]:
    """Prediction x'U, its spread sqrt(x'Vx), and det(V^-1), by plain matrices."""
    rows = [(x, y) for x, a, y in rounds(40) if a == arm]
    design, rewards = np.array([x for x, _ in rows]), np.array([y for _, y in rows])
    information = ridge * np.eye(3) + design.T @ design
    covariance = np.linalg.inv(information)
    return float(X @ covariance @ design.T @ rewards), math.sqrt(X @ covariance @ X), float(np.linalg.det(information))


def test_linear_ucb_bound_is_the_dense_one() -> None:
    policy = LinearUCB(2, 3, width=1.7, ridge=0.5)
    scores = policy.choose(fed(policy, rounds(40)), X, np.random.default_rng(0)).scores  # type: ignore[arg-type]
    expected = [mean + 1.7 * spread for mean, spread, _ in (dense(arm, 0.5) for arm in range(2))]
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


def test_oful_radius_is_that_of_the_paper() -> None:
    policy = LinearUCB(2, 3, ridge=0.5, bound="oful", noise_sd=0.3, norm_bound=2.0, failure=0.1)
    scores = policy.choose(fed(policy, rounds(40)), X, np.random.default_rng(0)).scores  # type: ignore[arg-type]
    for arm in range(2):
        mean, spread, determinant = dense(arm, 0.5)
        grown = math.sqrt(determinant) / 0.5**1.5
        radius = 0.3 * math.sqrt(2 * math.log(2 * grown / 0.1)) + math.sqrt(0.5) * 2.0
        assert scores[arm] == pytest.approx(mean + radius * spread, rel=1e-12)


def test_perturbed_history_has_the_spread_of_its_pseudo_rewards() -> None:
    """The index is x'V sum x (y + Z) / (a + 1): its mean is the ridge prediction over a + 1, its variance is known."""
    policy = LinearPHE(2, 3, n_pseudo=2, noise_sd=0.8)
    state, rng = fed(policy, rounds(40)), np.random.default_rng(2)
    draws = np.array([policy.choose(state, X, rng).scores for _ in range(20_000)])  # type: ignore[arg-type]
    for arm in range(2):
        mean, _, _ = dense(arm, 1.0)
        design = np.array([x for x, a, _ in rounds(40) if a == arm])
        pull = design @ np.linalg.solve(np.eye(3) + design.T @ design, X)
        spread = 0.8 * math.sqrt(2 * pull @ pull) / 3
        assert draws[:, arm].mean() == pytest.approx(mean / 3, abs=4.5 * spread / math.sqrt(20_000))
        assert draws[:, arm].std() == pytest.approx(spread, rel=0.03)


def test_pseudo_rewards_follow_the_unit_of_the_rewards() -> None:
    policy = LinearPHE(2, 3)
    one, hundred = (fed(policy, [(x, a, k * y) for x, a, y in rounds(40)]) for k in (1.0, 100.0))
    assert policy.pseudo_reward(hundred) == pytest.approx(100 * policy.pseudo_reward(one))  # type: ignore[arg-type]
    arms = [[policy.choose(s, X, np.random.default_rng(i)).arm for i in range(50)] for s in (one, hundred)]  # type: ignore[arg-type]
    assert arms[0] == arms[1]


def test_a_renamed_policy_reads_the_files_of_before() -> None:
    assert described(NPTS(2, 1))["kind"] == "NonparametricTS"


@pytest.mark.parametrize(("bound", "anchor"), [(None, 2.5), (9.0, 9.0)])
def test_npts_index_is_a_dirichlet_mean(bound: float | None, anchor: float) -> None:
    policy = NPTS(2, 1, upper_bound=bound)
    values = [0.3, -1.0, 0.9, 2.0]
    state = fed(policy, [*((ONE, 0, y) for y in values), (ONE, 1, 2.5)])
    rng = np.random.default_rng(3)
    draws = [policy.choose(state, ONE, rng).scores[0] for _ in range(5000)]  # type: ignore[arg-type]
    direct = np.random.default_rng(4).dirichlet(np.ones(5), 5000) @ np.array([*values, anchor])
    assert ks_2samp(draws, direct).pvalue > 1e-4
    without_anchor = np.random.default_rng(5).dirichlet(np.ones(4), 5000) @ np.array(values)
    assert ks_2samp(draws, without_anchor).pvalue < 1e-4  # a planted bug is seen


@pytest.mark.parametrize(
    ("rewards", "due"),
    [
        ([[1.0, 1.0, 1.0], [0.5], [2.0]], [0, 0, 1]),  # the third arm beats any block of the leader
        ([[1.0, 1.0, 1.0], [0.5], [0.9, 0.8]], [1, 0, 0]),  # nobody wins: the leader plays
        ([[1.0, 1.0, 1.0], [1.5], [0.0, 3.0]], [0, 1, 1]),  # two winners share the round
        ([[3.0, 0.0], [1.0, 1.0]], [1, 0]),  # equal numbers: the higher mean leads, its whole sample is the block
        ([[1.0, 1.0], [1.0, 1.0, 1.0]], [1, 0]),  # a tie is a victory
    ],
)
def test_a_round_plays_the_winners_or_the_leader(rewards: list[list[float]], due: list[int]) -> None:
    history = no_history(len(rewards))
    for arm, values in enumerate(rewards):
        for y in values:
            history = with_reward(history, arm, y)
    for seed in range(5):
        assert next_round(history, 0.0, np.random.default_rng(seed)).tolist() == due


def test_blocks_are_consecutive_and_start_anywhere() -> None:
    history = no_history(2)
    for y in [0.0, 4.0, 0.0, 0.0]:
        history = with_reward(history, 0, y)
    for y in [1.0, 1.0]:
        history = with_reward(history, 1, y)
    wins = sum(next_round(history, 0.0, np.random.default_rng(seed))[1] for seed in range(3000))
    assert wins == pytest.approx(1000, abs=130)  # blocks (0, 4), (4, 0), (0, 0): only the last loses to a mean of 1


def test_forced_exploration_plays_an_arm_that_never_wins() -> None:
    history = with_reward(with_reward(with_reward(no_history(2), 0, 1.0), 0, 1.0), 1, -5.0)
    assert next_round(history, 1.5, np.random.default_rng(0)).tolist() == [0, 1]
    assert next_round(history, 1.0, np.random.default_rng(0)).tolist() == [1, 0]


def test_a_round_ends_when_every_arm_due_has_its_reward() -> None:
    policy, rng = RandomBlockDuels(3, 1), np.random.default_rng(6)
    state = policy.init()
    for arm, y in [(0, 1.0), (1, 1.0), (2, 5.0), (2, 5.0)]:
        state = policy.update(state, ONE, arm, y, rng)
    state = state._replace(due=np.array([1, 1, 0]))
    first = policy.choose(state, ONE, rng).arm
    assert first in (0, 1)
    state = policy.update(state, ONE, first, 0.0, rng)
    assert state.due.tolist() == [int(first != 0), int(first != 1), 0]
    number = state.round
    state = policy.update(state, ONE, 1 - first, 0.0, rng)
    assert state.round == number + 1
    assert state.due.tolist() == [0, 0, 1]


@pytest.mark.parametrize(("given", "length"), [(None, 3.0), (10.0, 10.0)])
def test_ucb_v_bound_is_the_formula(given: float | None, length: float) -> None:
    policy = UCBV(2, 1, exploration=1.5, range_factor=0.7, reward_range=given)
    arms = [[0.0, 1.0, 3.0], [2.0, 0.5]]
    state = fed(policy, [(ONE, arm, y) for arm, values in enumerate(arms) for y in values])
    scores = policy.choose(state, ONE, np.random.default_rng(0)).scores  # type: ignore[arg-type]
    for score, values in zip(scores, arms, strict=True):
        e = 1.5 * math.log(6) / len(values)
        assert score == pytest.approx(np.mean(values) + math.sqrt(2 * np.var(values) * e) + 3 * 0.7 * length * e)


@pytest.mark.parametrize(("bound", "order"), [(2.0, 1.0), (2.0, 0.5), (None, 1.0)])
def test_median_of_means_bound_is_the_formula(bound: float | None, order: float) -> None:
    policy = MedianOfMeansUCB(2, 1, moment_bound=bound, moment_order=order, exploration=0.5)
    arms = [[0.0, 1.0, 3.0, 50.0, 2.0, 2.0], [2.0, 0.5, 7.0]]
    state = fed(policy, [(ONE, arm, y) for arm, values in enumerate(arms) for y in values])
    scores = policy.choose(state, ONE, np.random.default_rng(0)).scores  # type: ignore[arg-type]
    everything = np.concatenate(arms)
    v = bound or np.mean(np.abs(everything - np.median(everything)) ** (1 + order))
    centres = [float(np.median([0.5, 26.5, 2.0])), float(np.mean(arms[1]))]  # three blocks of two, and one of three
    for score, values, centre in zip(scores, arms, centres, strict=True):
        level = math.log(math.exp(1 / 8) * 10**2)
        bonus = (12 * v) ** (1 / (1 + order)) * (16 * level / len(values)) ** (order / (1 + order))
        assert score == pytest.approx(centre + 0.5 * bonus)


def test_median_of_means_has_no_more_blocks_than_confidence_asks_for() -> None:
    policy, rng = MedianOfMeansUCB(1, 1, moment_bound=1.0), np.random.default_rng(7)
    values = rng.standard_normal(1000)
    blocks = math.floor(8 * (0.125 + 2 * math.log(1001)))
    cuts = [k * 1000 // blocks for k in range(blocks + 1)]
    centre = np.median([values[a:b].mean() for a, b in pairwise(cuts)])
    confidence = 0.125 + 2 * math.log(1001)
    assert policy.index(values, 1.0, confidence) == pytest.approx(centre + math.sqrt(192 * confidence / 1000))


@pytest.mark.parametrize("name", ["npts", "rb-sda", "ucb-v", "median-of-means-ucb"])
def test_policies_without_context_ignore_it_and_find_the_best_arm(name: str) -> None:
    policy = make_policy(name, 3, 2)
    runs = []
    for scale in (1.0, -7.0):
        rng, rewards = np.random.default_rng(8), np.random.default_rng(9).normal([0.0, 3.0, 0.0], 0.3, (400, 3))
        state, arms = policy.init(), []
        for row in rewards:
            arms.append(policy.choose(state, np.full(2, scale), rng).arm)
            state = policy.update(state, np.full(2, scale), arms[-1], row[arms[-1]], rng)
        runs.append(arms)
    assert runs[0] == runs[1]
    assert runs[0][:3] == [0, 1, 2]
    assert runs[0].count(1) > (130 if name == "median-of-means-ucb" else 250)  # whose constants are cautious


@pytest.mark.parametrize("name", ["npts", "rb-sda", "ucb-v", "median-of-means-ucb"])
def test_choices_do_not_depend_on_the_unit_of_the_rewards(name: str) -> None:
    policy, runs = make_policy(name, 2, 1), []
    for unit in (1.0, 0.0078125):  # a power of two, so that rounding is the same
        rng, rewards = np.random.default_rng(10), unit * np.random.default_rng(11).normal([0.0, 0.5], 1.0, (200, 2))
        state, arms = policy.init(), []
        for row in rewards:
            arms.append(policy.choose(state, ONE, rng).arm)
            state = policy.update(state, ONE, arms[-1], row[arms[-1]], rng)
        runs.append(arms)
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("linear-ucb", {"width": -1.0}, "width must be"),
        ("linear-ucb", {"bound": "ucb1"}, "bound must be one of linucb, oful"),
        ("linear-ucb", {"failure": 1.0}, "failure must be"),
        ("linear-student-t", {"dof": 0.0}, "dof must be"),
        ("linear-phe", {"n_pseudo": 0}, "n_pseudo must be"),
        ("npts", {"upper_bound": math.inf}, "upper_bound must be"),
        ("ucb-v", {"exploration": 0.0}, "exploration must be"),
        ("median-of-means-ucb", {"moment_order": 2.0}, "moment_order must be"),
    ],
)
def test_impossible_settings_are_told(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        make_policy(name, 2, 2, **options)
