"""Components of the robust model against dense algebra, in three features."""

from typing import Any

import numpy as np
import pytest

from polyarm.kernels._jit import plain
from polyarm.kernels.robust import component, solving
from polyarm.kernels.robust.component import COUNT, MEAN, MOVES, SYY, VAR
from polyarm.kernels.robust.records import Solver, solver_for
from polyarm.types import Array
from tests.kernels.robust.world import (
    CAPACITY,
    KEPT,
    LOWER,
    N_ROWS,
    PAIRS,
    SEATS,
    W_ROW,
    X_ROW,
    XY_ROW,
    D,
    Known,
    World,
    make_world,
    regression,
    rows_of,
    symmetric,
)


@pytest.fixture
def world() -> World:
    return make_world()


def solver() -> Solver:
    return plain(solver_for)(D)


def sums_of(T: Array, k: int) -> list[Array]:
    """Count, sum of squares, Sxx and Sxy as the table has them."""
    return [T[COUNT, k], T[SYY, k], symmetric(rows_of(T, k, X_ROW, PAIRS)), rows_of(T, k, XY_ROW, D)]


def sums(X: Array, y: Array) -> list[Any]:
    return [len(y), y @ y, X.T @ X, X.T @ y]


def assert_sums(T: Array, k: int, rows: Array) -> None:
    """The sums are those of these rewards."""
    X, y = rows[:, :D], rows[:, D]
    for found, wanted in zip(sums_of(T, k), sums(X, y), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


def assert_slopes(T: Array, k: int, known: Known) -> None:
    np.testing.assert_allclose(rows_of(T, k, MEAN, D), known.U, rtol=1e-10)
    np.testing.assert_allclose(symmetric(rows_of(T, k, MEAN + D, PAIRS)), known.V, rtol=1e-10, atol=1e-13)


def test_rows_do_not_overlap() -> None:
    """MEAN, V, Sxx, Sxy, w and what is kept stand one after the other and fill the column."""
    sizes = [4, D, PAIRS, PAIRS, D, D, 2 + PAIRS + D]
    starts = np.cumsum(sizes)
    assert [*starts[[0, 2, 3, 4, 5, 6]]] == [MEAN, X_ROW, XY_ROW, W_ROW, KEPT, N_ROWS]
    assert sorted([COUNT, VAR, SYY, MOVES]) == [0, 1, 2, 3]


def test_residuals_of_every_component(world: World) -> None:
    q, e = np.empty(8), np.empty(8)
    for r in range(3):
        plain(component.residuals)(world.tables[0], 3, world.data[0], r, q, e)
        x, y = world.data[0][r, :D], world.data[0][r, D]
        for k, known in enumerate(world.known[0]):
            assert q[k] == pytest.approx(x @ known.V @ x)
            assert e[k] == pytest.approx(y - x @ known.U)


def test_residuals_fill_every_lane(world: World) -> None:
    T = np.concatenate(
        [world.tables[0][:, :3], world.tables[2][:, :2], world.tables[3][:, :1], world.tables[0][:, :2]], 1
    )
    q, e = np.empty(8), np.empty(8)
    plain(component.residuals)(T, 7, world.data[0], 4, q, e)
    order = (*world.known[0], *world.known[2], *world.known[3], *world.known[0][:2])
    x, y = world.data[0][4, :D], world.data[0][4, D]
    np.testing.assert_allclose(q, [x @ known.V @ x for known in order])
    np.testing.assert_allclose(e, [y - x @ known.U for known in order])


def test_an_empty_component_has_its_prior(world: World) -> None:
    T, w0, R = world.tables[0], np.array([0.1, 0.2, 0.3]), world.features.part_var
    plain(component.reset)(T, 1, w0, R, 0.77)
    assert T[VAR, 1] == 0.77
    assert_slopes(T, 1, world.known[0][1]._replace(U=w0, V=np.diag(R)))
    np.testing.assert_array_equal(T[[COUNT, SYY, MOVES], 1], 0)
    np.testing.assert_array_equal(T[MEAN + D + PAIRS :, 1], 0)
    assert_slopes(T, 0, world.known[0][0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_reward_is_counted_in_and_out(world: World, sign: float) -> None:
    T, mine = world.tables[0], world.data[0][np.array(SEATS[0]) == 1]
    T[MOVES, 1] = 3.0
    plain(component.count_in)(T, 1, world.data[0], 2 if sign < 0 else 0, sign)
    assert_sums(T, 1, mine[1:] if sign < 0 else np.vstack([mine, world.data[0][0]]))
    assert T[MOVES, 1] == 4.0


def test_rewards_that_stay_for_good_are_kept_apart(world: World) -> None:
    T = world.tables[0]
    for r in (2, 4):
        plain(component.keep)(T, 1, world.data[0], r)
    X, y = world.data[0][[2, 4], :D], world.data[0][[2, 4], D]
    np.testing.assert_allclose(T[[KEPT, KEPT + 1], 1], np.array([2, y @ y]))
    np.testing.assert_allclose(symmetric(rows_of(T, 1, KEPT + 2, PAIRS)), X.T @ X)
    np.testing.assert_allclose(rows_of(T, 1, KEPT + 2 + PAIRS, D), X.T @ y)
    assert_sums(T, 1, world.data[0][[2, 4]])


def test_what_fades_is_kept(world: World) -> None:
    T, known = world.tables[0], world.known[0][2]
    T[MOVES, 2] = 9.0
    plain(component.fade)(T, 2, D, 0.3)
    for found, wanted in zip(sums_of(T, 2), (known.n, known.syy, known.Sxx, known.Sxy), strict=True):
        np.testing.assert_allclose(found, 0.3 * np.asarray(wanted, dtype=np.float64))
    np.testing.assert_allclose(T[[KEPT, KEPT + 1], 2], T[[COUNT, SYY], 2])
    np.testing.assert_array_equal(rows_of(T, 2, KEPT + 2, PAIRS + D), rows_of(T, 2, X_ROW, PAIRS + D))
    assert T[MOVES, 2] == 0
    assert T[VAR, 2] == known.s2


def test_fresh_sums_hold_what_is_kept_and_what_carries_the_label(world: World) -> None:
    """Kept rewards are no longer among the rows: a fresh count must not lose them."""
    T, old = world.tables[0], np.array([[0.5, -1.5, 1.0, 2.0], [1.5, 0.7, 1.0, -0.4]])
    for r in range(2):
        plain(component.keep)(T, 0, old, r)
    T[:MEAN, 0] = 99.0
    z = np.array(SEATS[0], dtype=np.int64) + 10
    plain(component.recount)(T, 0, world.data[0], z, 6, 10)
    assert_sums(T, 0, np.vstack([old, world.data[0][[0, 1, 5]]]))  # the seventh row, also of label 10, is beyond n
    assert T[MOVES, 0] == 0
    assert T[VAR, 0] == 99.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rank_one_changes_equal_a_fresh_solution(world: World, sign: float) -> None:
    T, known, space = world.tables[0], world.known[0][0], solver()
    r = 1 if sign < 0 else 4
    x, y = world.data[0][r, :D], world.data[0][r, D]
    Sxx, Sxy = known.Sxx + sign * np.outer(x, x), known.Sxy + sign * x * y
    w0, R = world.centres[0, :, D + 1], world.features.part_var
    wanted = regression(known.n + sign, known.s2, known.syy, Sxx, Sxy, w0, R, known.w)
    assert not plain(component.rank_one)(T, 0, world.data[0], r, sign, space.v)
    assert_slopes(T, 0, wanted)
    plain(component.count_in)(T, 0, world.data[0], r, sign)
    plain(solving.solve)(T, 0, w0, R, space)
    assert_slopes(T, 0, wanted)


def test_a_reward_that_holds_all_the_information_is_not_taken_out_by_rank_one(world: World) -> None:
    T, v = world.tables[3], np.empty(D)
    before = T.copy()
    data = np.array([[1e3, 0.0, 0.0, 5.0]])
    leverage = 1e6 * world.known[3][0].V[0, 0]
    for share, careless in ((1e-5, True), (1e-3, False)):
        T[:] = before
        T[VAR, 0] = leverage / (1 - share)  # s2 - x'Vx is this share of s2
        changed = T.copy()
        assert plain(component.rank_one)(T, 0, data, 0, -1.0, v) is careless
        assert np.array_equal(T, changed) is careless


def test_information_is_factorised(world: World) -> None:
    M, known = np.empty((D, D)), world.known[2][1]
    plain(solving.information)(world.tables[2], 1, world.features.part_var, M)
    factor = np.tril(M)
    np.testing.assert_allclose(factor @ factor.T, known.Sxx / known.s2 + np.diag(1 / world.features.part_var))


def test_squared_errors_around_the_drawn_slopes(world: World) -> None:
    for arm, seats in enumerate(SEATS):
        for k, known in enumerate(world.known[arm]):
            mine = world.data[arm][np.array(seats) == k]
            errors = mine[:, D] - mine[:, :D] @ known.w
            assert plain(component.squared_errors)(world.tables[arm], k, D) == pytest.approx(errors @ errors)


def test_kept_sums_are_counted_from_elsewhere(world: World) -> None:
    T, shift = world.tables[0], np.array([0.4, -1.3, 0.9])  # the last is the rewards'
    rows = world.data[0][[0, 3, 7]]
    for r in (0, 3, 7):
        plain(component.keep)(T, 2, world.data[0], r)
    moved = rows - np.array([*shift[:-1], 0.0, shift[-1]])
    plain(component.shift_rewards)(T, 2, shift)
    X, y = moved[:, :D], moved[:, D]
    np.testing.assert_allclose(T[[KEPT, KEPT + 1], 2], np.array([3, y @ y]))
    np.testing.assert_allclose(rows_of(T, 2, KEPT + 2, PAIRS), (X.T @ X)[LOWER], atol=1e-12)
    np.testing.assert_allclose(rows_of(T, 2, KEPT + 2 + PAIRS, D), X.T @ y, atol=1e-12)


@pytest.mark.parametrize("n_used", [1, 2, 3])
def test_components_are_solved_together_and_leave_the_other_slots_alone(world: World, n_used: int) -> None:
    T, R, w0 = world.tables[0], world.features.part_var, world.centres[0, :, D + 1]
    T[:, 4:] = np.nan  # slots that were never used
    before, expected = T.copy(), []
    for k in range(n_used):
        V = np.linalg.inv(world.known[0][k].Sxx / T[VAR, k] + np.diag(1 / R))
        expected.append(world.known[0][k]._replace(U=V @ (world.known[0][k].Sxy / T[VAR, k] + w0 / R), V=V))
    T[MEAN : MEAN + D + PAIRS, :n_used] = 99.0
    plain(solving.solve_all)(T, n_used, w0, R, solver())
    for k in range(n_used):
        assert_slopes(T, k, expected[k])
    np.testing.assert_array_equal(T[:, n_used:], before[:, n_used:])
    np.testing.assert_array_equal(T[:MEAN], before[:MEAN])
    np.testing.assert_array_equal(T[MEAN + D + PAIRS :], before[MEAN + D + PAIRS :])


@pytest.mark.parametrize("slot", [0, 2, 5])
def test_one_component_is_solved_among_the_others(world: World, slot: int) -> None:
    T, R, w0, known = world.tables[0], world.features.part_var, np.array([0.3, -0.2, 0.9]), world.known[0][2]
    T[:, slot] = T[:, 2]
    before = T.copy()
    plain(solving.solve)(T, slot, w0, R, solver())
    V = np.asarray(np.linalg.inv(known.Sxx / known.s2 + np.diag(1 / R)), dtype=np.float64)
    assert_slopes(T, slot, known._replace(U=V @ (known.Sxy / known.s2 + w0 / R), V=V))
    others = np.arange(T.shape[1]) != slot
    np.testing.assert_array_equal(T[:, others], before[:, others])


@pytest.mark.parametrize("dim", [20, 30])
def test_narrow_and_wide_components_are_solved_alike(dim: int) -> None:
    """Lanes where features are few, rows where they are many: the same posterior, by whichever way."""
    rng = np.random.default_rng(dim)
    T, space = np.zeros((plain(component.n_rows)(dim), CAPACITY)), plain(solver_for)(dim)
    data, R, w0 = rng.standard_normal((40, dim + 1)), rng.gamma(1.0, size=dim) + 0.1, rng.standard_normal(dim)
    for k in range(6):
        plain(component.reset)(T, k, w0, R, 0.5 + k)
        for r in range(k, 40, 6):
            plain(component.count_in)(T, k, data, r, 1.0)
    plain(solving.solve_all)(T, 6, w0, R, space)
    for k in range(6):
        X, y = data[k::6, :dim], data[k::6, dim]
        V = np.linalg.inv(X.T @ X / T[VAR, k] + np.diag(1 / R))
        np.testing.assert_allclose(T[MEAN : MEAN + dim, k], V @ (X.T @ y / T[VAR, k] + w0 / R), rtol=1e-8, atol=1e-10)
        packed = T[MEAN + dim : MEAN + dim + dim * (dim + 1) // 2, k]
        np.testing.assert_allclose(packed, V[np.tril_indices(dim)], rtol=1e-8, atol=1e-12)
