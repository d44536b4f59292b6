"""What must not matter to the robust model: offsets, a wild reward, accidental ties, another scale, ill-posed sums."""

from collections.abc import Callable

import numpy as np
import pytest

from polyarm.inference import RobustEngine, RobustState
from polyarm.kernels.robust import units
from polyarm.kernels.robust.component import COUNT, MEAN, SYY, sxx_row, sxy_row
from polyarm.models import RobustMixture
from polyarm.policies import make_policy
from polyarm.types import Array, World
from tests.inference.test_robust import packed

N_STEPS, N_WORLDS = 300, 10
Change = Callable[[World], World]


def linear_world(seed: int, outlier_sd: float = 0.3) -> World:
    """Four arms, two columns, noise of sd 0.3; a twentieth of the rewards has noise of another sd."""
    rng = np.random.default_rng([seed, 7])
    X, W = rng.standard_normal((N_STEPS, 2)), rng.standard_normal((4, 2))
    sd = np.where(rng.random((N_STEPS, 4)) < 0.05, outlier_sd, 0.3)
    return World(X, X @ W.T + sd * rng.standard_normal((N_STEPS, 4)), X @ W.T)


def regrets(change: Change, outlier_sd: float = 0.3) -> Array:
    """Regret of the default policy in each of many worlds that are changed first."""
    found = np.zeros(N_WORLDS)
    for seed in range(N_WORLDS):
        world, rng = change(linear_world(seed, outlier_sd)), np.random.default_rng(seed)
        policy = make_policy("nonparametric", 4, 2)
        state = policy.init()
        for x, paid, means in zip(world.contexts, world.rewards, world.means, strict=True):
            arm = policy.choose(state, x, rng).arm
            found[seed] += means.max() - means[arm]
            state = policy.update(state, x, arm, float(paid[arm]), rng)
    return found


def a_wild_first_reward(world: World) -> World:
    rewards = world.rewards.copy()
    rewards[0] += 1e8
    return world._replace(rewards=rewards)


def shifted_columns(world: World) -> World:
    return world._replace(contexts=world.contexts + np.array([100.0, -3000.0]))


def shifted_rewards(world: World) -> World:
    return world._replace(rewards=world.rewards + 1e9)


def rounded_rewards(world: World) -> World:
    return world._replace(rewards=world.rewards.round(2))


def test_what_does_not_matter_leaves_the_regret_where_it_was() -> None:
    """Unchanged 17; 323 and 243 for the first two before rewards and columns were counted from where they are."""
    usual = regrets(lambda world: world)
    for change in (a_wild_first_reward, shifted_columns, shifted_rewards, rounded_rewards):
        other = regrets(change)
        error = np.sqrt((usual.var() + other.var()) / N_WORLDS)
        assert other.mean() < usual.mean() + 4 * error + 4, change.__name__
        assert other.max() < 100, change.__name__


def played(n: int, offset: Array, model: RobustMixture, memory: int | None = None) -> tuple[RobustState, Array, Array]:
    """A state after n rewards of columns with an offset, and the contexts and rewards of its two arms."""
    engine, rng = RobustEngine(model, memory=memory), np.random.default_rng(4)
    state = engine.init()
    X = rng.standard_normal((n, 2)) + offset
    y = X @ [1.0, -2.0] + rng.standard_normal(n) + np.where(np.arange(n) == 0, 1e6, 0.0)
    for t in range(n):
        state = engine.update(state, X[t], t % 2, float(y[t]), rng)
    return state, X, y


@pytest.mark.parametrize("memory", [None, 20])
def test_sums_are_those_of_columns_and_rewards_counted_from_elsewhere(memory: int | None) -> None:
    state, X, y = played(200, np.array([1e4, 0.0]), RobustMixture(2, 2), memory)
    base = np.append(state.features.base[:2], 0.0)
    assert abs(base[0] - 1e4) < 1
    assert base[1] == 0
    assert abs(state.shared.origin - np.median(y)) < 20
    for arm in range(2):
        T = state.tables[arm, :, : state.sizes[arm, 0]].sum(axis=1)
        F, mine = np.column_stack([X[arm::2], np.ones(100)]) - base, y[arm::2] - state.shared.origin
        assert T[COUNT] == 100
        np.testing.assert_allclose(packed(T, sxx_row(3), 3), F.T @ F, rtol=1e-9, atol=1e-6)
        np.testing.assert_allclose(T[sxy_row(3) :][:3], F.T @ mine, rtol=1e-9, atol=1e-6)
        np.testing.assert_allclose(T[SYY], mine @ mine, rtol=1e-9)


def test_an_outlier_that_leaves_takes_its_square_with_it() -> None:
    """A component that has held 1e9 for a while must not keep the rounding errors of its square."""
    engine, rng = RobustEngine(RobustMixture(1, 1)), np.random.default_rng(3)
    state = engine.init()
    for t in range(300):
        reward = 1e9 if t % 50 == 20 else float(rng.standard_normal())
        state = engine.update(state, rng.standard_normal(1), 0, reward, rng)
    seats, y = engine.assignments(state, 0), state.data[0][:300, 2]
    for k in range(state.sizes[0, 0]):
        np.testing.assert_allclose(state.tables[0, SYY, k], y[seats == k] @ y[seats == k], rtol=1e-9)


def test_a_tie_by_accident_is_no_tie() -> None:
    rng = np.random.default_rng(0)
    rewards = rng.standard_normal(64)
    assert units.tied_sd(rewards) == 0
    rewards[:5] = 0.5
    assert units.tied_sd(rewards) == 0
    rewards[:7] = 0.5
    usual = units.tied_sd(rewards)
    assert usual == pytest.approx(rewards.std(), rel=0.05)
    rewards[-1] = 1e9
    assert units.tied_sd(rewards) < 2 * usual


@pytest.mark.parametrize("n_zeros", [0, 20, 50])
def test_the_scale_does_not_follow_an_outlier(n_zeros: int) -> None:
    rewards = np.random.default_rng(1).lognormal(0, 1, 64)
    rewards[:n_zeros] = 0
    median, square = units.robust_scale(rewards)
    rewards[-1] = 1e9
    wild_median, wild_square = units.robust_scale(rewards)
    assert abs(wild_median - median) < 0.2
    assert square / 2 < wild_square < 4 * square


def test_a_first_scale_of_one_is_a_scale() -> None:
    """Rewards 0, 0, 12 have scale 1, so 0, 0, 24 must give twice what they give."""
    found = []
    for factor in (1.0, 2.0):
        engine, rng = RobustEngine(RobustMixture(2, 1)), np.random.default_rng(0)
        state = engine.init()
        for t, y in enumerate((0.0, 0.0, 12.0, 1.0, 5.0, 3.0)):
            state = engine.update(state, np.ones(1), t % 2, factor * y, rng)
        found.append(engine.moments(state, np.ones(1)) / factor)
    np.testing.assert_array_equal(found[0], found[1])


def test_forgetting_forgets_the_scale_too() -> None:
    """Rewards that become ten thousand times smaller are learnt as if the others had never been."""
    policy = make_policy("nonparametric", 3, 2, half_life=40.0)
    state, rng = policy.init(), np.random.default_rng(1)
    slopes, best = rng.standard_normal((3, 2)), []
    for t in range(1200):
        x = rng.standard_normal(2)
        arm = policy.choose(state, x, rng).arm
        reward = (slopes[arm] @ x + 0.3 * rng.standard_normal()) * (1.0 if t < 400 else 1e-4)
        state = policy.update(state, x, arm, float(reward), rng)
        best.append(arm == (slopes @ x).argmax())
    assert state.rest.shared.reward_square < 1e-6
    assert np.mean(best[-300:]) > 0.85


@pytest.mark.parametrize("rates", [(0.05, 0.06, 0.08), (0.01, 0.02, 0.02)])
def test_two_valued_rewards_with_a_column_of_ones_keep_the_state_finite(rates: tuple[float, ...]) -> None:
    engine = RobustEngine(RobustMixture(3, 1), 8, 4)
    state, rng = engine.init(), np.random.default_rng(0)
    for t in range(6000):
        state = engine.update(state, np.ones(1), t % 3, float(rng.random() < rates[t % 3]), rng)
    assert np.isfinite(state.tables[:, : MEAN + 2]).all()
    assert np.isfinite(state.hyper).all()
    S2 = state.shared.reward_square
    assert state.shared.noise_scale > 1e-6 * (S2 + min(state.shared.arm_var.sum(), 100 * S2))
    mean, sd = engine.moments(state, np.ones(1))
    np.testing.assert_allclose(mean, rates, atol=0.03)
    assert (sd < 0.2).all()


def test_a_tie_is_distrusted_only_where_it_is_common() -> None:
    engine, rng = RobustEngine(RobustMixture(2, 1), 4, 2), np.random.default_rng(0)
    state = engine.init()
    for t in range(64):
        state = engine.update(state, rng.random(1), t % 2, round(rng.standard_normal(), 2), rng)
    assert len(set(state.reservoir)) < 64
    assert state.shared.tied_sd == 0
