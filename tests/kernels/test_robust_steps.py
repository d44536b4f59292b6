"""The steps of an update of the robust model: draws of centres, slopes and noise, rewards taken in, the past faded."""

from typing import Any

import numpy as np
import pytest

from polyarm.kernels import robust
from polyarm.kernels._jit import plain
from polyarm.kernels.gibbs import NEXT, ROWS
from polyarm.kernels.robust_component import COUNT, VAR, keep
from polyarm.kernels.robust_evidence import Arms, scratch
from polyarm.kernels.robust_means import find_centre
from polyarm.kernels.robust_scales import (
    ARM_VAR,
    BASE,
    CENTRE,
    NOISE,
    NONZERO,
    OFF,
    ORIGIN,
    PART_VAR,
    SEEN,
    SHARED,
    SPREAD,
    STEPS,
    SUM,
    least_noise,
)
from tests.kernels.robust_world import CAPACITY, SEATS, W_ROW, WILD, D, World, make_world, regression, rows_of
from tests.kernels.script import Script
from tests.kernels.test_robust_component import assert_slopes, assert_sums
from tests.kernels.test_robust_means import dense_centre
from tests.statistics.mutants import mutant

NORMALS = [0.4, -1.1, 0.7]


@pytest.fixture
def world() -> World:
    return make_world()


def labelled(world: World) -> Any:
    """Labels and places of every arm, not in order."""
    label = np.roll(np.arange(CAPACITY), 2)
    return np.array([[label, np.argsort(label)]] * len(SEATS))


def test_a_centre_is_drawn_from_its_posterior(world: World) -> None:
    centre = world.centres[0]
    plain(find_centre)(world.tables[0], 3, centre, world.columns)
    mean, covariance = dense_centre(world, 0)
    plain(robust.draw_centre)(centre, np.empty(D), Script(normals=NORMALS))
    factor = np.linalg.cholesky(np.linalg.inv(covariance))
    np.testing.assert_allclose(centre[:, D + 1], mean + np.linalg.solve(factor.T, NORMALS))


def test_slopes_are_drawn_given_centre_and_noise(world: World) -> None:
    known, w0, R = world.known[0][1], np.array([0.2, -0.3, 0.5]), world.columns[PART_VAR]
    plain(robust.draw_slopes)(world.tables[0], 1, w0, R, np.empty((D, D)), np.empty(D), Script(normals=NORMALS))
    information = known.Sxx / known.s2 + np.diag(1 / R)
    mean = np.linalg.solve(information, known.Sxy / known.s2 + w0 / R)
    wanted = mean + np.linalg.solve(np.linalg.cholesky(information).T, NORMALS)
    np.testing.assert_allclose(rows_of(world.tables[0], 1, W_ROW, D), wanted)


def test_noise_is_drawn_given_the_errors_around_the_new_slopes(world: World) -> None:
    """IG(a + n/2, b + errors/2), not below the least."""
    rng = Script(normals=NORMALS * 4, gammas=[2.0, 1e30, 0.5], uniforms=[0.0, 0.0, 1.0])
    arms = Arms(*world.shared)
    plain(robust.redraw_arm)(arms, 0, False, plain(scratch)(arms), rng)
    np.testing.assert_allclose(rng.asked, [[shape + n / 2] for shape, n in ((1.3, 4), (1.3, 2), (WILD[1], 2))])
    for k, gamma in ((0, 2.0), (2, 0.5)):
        mine = world.data[0][np.array(SEATS[0]) == k]
        errors = mine[:, D] - mine[:, :D] @ rows_of(world.tables[0], k, W_ROW, D)
        assert world.tables[0][VAR, k] == pytest.approx((0.45 + errors @ errors / 2) / gamma)
    assert world.tables[0][VAR, 1] == plain(least_noise)(world.hyper)


@pytest.mark.parametrize("shared", [True, False])
def test_every_arm_is_brought_up_to_date(shared: bool) -> None:
    """U and V for the values of now; an arm without rewards, or any where arms have no centre, is at the common one."""
    world = make_world()
    world.law[SHARED] = shared
    world.columns[CENTRE] = 0.9, 0.8, 0.7
    own = world.centres[:, :, D + 1].copy()
    plain(robust.rebuild_posteriors)(*world.shared)
    for arm, parts in enumerate(world.known):
        w0 = own[arm] if shared and parts else world.columns[CENTRE]
        np.testing.assert_allclose(world.centres[arm, :, D + 1], w0)
        for k, known in enumerate(parts):
            sums = known.n, known.s2, known.syy, known.Sxx, known.Sxy
            assert_slopes(world.tables[arm], k, regression(*sums, w0, world.columns[PART_VAR], known.w))


@pytest.mark.parametrize(
    ("arm", "other", "moved", "refreshed"),
    [(0, 2, False, [0, 2]), (0, 0, False, [0]), (0, 1, False, [0]), (3, 2, False, [2, 3]), (0, 0, True, [0, 2, 3])],
)
def test_an_update_refreshes_the_arms_that_moved(
    world: World, arm: int, other: int, moved: bool, refreshed: list[int]
) -> None:
    """New scales, drawn without slopes, refresh every arm that has rewards."""
    done: list[Any] = []
    replaced: dict[str, Any] = {
        "scratch": lambda arms: None,
        "propose_scales": lambda *given: moved,
        "redraw_arm": lambda arms, i, deep, room, rng: done.append(i),
        "draw_shared": lambda *given: done.append("shared"),
        "rebuild_posteriors": lambda *given: done.append("prepared"),
    }
    assert mutant(robust.finish, replaced)(*world.shared, arm, other, Script())
    assert done == [*refreshed, "shared", "prepared"]


def take(world: World, arm: int, data: Any, z: Any, x: Any, y: float, known: bool = True, **replaced: Any) -> bool:
    """Take in one reward; moves are noted, not made."""
    labels = labelled(world)
    given = (world.tables, labels, world.sizes, world.centres, world.hyper, world.columns, world.law, data, z, arm)
    return bool(mutant(robust.take_in, replaced)(*given, np.zeros(64), x, y, known, Script(normals=NORMALS)))


def test_a_reward_is_written_from_its_base_and_origin_and_seated(world: World) -> None:
    data, z = np.zeros((8, D + 1)), np.zeros(8, np.int64)
    data[:4], z[:4] = world.data[2], labelled(world)[2, 0][np.array(SEATS[2])]
    world.columns[BASE, :2] = 0.5, -2.0
    moved: list[tuple[Any, ...]] = []
    assert take(world, 2, data, z, np.array([1.5, 3.0]), 4.0, move=lambda *given: moved.append(given))
    np.testing.assert_allclose(data[4], [1.0, 5.0, 1.0, 1.5])
    assert (moved[0][12], moved[0][-1]) == (4, True)
    np.testing.assert_allclose(moved[0][6:9], [world.hyper[5], world.hyper[11], world.hyper[NOISE]])
    assert list(world.sizes[2]) == [2, 5, 5]


def test_a_reward_that_had_the_row_stays_put_for_good(world: World) -> None:
    labels = labelled(world)[2, 0]
    data, z = world.data[2].copy(), labels[np.array(SEATS[2])]
    world.sizes[2, NEXT] = 1
    kept: list[tuple[int, int]] = []
    replaced: dict[str, Any] = {"keep": lambda T, k, data, i: kept.append((k, i)), "move": lambda *given: None}
    assert take(world, 2, data, z, np.array([0.1, 0.2]), 4.0, **replaced)
    assert kept == [(SEATS[2][1], 1)]
    assert list(world.sizes[2]) == [2, 4, 2]


@pytest.mark.parametrize("shared", [True, False])
def test_an_arm_without_rewards_draws_its_centre_around_the_common_one(world: World, shared: bool) -> None:
    world.law[SHARED] = shared
    before = world.centres[1, :, D + 1].copy()
    assert take(world, 1, np.zeros((8, D + 1)), np.zeros(8, np.int64), np.ones(2), 1.0, move=lambda *given: None)
    drawn = world.columns[CENTRE] + np.sqrt(world.columns[ARM_VAR]) * NORMALS
    np.testing.assert_allclose(world.centres[1, :, D + 1], drawn if shared else before)


@pytest.mark.parametrize(("steps", "off"), [(10.0, 0.0), (64.0, 0.0), (10.0, 1.0)])
def test_units_come_first_and_may_ask_for_another_origin(world: World, steps: float, off: float) -> None:
    done: list[str] = []

    def update_units(*given: Any) -> None:
        done.append("units")
        world.hyper[OFF] = off

    world.hyper[STEPS] = steps
    data, z = np.zeros((8, D + 1)), np.zeros(8, np.int64)
    replaced = {
        "update_units": update_units,
        "rebuild_posteriors": lambda *g: done.append("prepared"),
        "move": lambda *g: done.append("moved"),
    }
    assert take(world, 1, data, z, np.ones(2), 1.0, known=False, **replaced) is (off == 0.0)
    assert done == (["units"] if off else ["units", *["prepared"] * (steps < 64), "moved"])
    assert world.sizes[1, ROWS] == (0 if off else 1)


def test_rows_and_sums_are_counted_from_elsewhere(world: World) -> None:
    label, shift = labelled(world)[0, 0], np.array([0.4, -1.3, 0.9])
    old = np.array([[0.5, -1.5, 1.0, 0.2]])
    plain(keep)(world.tables[0], 1, old, 0)
    data, z = np.vstack([world.data[0], np.full((2, D + 1), 7.0)]), np.append(label[np.array(SEATS[0])], [0, 0])
    plain(robust.count_from)(world.tables[0], label, 3, data, z, 8, shift)
    move = np.array([0.4, -1.3, 0.0, 0.9])
    np.testing.assert_allclose(data[:8], world.data[0] - move)
    np.testing.assert_array_equal(data[8:], 7.0)  # rows that nobody uses
    for k in range(3):
        mine = world.data[0][np.array(SEATS[0]) == k] - move
        assert_sums(world.tables[0], k, np.vstack([mine, old - move]) if k == 1 else mine)


def test_forgetting_fades_everything_and_drops_what_is_nearly_gone(world: World) -> None:
    labels = labelled(world)
    world.hyper[SEEN] = 20.0
    world.columns[[SPREAD, SUM, NONZERO]] = 8.0
    counts = [[known.n for known in parts] for parts in world.known]
    given = (world.tables, labels, world.sizes, world.centres, world.hyper, world.columns, world.law)
    plain(robust.forget)(*given, 0.2)
    assert world.hyper[SEEN] == 4.0
    np.testing.assert_allclose(world.columns[[SPREAD, SUM, NONZERO]], 1.6)
    assert counts[0] == [4, 2, 2]
    assert list(world.sizes[:, 0]) == [1, 0, 0, 1]  # of 4, 2, 2; none; 2, 2; and 3 rewards a fifth each
    np.testing.assert_allclose([world.tables[0, COUNT, 0], world.tables[3, COUNT, 0]], [0.8, 0.6])
    np.testing.assert_array_equal(world.sizes[:, [ROWS, NEXT]], 0)
    known = world.known[0][0]
    faded = (0.2 * known.n, known.s2, 0.2 * known.syy, 0.2 * known.Sxx, 0.2 * known.Sxy)
    w0 = world.centres[0, :, D + 1]
    assert_slopes(world.tables[0], 0, regression(*faded, w0, world.columns[PART_VAR], known.w))


def test_moves_are_limited_by_the_rewards_that_can_move(world: World) -> None:
    asked: list[Any] = []

    def note(*given: Any) -> int:
        asked.append(given)
        return 0

    moves = mutant(robust.moves_of, {"make_moves": note})
    labels = labelled(world)
    given = (world.tables, labels, world.sizes, world.centres, world.hyper, world.columns, world.law)
    z = np.zeros(8, np.int64)
    for arm, wanted, made in ((0, 100, 32), (0, 5, 5), (2, 100, 16)):
        moves(*given, world.data[arm], z, arm, wanted, Script())
        assert asked[-1][12] == made
        assert np.shares_memory(asked[-1][4], world.centres[arm])
        np.testing.assert_allclose(asked[-1][6:9], [world.hyper[5], world.hyper[11], world.hyper[NOISE]])
    assert world.hyper[ORIGIN] == 2.5
