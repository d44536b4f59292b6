"""Rewards of every kind: which values are kinds, what the sticks learn, and that nothing changes without kinds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from polyarm.errors import InvalidArgument, PolyarmError
from polyarm.inference import KindsEngine, KindsState, RobustEngine, load_state, save_state
from polyarm.inference.door import NOTHING
from polyarm.inference.kinds_found import CONSTANT, MIXTURE, UNKNOWN, Found, find_kinds
from polyarm.kernels import stick_shares
from polyarm.kernels import sticks as kernels
from polyarm.kernels import tally as tallies
from polyarm.models import JumpMixture, LogisticSticks, RobustMixture, StudentMixture
from polyarm.policies import make_policy
from polyarm.types import Array, IntArray
from tests.contracts.states import bits, position


def engine(n_arms: int, dim: int, **options: Any) -> KindsEngine:
    return KindsEngine(RobustEngine(RobustMixture(n_arms, dim), 8, 4, **options))


def fed(kinds: KindsEngine, values: Array, seed: int = 0, contexts: Array | None = None) -> KindsState:
    """State after these rewards of arms taken in turn."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((len(values), kinds.context_dim)) if contexts is None else contexts
    state = kinds.init()
    for i, value in enumerate(values):
        state = kinds.update(state, x[i], i % kinds.n_arms, float(value), rng)
    return state


def finite(state: Any) -> bool:
    return all(np.isfinite(np.frombuffer(b, d)).all() for d, _, b in bits(state).values() if d.startswith("float"))


def test_rewards_without_kinds_are_the_robust_models_bit_for_bit() -> None:
    kinds = engine(3, 2)
    data = np.random.default_rng(1).standard_normal((150, 3))
    one, two = np.random.default_rng(2), np.random.default_rng(2)
    state, rest = kinds.init(), kinds.rest.init()
    for i, (*x, y) in enumerate(data):
        state = kinds.update(state, np.array(x), i % 3, y, one)
        rest = kinds.rest.update(rest, np.array(x), i % 3, y, two)
    assert bits(state.rest) == bits(rest)
    assert position(one) == position(two)
    x = data[0, :2]
    np.testing.assert_array_equal(kinds.moments(state, x), kinds.rest.moments(rest, x))
    np.testing.assert_array_equal(kinds.draw_means(state, x, 5, one), kinds.rest.draw_means(rest, x, 5, two))
    assert isinstance(kinds.predictive(state, x, 0), StudentMixture)


def late_value(i: int) -> float:
    return 7.0 if i >= 260 else float(np.sin(17.0 * i) + 0.001 * i)


def test_the_short_way_through_an_update_is_the_long_one_bit_for_bit() -> None:
    """Where only the mixture learns it is taken, and left again when a value comes that is seen again and again."""
    states, taken = [], 0
    for short in (True, False):
        kinds, rng = engine(2, 2), np.random.default_rng(5)
        state, x = kinds.init(), np.random.default_rng(6)
        for i in range(640):
            if not short:
                kinds._door.steady = None
            taken += state is kinds._door.steady
            state = kinds.update(state, x.standard_normal(2), i % 2, late_value(i), rng)
        states.append(bits(state))
    assert states[0] == states[1]
    assert taken > 400


@pytest.mark.parametrize("entry", [np.nan, np.inf, 1e9, 1e200])
def test_the_short_way_refuses_contexts_by_name_and_changes_nothing(entry: float) -> None:
    """There the kernels look at contexts, and an arm whose rows are all taken is given more only for a reward."""
    states = []
    for wrong in (True, False):
        kinds, rng = engine(2, 2), np.random.default_rng(5)
        state, x = kinds.init(), np.random.default_rng(6)
        for i in range(300):
            if wrong and i > 250:
                before, refused = bits(state), np.array([0.1, entry])
                assert i < 253 or state is kinds._door.steady
                for act in (
                    lambda: kinds.update(state, refused, i % 2, 0.1, rng),  # noqa: B023
                    lambda: kinds.choose_by_information(state, refused, 100, 2.0, rng),  # noqa: B023
                ):
                    with pytest.raises(InvalidArgument, match="context must be"):
                        act()
                assert bits(state) == before
            state = kinds.update(state, x.standard_normal(2), i % 2, late_value(i), rng)
        states.append((bits(state), position(rng)))
    assert states[0] == states[1]


def test_a_reward_that_fails_on_the_short_way_is_found_out_at_the_door() -> None:
    """What an update left half done is looked at whole before anything is read from it."""
    kinds = engine(2, 2)
    state = fed(kinds, np.random.default_rng(0).standard_normal(100))
    assert state is kinds._door.steady is kinds._door.last
    state.rest.tables[0, 0, 0] = np.nan
    kinds._door.last = NOTHING  # as an update leaves it that did not end
    with pytest.raises(InvalidArgument, match="finite"):
        kinds.update(state, np.ones(2), 0, 0.5, np.random.default_rng(1))


CASES: dict[str, tuple[list[float], tuple[float, ...], int]] = {
    "one reward": ([0.5], (), MIXTURE),
    "no click": ([0.0], (1.0,), CONSTANT),
    "a click": ([1.0], (1.0,), CONSTANT),
    "one value twice": ([5.0, 5.0], (5.0,), UNKNOWN),
    "clicks": ([0.0, 1.0, 0.0, 0.0], (1.0,), CONSTANT),
    "the first click": ([0.0, 0.0, 1.0], (1.0,), CONSTANT),
    "two values, of which one came twice": ([0.0, 5.0, 0.0], (0.0,), CONSTANT),
    "two values once": ([0.0, 5.0], (), MIXTURE),
    "three values": ([0.0, 1.0, 2.0, 0.0, 1.0, 0.0], (0.0, 1.0), CONSTANT),
    "one of three values twice": ([0.0, 1.0, 2.0, 0.0], (0.0,), MIXTURE),
    "purchases": ([0.0, 3.1, 0.0, 7.9, 0.0, 2.2, 0.0, 4.5], (0.0,), MIXTURE),
    "ratings": ([1.0, 2.0, 3.0, 4.0, 5.0] * 8, (), MIXTURE),
    "a rating that stands out": ([1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0] * 8, (5.0,), MIXTURE),
    "continuous": ([0.1, 0.2, 0.3, 0.4], (), MIXTURE),
    "two inflated values": ([0.0, 9.0, 0.0, 9.0, 1.5, 2.5] * 4 + [0.7, 0.9], (0.0, 9.0), MIXTURE),
}


@pytest.mark.parametrize("case", CASES)
def test_kinds_are_the_values_that_come_again_and_again(case: str) -> None:
    values, expected, rest = CASES[case]
    tally, seen = np.zeros((tallies.SLOTS, 2)), np.zeros(3)
    for value in values:
        tallies.count_value(tally, seen, value)
    found = find_kinds(tally, seen, np.zeros(0))
    assert set(found.values) == set(expected)
    assert found.rest == rest


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 7.0)])
def test_of_two_values_the_kind_stays_whichever_is_the_more_frequent(low: float, high: float) -> None:
    """Or rewards beyond a memory, which are in sums only, would be lost when the other one takes the lead."""
    for kind, other in ((low, high), (high, low)):
        for values in ([low] * 3 + [high] * 5, [low] * 5 + [high] * 3):
            tally, seen = np.zeros((tallies.SLOTS, 2)), np.zeros(3)
            for value in values:
                tallies.count_value(tally, seen, value)
            assert find_kinds(tally, seen, np.array([kind])) == Found((kind,), CONSTANT, other)


def test_nothing_is_lost_when_the_rarer_of_two_values_becomes_the_more_frequent() -> None:
    rng, x = np.random.default_rng(0), np.zeros(1)
    kinds = KindsEngine(RobustEngine(RobustMixture(1, 1), memory=8))
    state = kinds.init()
    for i in range(200):
        state = kinds.update(state, x, 0, 5.0 if i < 60 else -2.0, rng)
    assert state.sticks.sums[0, 0, 0] == 200


def test_rewards_of_0_and_1_are_known_from_the_first_one_until_another_value_comes() -> None:
    rng, x = np.random.default_rng(0), np.array([0.5, -1.0])
    kinds = engine(3, 2)
    state = kinds.update(kinds.init(), x, 0, 0.0, rng)
    assert (list(state.values), state.rest_is, state.constant) == ([1.0], CONSTANT, 0.0)
    mean, sd = kinds.moments(state, x)
    assert mean[0] < mean[1] == mean[2] == pytest.approx(0.5)  # which is all that a prior can say of 0 and 1
    assert 0.0 < sd[0] < sd[1] < 0.5
    for i, y in enumerate((0.0, 0.0, 37.5, 12.25, 0.0)):
        state = kinds.update(state, x, i % 3, y, rng)
    assert (list(state.values), state.rest_is) == ([0.0], MIXTURE)
    assert state.rest.n_rewards == 2
    assert state.sticks.sums[:, 0, 0].sum() == 6


def test_a_frequent_value_is_counted_among_many_others() -> None:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(20_000) < 0.35, 0.0, rng.standard_normal(20_000))
    tally, seen = np.zeros((tallies.SLOTS, 2)), np.zeros(3)
    for value in y:
        tallies.count_value(tally, seen, value)
    held = {v: c for v, c in tally[: int(seen[tallies.USED])]}
    true = (y == 0).sum()
    assert held[0.0] <= true <= held[0.0] + seen[tallies.LOST]
    assert seen[tallies.LOST] <= len(y) / (tallies.SLOTS + 1)
    assert find_kinds(tally, seen, np.zeros(0)).values == (0.0,)


@pytest.mark.parametrize("dim", [1, 3])
def test_rare_successes_without_context_leave_every_number_finite(dim: int) -> None:
    """A column of ones beside the intercept and rewards of 0 and 1: once this made the state NaN."""
    rates = np.array([0.02, 0.03, 0.08])
    policy: Any = make_policy("nonparametric", 3, dim)
    rng, state = np.random.default_rng(3), policy.init()
    x, plays = np.ones(dim), np.zeros(3)
    for step in range(6000):
        arm = policy.choose(state, x, rng).arm
        state = policy.update(state, x, arm, float(rng.random() < rates[arm]), rng)
        plays[arm] += step >= 4000
    assert finite(state)
    assert plays[2] > 1500
    means = policy.engine.expected_means(state, x)
    assert means[2] == pytest.approx(0.08, abs=0.02)


def play(policy: Any, contexts: Array, means: Array, rewards: Array, seed: int) -> float:
    """Regret per step."""
    rng, state, regret = np.random.default_rng(seed), policy.init(), 0.0
    for t, x in enumerate(contexts):
        arm = policy.choose(state, x, rng).arm
        state = policy.update(state, x, arm, float(rewards[t, arm]), rng)
        regret += means[t].max() - means[t, arm]
    assert finite(state)
    return regret / len(contexts)


def test_clicks_with_context_are_learnt_as_well_as_by_a_linear_sampler() -> None:
    """Rare ones were once taken for outliers of a component around 0: little better than uniform play."""
    regrets = []
    for seed in range(4):
        rng = np.random.default_rng([7, seed])
        x = rng.standard_normal((1200, 4))
        means = expit(x @ rng.normal(0, 0.8, (4, 5)) + rng.normal(-2, 0.5, 5))
        rewards = (rng.random(means.shape) < means).astype(float)
        regrets.append([play(make_policy(n, 5, 4), x, means, rewards, seed) for n in ("nonparametric", "linear")])
        regrets[-1].append(float((means.max(axis=1) - means.mean(axis=1)).mean()))
    ours, linear, uniform = np.mean(regrets, axis=0)
    assert ours < 0.85 * linear
    assert ours < 0.35 * uniform


def test_zero_inflated_amounts_are_learnt() -> None:
    """Buyers were once one wide component around 0, and every arm's mean 0."""
    regrets = []
    for seed in range(4):
        rng = np.random.default_rng([8, seed])
        x = rng.random((1000, 2))
        buys = expit(x @ rng.normal(0, 1.5, (2, 4)) + rng.normal(-1, 0.5, 4))
        amounts = np.exp(x @ rng.normal(0, 0.7, (2, 4)) + rng.normal(1, 0.5, 4) + 0.7 * rng.standard_normal((1000, 4)))
        means = buys * amounts.mean(axis=0)
        rewards = np.where(rng.random(buys.shape) < buys, amounts, 0.0)
        uniform = float((means.max(axis=1) - means.mean(axis=1)).mean())
        regrets.append(play(make_policy("nonparametric", 4, 2), x, means, rewards, seed) / uniform)
    assert np.mean(regrets) < 0.5


def test_ten_classes_are_told_apart() -> None:
    """A reward of 1 for the right one of ten classes, 20 columns: once every arm was predicted to pay 0."""
    rng = np.random.default_rng(9)
    label = rng.integers(10, size=1500)
    x = rng.standard_normal((10, 20))[label] + 0.7 * rng.standard_normal((1500, 20))
    rewards = np.eye(10)[label]
    assert play(make_policy("nonparametric", 10, 20), x, rewards, rewards, 0) < 0.3


def newton(X: Array, y: Array, prior: Array) -> tuple[Array, Array]:
    """Mode and curvature of a logistic regression with prior N(prior[0], diag(prior[1]))."""
    b = prior[0].copy()
    for _ in range(100):
        p = expit(X @ b)
        H = (X.T * (p * (1 - p))) @ X + np.diag(1 / prior[1])
        b = b + np.linalg.solve(H, X.T @ (y - p) - (b - prior[0]) / prior[1])
    return b, H


def sticks_of(kinds: KindsEngine, x: Array, kind: IntArray, n_sticks: int, passes: int = 30) -> tuple[Any, Array]:
    """Sticks of one arm that has seen these kinds, after passes over them; the prior's guess is held."""
    rng = np.random.default_rng(4)
    columns = np.zeros((6, kinds.context_dim + 1))
    columns[kernels.UNIT] = 1.0
    sticks = kinds._sticks(n_sticks, columns)
    data = np.zeros((len(x), kinds.context_dim + 3 + 2 * n_sticks))
    for row, k in zip(x, kind, strict=True):
        kernels.add_reward(sticks, data, 0, row, float(k), int(k), rng)
    for _ in range(passes):
        kernels.visits(sticks, data, 0, len(x), 1, rng)
    return sticks, data


def test_the_mode_is_that_of_a_logistic_regression() -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((300, 3))
    kind = rng.choice(3, size=300, p=[0.9, 0.06, 0.04])
    sticks, _ = sticks_of(engine(1, 3), x, kind, 2)
    X = np.column_stack([x, np.ones(300)])
    for j in range(2):
        reached = kind >= j
        b, H = newton(X[reached], kind[reached] == j, sticks.guess[j])
        np.testing.assert_allclose(sticks.fits[0, j, :, 4], b, rtol=1e-6, atol=1e-8)
        F = np.tril(sticks.fits[0, j, :, :4])
        np.testing.assert_allclose(F @ F.T, H, rtol=1e-6)


def mode_of(state: KindsState, arm: int) -> tuple[Array, Array]:
    """An arm's features, and the mode of its logistic regression on all its rewards under the guess: Newton's steps, as
    short as it takes to get closer.
    """
    sticks, D = state.sticks, state.sticks.fits.shape[2]
    rows = state.data[arm][: sticks.sizes[arm, 0]]
    X, y = rows[:, :D], (rows[:, D + 1] == 0).astype(np.float64)
    guess, unit = sticks.guess[0], sticks.columns[kernels.UNIT, : D - 1]
    at = np.append(sticks.columns[kernels.AT, : D - 1], 1.0)
    information = np.diag(np.append(1 / (guess[1, :-1] * unit), 0.0)) + np.outer(at, at) / guess[1, -1]
    pull = np.append(guess[0, :-1] / (guess[1, :-1] * unit), 0.0) + at * guess[0, -1] / guess[1, -1]

    def loss(b: Array) -> float:
        return float(np.sum(np.logaddexp(0.0, X @ b) - y * (X @ b)) + 0.5 * b @ information @ b - pull @ b)

    b = np.zeros(D)
    for _ in range(50):
        p = expit(X @ b)
        step = np.linalg.solve((X.T * (p * (1 - p))) @ X + information, X.T @ (y - p) - information @ b + pull)
        while loss(b + step) > loss(b) and np.abs(step).max() > 1e-9:
            step = step / 2
        b = b + step
    return X, b


@pytest.mark.parametrize(("seed", "moves"), [(1, 32), (7, 32), (7, 128)])
def test_modes_stay_near_those_of_all_rewards(seed: int, moves: int) -> None:
    """Two classes that a line parts, 30 correlated columns: a step to where old expansions point went too far, so that
    the next expansions said nothing, and decisions were left to chance for hundreds of steps.
    """
    rng, d = np.random.default_rng(seed), 30
    mixing, line = rng.normal(size=(6, d)) / 6**0.5, rng.normal(size=d)
    kinds = KindsEngine(RobustEngine(RobustMixture(2, d)), moves=moves)
    state = kinds.init()
    for t in range(300):
        x = rng.standard_normal(6) @ mixing + 0.5 * rng.standard_normal(d)
        arm = int(rng.integers(2))
        state = kinds.update(state, x, arm, float((x @ line > 0) == (arm == 0)), rng)
        for a in range(2 if t > 80 and t % 10 == 0 else 0):
            X, mode = mode_of(state, a)
            assert np.abs(X @ (state.sticks.fits[a, 0, :, -2] - mode)).max() < 0.7


def exact_moments(X: Array, y: Array, f: Array, centre: Array, H: Array) -> tuple[float, float]:
    """Mean and standard deviation of sigmoid(f'beta) under a logistic regression with prior N(0, I), on a grid."""
    steps = np.linspace(-9.0, 9.0, 181)
    grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    beta = centre + grid @ np.linalg.cholesky(np.linalg.inv(H)).T
    eta = beta @ X.T
    log_density = (y * eta - np.logaddexp(0.0, eta)).sum(axis=1) - 0.5 * (beta**2).sum(axis=1)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    p = expit(beta @ f)
    mean = float(weights @ p)
    return mean, float(np.sqrt(weights @ (p - mean) ** 2))


@pytest.mark.parametrize("given_omegas", [False, True])
@pytest.mark.parametrize(("n", "rate"), [(4, 0.5), (20, 0.3), (80, 0.05), (400, 0.01)])
def test_moments_are_near_those_of_quadrature(n: int, rate: float, given_omegas: bool) -> None:
    """Within 0.4 standard deviations, which are up to 1.3 times too wide for rare successes; those given the omegas of
    the sampler are far too narrow there."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((n, 1))
    kind = (rng.random(n) > expit(np.log(rate / (1 - rate)) + 0.5 * x[:, 0])).astype(np.int64)
    sticks, _ = sticks_of(engine(1, 1), x, kind, 1)
    X, y = np.column_stack([x, np.ones(n)]), kind == 0
    b, H = newton(X, y, sticks.guess[0])
    if given_omegas:
        eta = X @ b
        sticks.fits[0, 0, :, :2] = np.linalg.cholesky((X.T * (np.tanh(eta / 2) / (2 * eta))) @ X + np.eye(2))
    ratios = []
    for at in (-1.0, 0.0, 1.0):
        out = np.zeros((2, 1))  # the other value is 0
        stick_shares.moments(sticks, np.array([at]), np.ones(1), out)
        mean, sd = exact_moments(X, y, np.array([at, 1.0]), b, H)
        assert given_omegas or abs(out[0, 0] - mean) < 0.4 * sd
        ratios.append(out[1, 0] / sd)
    near = all(0.9 < ratio < 1.3 for ratio in ratios)
    assert near is (not given_omegas or n < 80)


def test_separated_kinds_do_not_overshoot() -> None:
    x = np.linspace(-3, 3, 40)[:, None] + 0.1
    kind = (x[:, 0] > 0).astype(int)
    sticks, _ = sticks_of(engine(1, 1), 10 * x, kind, 1)
    b, _ = newton(np.column_stack([10 * x, np.ones(40)]), kind == 0, sticks.guess[0])
    np.testing.assert_allclose(sticks.fits[0, 0, :, 2], b, rtol=1e-5)


def test_sums_kept_by_small_changes_equal_sums_counted_afresh() -> None:
    rng = np.random.default_rng(6)
    kinds = engine(2, 3, memory=20)
    state = fed(kinds, rng.choice([0.0, 1.0, 2.5], size=200, p=[0.6, 0.3, 0.1]))
    before = state.sticks.sums.copy()
    for arm in range(2):
        kernels.recount(state.sticks, state.data[arm], arm)
    np.testing.assert_allclose(state.sticks.sums, before, rtol=1e-9, atol=1e-9)
    assert state.sticks.sums[:, 0, 0].sum() == 200


@pytest.mark.parametrize("options", [{}, {"memory": 15}, {"half_life": 40.0}])
@pytest.mark.parametrize("rewards", ["clicks", "purchases", "three values"])
def test_a_file_continues_bit_for_bit(options: dict[str, Any], rewards: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    values = {
        "clicks": rng.integers(2, size=90).astype(float),
        "purchases": np.where(rng.random(90) < 0.6, 0.0, rng.lognormal(size=90)),
        "three values": rng.choice([1.0, 2.0, 3.0], size=90),
    }[rewards]
    kinds = engine(3, 2, **options)
    state = fed(kinds, values)
    loaded = load_state(save_state(tmp_path / "state", state), kinds.init())
    assert bits(loaded) == bits(state)
    futures = []
    for start in (state, loaded):
        source = np.random.default_rng(8)
        for i in range(40):
            start = kinds.update(start, source.standard_normal(2), i % 3, float(values[i]), source)
        futures.append(bits(kinds.refresh(start, source)))
    assert futures[0] == futures[1]


def test_kinds_may_come_late_and_go() -> None:
    rng = np.random.default_rng(9)
    early, late = rng.standard_normal(40), np.where(rng.random(400) < 0.8, 1e6, rng.standard_normal(400))
    kinds = replace(engine(2, 1), windfalls=False)  # which 1e6 would be where it is no longer a kind
    state = fed(kinds, np.concatenate([early, late]))
    assert state.values.tolist() == [1e6]
    assert state.sticks.sums[:, 0, 0].sum() == 440
    assert state.rest.n_rewards == 440 - int((late == 1e6).sum())
    state = fed(kinds, np.concatenate([late, rng.standard_normal(4000)]))
    assert len(state.values) == 0
    assert state.rest.n_rewards == 4400
    assert finite(state)


@pytest.mark.parametrize("values", ["numbers", "coins"])
def test_every_reward_is_counted_whether_or_not_it_is_looked_at(values: str) -> None:
    rng, kinds = np.random.default_rng(0), engine(2, 1)
    state = kinds.init()
    for n in range(1, 151):
        y = rng.standard_normal() if values == "numbers" else float(rng.random() < 0.4)
        state = kinds.update(state, np.ones(1), n % 2, y, rng)
        assert state.n_rewards == n
    assert state.rest.n_rewards == (150 if values == "numbers" else 0)


def test_a_new_value_is_noticed_at_once() -> None:
    kinds = engine(2, 1)
    state = fed(kinds, np.array([0.0, 1.0] * 50 + [7.0]))
    assert set(state.values) == {0.0, 1.0}
    assert (state.rest_is, state.constant) == (CONSTANT, 7.0)
    state = fed(kinds, np.array([0.0, 1.0] * 50 + [7.0, 9.0]))
    assert state.rest_is == MIXTURE
    assert state.rest.n_rewards == 2


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (1e5, 1.0), (0.0, 1e-3)])
def test_units_of_values_and_contexts_do_not_matter(shift: float, scale: float) -> None:
    rng = np.random.default_rng(10)
    x = rng.standard_normal((400, 2))
    clicks = (rng.random(400) < expit(2 * x[:, 0] - 1)).astype(float)
    kinds = engine(2, 2)
    state = fed(kinds, shift + scale * clicks, 1, np.column_stack([x[:, 0] / scale + shift / 1e3, scale * x[:, 1]]))
    at = np.array([1.0 / scale + shift / 1e3, 0.0])
    mean = (kinds.expected_means(state, at) - shift) / scale
    np.testing.assert_allclose(mean, expit(1.0), atol=0.12)


def test_draws_agree_with_moments() -> None:
    rng = np.random.default_rng(11)
    values = np.where(rng.random(300) < 0.5, 0.0, np.where(rng.random(300) < 0.6, 4.0, rng.normal(2, 1, 300)))
    kinds = engine(2, 1)
    state = fed(kinds, values)
    assert len(state.values) == 2
    x = np.array([0.5])
    draws = kinds.draw_means(state, x, 40_000, rng)
    mean, sd = kinds.moments(state, x)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * sd.max() / 200)
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.03)
    np.testing.assert_array_equal(kinds.moments_many(state, x[None])[0], [mean, sd])
    state.amounts.density_weights[:] = state.amounts.weights
    found = kinds.predictive(state, x, 0)
    assert found.mean() == pytest.approx(mean[0], abs=1e-6)


def test_the_predictive_has_jumps_where_the_kinds_are() -> None:
    rng = np.random.default_rng(12)
    values = np.where(rng.random(400) < 0.6, 0.0, rng.lognormal(1.0, 0.5, 400))
    kinds = engine(2, 1)
    found = kinds.predictive(fed(kinds, values), np.zeros(1), 0)
    assert isinstance(found, JumpMixture)
    assert found.probability(0.0) == pytest.approx(0.6, abs=0.1)
    jump = float(found.cdf(0.0) - found.cdf(-1e-12))
    assert jump == pytest.approx(found.probability(0.0), abs=1e-6)
    p = np.array([0.001, 0.2, 0.5, 0.8, 0.99])
    y = found.quantile(p)
    assert (found.cdf(y) >= p - 1e-9).all()
    assert (found.cdf(y - 1e-6) <= p + 1e-6).all()
    sample = found.sample(50_000, rng)
    assert (sample == 0).mean() == pytest.approx(found.probability(0.0), abs=0.01)
    np.testing.assert_allclose(np.quantile(sample, p[1:]), y[1:], atol=0.1)


def test_a_predictive_of_values_alone_is_discrete() -> None:
    found = JumpMixture(np.array([1.0, 0.0]), np.array([0.25, 0.75]))
    assert found.mean() == 0.25
    np.testing.assert_array_equal(found.quantile(np.array([0.0, 0.5, 0.75, 0.76, 1.0])), [0, 0, 0, 1, 1])
    np.testing.assert_array_equal(found.cdf(np.array([-1.0, 0.0, 0.5, 1.0])), [0, 0.75, 0.75, 1])
    assert np.isnan(found.quantile(1.5))
    assert set(found.sample(100, np.random.default_rng(0))) == {0.0, 1.0}
    assert not found.pdf(0.0).any()


def test_densities_are_those_of_the_rest() -> None:
    rng = np.random.default_rng(13)
    values = np.where(rng.random(300) < 0.5, 0.0, rng.normal(10, 1, 300))
    kinds = engine(1, 1)
    state = fed(kinds, values)
    grid = np.linspace(0, 20, 400)
    density = kinds.draw_densities(state, np.zeros(1), 0, grid, 50, rng)
    assert density.sum(axis=1).mean() * (grid[1] - grid[0]) == pytest.approx(0.5, abs=0.1)
    clicks = fed(kinds, (values == 0).astype(float))
    assert not kinds.draw_densities(clicks, np.zeros(1), 0, grid, 5, rng).any()


def test_drawn_probabilities_of_single_values_are_those_of_the_predictive() -> None:
    rng = np.random.default_rng(13)
    amounts: Array = np.where(rng.random(300) < 0.3, 0.0, rng.normal(10, 1, 300))
    clicks: Array = (amounts == 0).astype(np.float64)
    counts: Array = np.asarray(np.round(amounts))
    for values, found in ((clicks, [0.0, 1.0]), (amounts, [0.0]), (counts, [])):
        kinds = engine(1, 1)
        state = fed(kinds, values)
        at, shares = kinds.draw_jumps(state, np.zeros(1), 0, 4000, rng)
        assert sorted(at) == found
        assert shares.shape == (4000, len(found))
        law = kinds.predictive(state, np.zeros(1), 0)
        assert isinstance(law, JumpMixture)
        for value, column in zip(at, shares.T, strict=True):
            assert column.mean() == pytest.approx(law.probability(value), abs=0.01)
    at, shares = engine(1, 1).draw_jumps(engine(1, 1).init(), np.zeros(1), 0, 3, rng)
    assert (at.shape, shares.shape) == ((0,), (3, 0))


@pytest.mark.parametrize("values", [[0.0, 1.0], [0.0, 0.0, 1.5, 2.5, 3.5]])
def test_a_new_arm_starts_from_what_the_arms_share(values: list[float]) -> None:
    rng = np.random.default_rng(14)
    kinds = engine(3, 2)
    state = fed(kinds, rng.choice(values, size=300))
    before = kinds.moments(state, np.ones(2))
    wider, grown = kinds.with_arm(state)
    after = wider.moments(grown, np.ones(2))
    np.testing.assert_allclose(after[:, :3], before)
    assert after[1, 3] > before[1].max()
    assert after[0, 3] == pytest.approx(before[0].mean(), rel=0.3)
    for i in range(40):
        grown = wider.update(grown, rng.standard_normal(2), i % 4, float(rng.choice(values)), rng)
    assert finite(grown)


def test_a_guess_is_learnt_slowly_and_then_tells_a_new_arm_that_rewards_are_rare() -> None:
    """The prior of an arm begins at even odds, hardly moves in the first rewards, and follows in the long run."""
    rng = np.random.default_rng(15)
    kinds = engine(3, 1)
    state, expected = kinds.init(), []
    for i in range(6000):
        state = kinds.update(state, rng.standard_normal(1), i % 3, float(rng.random() < 0.03), rng)
        if i in (99, 5999):
            wider, grown = kinds.with_arm(state)
            expected.append(wider.moments(grown, np.zeros(1))[0, 3])
    assert 0.4 < expected[0] < 0.55
    assert expected[1] < 0.2


def test_first_contexts_that_happen_to_be_alike_do_no_lasting_harm() -> None:
    """Two contexts that hardly differ seemed to be a column without spread: slopes of 10^5 came of it, for good."""
    rng = np.random.default_rng(16)
    kinds = engine(3, 2)
    contexts, values = rng.standard_normal((120, 2)), (rng.random(120) < 0.15).astype(float)
    contexts[1, 0] = contexts[0, 0] * (1 + 2e-4)
    values[:3] = 0.0
    state = fed(kinds, values, contexts=contexts)
    assert np.abs(state.sticks.fits[:, 0, :, 3]).max() < 5.0
    np.testing.assert_allclose(state.sticks.guess[0, 0], 0.0, atol=0.2)
    np.testing.assert_allclose(state.sticks.guess[0, 1], 1.0, rtol=0.4)


def test_bad_settings() -> None:
    with pytest.raises(PolyarmError, match="moves must be an integer of at least 0, got -1"):
        KindsEngine(RobustEngine(RobustMixture(2, 2)), moves=-1)
    with pytest.raises(PolyarmError, match="wide must be"):
        LogisticSticks(2, 2, wide=(0.0, 1.0))
