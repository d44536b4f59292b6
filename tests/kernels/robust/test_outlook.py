"""What the exploration rule sees: moments made wider by what one state does not say, and the noise of the arms."""

import numpy as np
import pytest

from polyarm.kernels._jit import plain
from polyarm.kernels.robust import outlook, predict
from polyarm.kernels.robust.noise import relative_noise
from tests.kernels.robust.world import D, World, make_world

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
    plain(outlook.widen)(world.tables, world.sizes, wider)
    np.testing.assert_array_equal(wider, np.stack([many[:, 0], many[:, 1] * WIDER], axis=1))


def test_rewards_that_faded_count_for_what_is_left_of_them(world: World) -> None:
    world.tables[3, 0, 0] = 0.5
    assert plain(outlook.widening)(world.tables, world.sizes, 3) == pytest.approx(1 + 3 / 3.5)
