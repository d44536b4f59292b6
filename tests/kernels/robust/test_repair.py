"""Numbers that failed are seen wherever they would be read, and nowhere else; an arm afresh from its rewards."""

import numpy as np
import pytest

from polyarm.kernels._jit import plain
from polyarm.kernels.mixture.records import ROWS
from polyarm.kernels.robust import repair
from polyarm.kernels.robust.component import COUNT, MEAN, SYY, VAR, sxx_row
from polyarm.kernels.robust.records import Books, Rewards
from tests.kernels.robust.world import CAPACITY, KEPT, SEATS, W_ROW, D, make_world, rows_of


def test_sums_are_counted_again_and_empty_components_close() -> None:
    world = make_world()
    T, size = world.tables[0].copy(), np.array([4, 8, 8])
    label = np.roll(np.arange(CAPACITY), 3)
    labels = np.stack([label, np.argsort(label)])
    z = label[np.array(SEATS[0])]
    T[:, 3] = T[:, 2]  # a component without rewards of its own, between what is kept
    T[KEPT, :] = 0.0
    T[KEPT, 1], T[KEPT + 1, 1] = 2.0, 9.0  # the second holds two rewards for good
    T[[COUNT, VAR, SYY], :] = np.nan
    centre = np.array([0.1, -0.2, 0.3])
    T[KEPT + 2 :, :] = 0.0
    plain(repair.recount_arm)(T, labels, size, Rewards(world.data[0], z), centre, 0.77)
    assert size[0] == 3
    assert size[ROWS] == 8
    places = labels[1][z]
    for k in range(3):
        mine = world.data[0][places == k]
        kept = (2.0, 9.0) if label[1] == labels[0, k] else (0.0, 0.0)
        assert T[COUNT, k] == len(mine) + kept[0]
        assert T[SYY, k] == pytest.approx(mine[:, D] @ mine[:, D] + kept[1])
        assert T[VAR, k] == 0.77
        np.testing.assert_array_equal(rows_of(T, k, W_ROW, D), centre)
    assert (labels[1][labels[0]] == np.arange(CAPACITY)).all()


def test_a_frozen_reward_stays_in_its_component() -> None:
    world = make_world()
    T, label = world.tables[0], np.roll(np.arange(CAPACITY), 3)
    z = label[np.array(SEATS[0])]
    before = T[KEPT:].copy()
    plain(repair.freeze)(T, np.argsort(label), Rewards(world.data[0], z), 3)
    row = world.data[0][3]
    changed = T[KEPT:] - before
    assert changed[0, 2] == 1.0
    assert changed[1, 2] == pytest.approx(row[D] ** 2)
    assert not changed[:, [0, 1, *range(3, CAPACITY)]].any()


BAD = [np.nan, np.inf, -np.inf]


def books() -> Books:
    sizes = np.array([[2, 0], [1, 0]])
    none = np.empty(0)
    return Books(
        np.full((2, 40, 4), 2.0),
        sizes,
        sizes,
        np.full((2, 3, 5), 2.0),
        np.full(9, 2.0),
        np.full((5, 3), 2.0),
        none,
        none,
        none,
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("bad", BAD)
def test_everything_that_the_arms_share_is_looked_at(bad: float) -> None:
    assert plain(repair.is_finite)(books())
    for which in ("centres", "shared", "features"):
        for at in np.ndindex(getattr(books(), which).shape):
            given = books()
            getattr(given, which)[at] = bad
            assert not plain(repair.is_finite)(given), (which, at)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("bad", BAD)
def test_slopes_and_noise_of_components_in_use_are_looked_at(bad: float) -> None:
    last = plain(sxx_row)(3)
    for arm, used in ((0, 2), (1, 1)):
        for row in range(40):
            for k in range(4):
                given = books()
                given.components[arm, row, k] = bad
                slope, noise = MEAN <= row < last, row == VAR and np.isnan(bad)
                assert plain(repair.is_finite)(given) == (not ((slope or noise) and k < used)), (row, k)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_noise_variance_of_nothing_is_seen() -> None:
    given = books()
    given.components[1, VAR, 0] = 0.0
    assert not plain(repair.is_finite)(given)


def test_only_the_arms_that_are_asked_for_are_looked_at() -> None:
    given = books()
    for arm in range(given.components.shape[0]):
        broken = books()
        broken.centres[arm, 0, 0] = np.nan
        for first in range(given.components.shape[0]):
            assert plain(repair.is_finite_in)(broken, first, first) == (arm != first)
            assert plain(repair.is_finite_in)(broken, 0, first) == (arm not in (0, first))
