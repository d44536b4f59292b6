"""What the exploration rule sees: moments made wider by what one state does not say, and the noise of the arms."""

import numpy as np
import pytest

from polyarm.kernels._jit import plain
from polyarm.kernels.robust import outlook, predict
from polyarm.kernels.robust.component import COUNT, SYY, VAR
from polyarm.kernels.robust.noise import relative_noise
from polyarm.kernels.robust.outlook import ALIKE
from tests.kernels.robust.world import PAIRS, SEATS, X_ROW, XY_ROW, D, World, make_world

X = np.array([0.4, -1.2])
WIDER = 1 + 3 / (np.array([8, 0, 4, 3]) + 3)  # of arms with so many rewards


@pytest.fixture
def world() -> World:
    return make_world()


def test_moments_are_wider_the_fewer_rewards_an_arm_has(world: World) -> None:
    out, noise, given, alone = np.empty((2, 4)), np.empty(4), np.empty((2, 4)), np.empty(4)
    plain(outlook.outlook)(world.books, X, out, noise)
    plain(predict.moments)(world.books, X, given)
    np.testing.assert_array_equal(out, [given[0], given[1] * WIDER])
    plain(relative_noise)(world.tables, world.sizes, D, alone)
    np.testing.assert_array_equal(noise, alone)


def test_many_contexts_are_widened_as_one(world: World) -> None:
    many = np.random.default_rng(0).uniform(1.0, 2.0, (3, 2, 4))
    wider = many.copy()
    plain(outlook.widen)(world.books, wider)
    np.testing.assert_array_equal(wider, np.stack([many[:, 0], many[:, 1] * WIDER], axis=1))


def test_rewards_that_faded_count_for_what_is_left_of_them(world: World) -> None:
    world.tables[3, 0, 0] = 0.5
    assert plain(outlook.widening)(world.tables, world.sizes, 3) == pytest.approx(1 + 3 / 3.5)


def test_an_arm_most_of_whose_rewards_are_far_may_be_a_stranger(world: World) -> None:
    """Shift and variance from every reward by itself; without the weight of doubt they are told apart."""
    world.shared.reward_square = 1e-3
    world.centres[:, D - 1, D] -= [20.0, 20.0, 30.0, 0.0]  # of the last arm rewards are on both sides
    many = np.zeros((2, 2, 4))
    plain(outlook.widen)(world.books, many)
    np.testing.assert_array_equal(many[0], many[1])
    np.testing.assert_array_equal(many[0, :, [1, 3]], 0.0)
    for arm in (0, 2):
        n = len(SEATS[arm])
        rows = world.data[arm][:n]
        e = rows[:, D] - rows[:, :D] @ world.centres[arm, :, D]
        assert e.mean() ** 2 > ALIKE * (e**2).mean()
        w = 1 - 0.5 ** (n - 1)
        assert many[0, 0, arm] == pytest.approx(w * e.mean())
        assert many[0, 1, arm] == pytest.approx((w * (1 - w) * e.mean() ** 2 + w * e.var() / n) ** 0.5)
        assert many[0, 0, arm] != pytest.approx(e.mean())
    compiled = np.zeros((2, 2, 4))
    outlook.widen(world.books, compiled)
    np.testing.assert_allclose(compiled, many, rtol=1e-12)


def test_few_far_rewards_are_noise(world: World) -> None:
    world.tables[0, COUNT, 0] += 100.0  # near rewards, as far as the test of VAR can tell
    world.tables[0, VAR, 0] = 0.0
    world.shared.reward_square = 1e-3
    many = np.zeros((1, 2, 4))
    plain(outlook.widen)(world.books, many)
    np.testing.assert_array_equal(many[0, :, 0], 0.0)


def test_a_stranger_without_noise_is_one_however_many_rewards_it_has(world: World) -> None:
    """After 64 equal rewards nothing is in doubt: no variance is added, but the mean is still that of the rewards."""
    T, arm = world.tables[3], 3
    T[:, 0] = 0.0
    T[[COUNT, SYY], 0] = 64.0, 64.0 * 25.0
    T[[X_ROW + PAIRS - 1, XY_ROW + D - 1], 0] = 64.0, 64.0 * 5.0
    T[VAR, 0] = 9.0
    world.centres[arm, :, D] = 0.0
    world.shared.reward_square = 1e-3
    out = np.ones((1, 2, 4))
    plain(outlook.widen)(world.books, out)
    assert out[0, 0, arm] == pytest.approx(6.0)
    assert out[0, 1, arm] == pytest.approx(1 + 3 / 67)
