"""The steps of an update of the robust model: draws of centres, slopes and noise, rewards taken in, the past faded."""

from typing import Any

import numpy as np
import pytest

from polyarm.errors import CONTEXT_LIMIT
from polyarm.kernels._jit import plain
from polyarm.kernels.mixture.records import K_USED, NEXT, ROWS
from polyarm.kernels.robust import centre as centres
from polyarm.kernels.robust import update
from polyarm.kernels.robust.component import COUNT, VAR, keep
from polyarm.kernels.robust.records import Rewards, arm_of, solver_for
from polyarm.kernels.robust.shared import least_noise
from polyarm.kernels.robust.units import REFUSED, RESERVOIR
from polyarm.kernels.robust.update import ADD, DONE, FAILED, MOVE_HERE, MOVE_THERE, UNITS, Reward
from polyarm.types import Array
from tests.kernels.robust.test_component import assert_slopes, assert_sums
from tests.kernels.robust.test_predict import dense_centre
from tests.kernels.robust.world import LABEL, SEATS, W_ROW, WILD, D, World, make_world, regression, rows_of
from tests.kernels.script import Script
from tests.statistics.mutants import mutant

NORMALS = [0.4, -1.1, 0.7]
ONES = np.ones(2)


@pytest.fixture
def world() -> World:
    return make_world()


def test_a_centre_is_drawn_from_its_posterior(world: World) -> None:
    centre = world.centres[0]
    plain(centres.find_centre)(world.tables[0], 3, centre, world.features, plain(solver_for)(D))
    mean, covariance = dense_centre(world, 0)
    plain(centres.draw_centre)(centre, np.empty(D), Script(normals=NORMALS))
    factor = np.linalg.cholesky(np.linalg.inv(covariance))
    np.testing.assert_allclose(centre[:, D + 1], mean + np.linalg.solve(factor.T, NORMALS))


def test_slopes_are_drawn_given_centre_and_noise(world: World) -> None:
    known, w0, R = world.known[0][1], np.array([0.2, -0.3, 0.5]), world.features.part_var
    plain(centres.draw_slopes)(world.tables[0], 1, w0, R, world.room.solver, Script(normals=NORMALS))
    information = known.Sxx / known.s2 + np.diag(1 / R)
    mean = np.linalg.solve(information, known.Sxy / known.s2 + w0 / R)
    wanted = mean + np.linalg.solve(np.linalg.cholesky(information).T, NORMALS)
    np.testing.assert_allclose(rows_of(world.tables[0], 1, W_ROW, D), wanted)


def test_noise_is_drawn_given_the_errors_around_the_new_slopes(world: World) -> None:
    """IG(a + n/2, b + errors/2), not below the least."""
    rng = Script(normals=NORMALS * 4, gammas=[2.0, 1e30, 0.5], uniforms=[0.0, 0.0, 1.0])
    plain(update.redraw_arm)(world.arms, 0, False, world.room.solver, rng)
    np.testing.assert_allclose(rng.asked, [[shape + n / 2] for shape, n in ((1.3, 4), (1.3, 2), (WILD[1], 2))])
    for k, gamma in ((0, 2.0), (2, 0.5)):
        mine = world.data[0][np.array(SEATS[0]) == k]
        errors = mine[:, D] - mine[:, :D] @ rows_of(world.tables[0], k, W_ROW, D)
        assert world.tables[0][VAR, k] == pytest.approx((0.45 + errors @ errors / 2) / gamma)
    assert world.tables[0][VAR, 1] == plain(least_noise)(world.shared)


@pytest.mark.parametrize("shared", [True, False])
def test_every_arm_is_brought_up_to_date(shared: bool) -> None:
    """U and V for the values of now; an arm without rewards, or any where arms have no centre, is at the common one."""
    world = make_world()
    world.prior.shared_centre = shared
    world.features.centre[:] = 0.9, 0.8, 0.7
    own = world.centres[:, :, D + 1].copy()
    plain(update.rebuild)(world.books)
    for arm, parts in enumerate(world.known):
        w0 = own[arm] if shared and parts else world.features.centre
        np.testing.assert_allclose(world.centres[arm, :, D + 1], w0)
        for k, known in enumerate(parts):
            sums = known.n, known.s2, known.syy, known.Sxx, known.Sxy
            assert_slopes(world.tables[arm], k, regression(*sums, w0, world.features.part_var, known.w))


@pytest.mark.parametrize(
    ("arm", "other", "moved", "refreshed"),
    [(0, 2, False, [0, 2]), (0, 0, False, [0]), (0, 1, False, [0]), (3, 2, False, [2, 3]), (0, 0, True, [0, 2, 3])],
)
def test_an_update_redraws_the_arms_that_moved(
    world: World, arm: int, other: int, moved: bool, refreshed: list[int]
) -> None:
    """New scales, drawn without slopes, refresh every arm that has rewards."""
    done: list[Any] = []
    replaced: dict[str, Any] = {
        "propose_scales": lambda *given: moved,
        "redraw_arm": lambda arms, i, deep, solver, rng: done.append(i),
        "draw_shared": lambda *given: done.append("shared"),
        "rebuild_posteriors": lambda *given: done.append("prepared"),
    }
    mutant(update.redraw_shared, replaced)(world.arms, arm, other, True, world.room, Script())
    assert done == [*refreshed, "shared", "prepared"]


@pytest.mark.parametrize(("other", "solved"), [(2, [0, 2]), (0, [0])])
@pytest.mark.parametrize("whole", [True, False])
def test_an_update_that_is_not_whole_finds_the_centres_of_the_arms_that_moved(
    world: World, other: int, solved: list[int], whole: bool
) -> None:
    """What the arms share waits, and so do draws of slopes and noise."""
    done: list[Any] = []
    replaced: dict[str, Any] = {
        "propose_scales": lambda *given: False,
        "redraw_arm": lambda arms, i, deep, solver, rng: done.append(-i),
        "draw_shared": lambda *given: done.append("shared"),
        "rebuild_posteriors": lambda *given: done.append("all"),
        "update_centre": lambda arms, i, solver: done.append(i),
    }
    world.shared.n_steps = 71.0
    mutant(update.redraw_shared, replaced)(world.arms, 0, other, whole, world.room, Script())
    redrawn = [-i for i in solved if world.sizes[i, 0] > 0]
    assert done == ([*redrawn, "shared", "all"] if whole else solved)


@pytest.mark.parametrize(("many", "n", "redrawn"), [(3, 71.0, [0, 2, 3]), (3, 63.0, [0]), (4, 71.0, [0])])
def test_with_many_features_every_arm_that_waited_is_redrawn(
    world: World, many: int, n: float, redrawn: list[int]
) -> None:
    """Arms that moved in the last round were not; before that every step is whole."""
    done: list[int] = []
    replaced: dict[str, Any] = {
        "MANY": many,
        "propose_scales": lambda *given: False,
        "redraw_arm": lambda arms, i, deep, solver, rng: done.append(i),
        "draw_shared": lambda *given: None,
        "rebuild_posteriors": lambda *given: None,
    }
    world.shared.n_steps = n
    mutant(update.redraw_shared, replaced)(world.arms, 0, 0, True, world.room, Script())
    assert done == redrawn


def test_a_step_is_whole_where_scales_are_drawn_without_slopes(world: World) -> None:
    """With four arms of three features every second step; with many features else one step in four."""
    is_whole = mutant(update.is_whole, {"MANY": 3, "is_measured": lambda *given: False})
    found = []
    for n in range(65, 78):
        world.shared.n_steps = float(n)
        assert plain(update.is_deep)(world.arms) == (n % 2 == 0)
        found.append(is_whole(world.arms))
    assert found == [n % 2 == 0 for n in range(65, 78)]
    rarely = mutant(update.is_whole, {"MANY": 3, "is_measured": lambda *given: False, "is_deep": lambda arms: False})
    for n in range(65, 78):
        world.shared.n_steps = float(n)
        assert rarely(world.arms) == (n % 4 == 0)


def test_beside_other_chains_what_arms_share_is_drawn_more_rarely(world: World) -> None:
    """Once in four steps of four chains, and a quarter as often without slopes, but for the first eight steps; late
    steps and units are as without other chains."""
    world.prior.thinning = 4.0
    is_whole = mutant(update.is_whole, {"is_measured": lambda *given: False})
    for n in range(1, 64):
        world.shared.n_steps = float(n)
        assert plain(update.is_deep)(world.arms) == (n < 8 or n % 4 == 0)
        assert plain(update.is_whole)(world.arms)
    for n in range(64, 100):
        world.shared.n_steps = float(n)
        assert plain(update.is_deep)(world.arms) == (n % 8 == 0)
        assert is_whole(world.arms) == (n % 4 == 0)
    for n in range(300, 340):
        settled(world, float(n))
        assert plain(update.period)(world.arms) == 8
        assert plain(update.is_deep)(world.arms) == (n % 16 == 0)
    world.sizes[0, ROWS] = 1
    assert plain(update.period)(world.arms) == 4


def settled(world: World, n: float) -> None:
    """The world after n steps, every arm with rewards enough that a step may do less."""
    world.shared.n_steps = world.shared.n_seen = n
    world.sizes[:, ROWS] = update.FEW


@pytest.mark.parametrize(
    ("n", "rows", "told", "late"),
    [
        (256.0, 16, {}, True),
        (255.0, 16, {}, False),
        (256.0, 15, {}, False),
        (1e6, 90, {"window": 40.0}, False),
        (1e6, 90, {"n_seen": 9e5}, False),
        (1e6, 90, {"n_seen": 0.0, "fixed_units": 1.0}, True),
    ],
)
def test_a_step_does_less_once_every_arm_is_known(
    world: World, n: float, rows: int, told: dict[str, float], late: bool
) -> None:
    """64 rewards an arm with four arms, at least 16 of each, and nothing forgotten."""
    world.shared.n_steps = world.shared.n_seen = n
    for name, value in told.items():
        setattr(world.shared if name == "n_seen" else world.prior, name, value)
    world.sizes[:, ROWS] = 99, 40, rows, 70
    assert plain(update.is_late)(world.arms, update.NO_ARM) == late
    assert plain(update.period)(world.arms) == (8 if late else 1)


@pytest.mark.parametrize(("features", "between"), [(3, 16), (18, 48)])
def test_late_steps_are_whole_once_in_eight_and_draw_scales_without_slopes_in_some_of_them(
    world: World, features: int, between: int
) -> None:
    found = []
    replaced = {"is_measured": lambda *given: False, "n_features": lambda arms: features}
    for n in range(300, 400):
        settled(world, float(n))
        deep = mutant(update.is_deep, replaced)(world.arms)
        assert deep == (n % between == 0)
        found.append(mutant(update.is_whole, replaced)(world.arms))
    assert found == [n % 8 == 0 for n in range(300, 400)]


@pytest.mark.parametrize(
    ("n", "pair", "redrawn"),
    [(264.0, (0, 2), [0, 2, 3]), (264.0, (0, 0), [0, 2, 3]), (264.0, (2, 2), [2]), (248.0, (0, 2), [0, 2])],
)
def test_late_every_arm_that_waited_is_redrawn(
    world: World, n: float, pair: tuple[int, int], redrawn: list[int]
) -> None:
    """Arms that moved since the last whole step were not; of a round over all arms the first one sees to that."""
    done: list[int] = []
    replaced: dict[str, Any] = {
        "propose_scales": lambda *given: False,
        "redraw_arm": lambda arms, i, deep, solver, rng: done.append(i),
        "draw_shared": lambda *given: None,
        "rebuild_posteriors": lambda *given: None,
    }
    settled(world, n)
    mutant(update.redraw_shared, replaced)(world.arms, *pair, True, world.room, Script())
    assert done == redrawn


@pytest.mark.parametrize(("rows", "redrawn"), [(1, [0, 2, 3]), (2, [0, 2])])
def test_the_first_reward_of_an_arm_that_comes_late_has_all_redrawn(
    world: World, rows: int, redrawn: list[int]
) -> None:
    """Steps were late until it came, whose rewards count for nothing while it has none."""
    done: list[int] = []
    replaced: dict[str, Any] = {
        "propose_scales": lambda *given: False,
        "redraw_arm": lambda arms, i, deep, solver, rng: done.append(i),
        "draw_shared": lambda *given: None,
        "rebuild_posteriors": lambda *given: None,
    }
    settled(world, 261.0)
    world.sizes[0, ROWS] = 0
    assert plain(update.is_late)(world.arms, update.NO_ARM)
    world.sizes[0, ROWS] = rows
    assert not plain(update.is_late)(world.arms, update.NO_ARM)
    mutant(update.redraw_shared, replaced)(world.arms, 0, 2, True, world.room, Script())
    assert done == redrawn


@pytest.mark.parametrize(("n", "moves"), [(300.0, [(0, 16), (2, 6)]), (200.0, [(0, 33), (2, 12)])])
def test_late_half_as_many_rewards_move(world: World, n: float, moves: list[tuple[int, int]]) -> None:
    settled(world, n)
    stages = Stages(world)
    stages.run(2, UNITS, (33, 12))
    assert [each for each in stages.done if each[0] in (0, 2)] == moves


def seated(world: World, arm: int) -> Rewards:
    """Rewards of an arm with room for more."""
    n = len(SEATS[arm])
    data, z = np.zeros((9, D + 1)), np.zeros(9, np.int64)
    data[:n], z[:n] = world.data[arm], LABEL[np.array(SEATS[arm], dtype=np.int64)]
    return Rewards(data, z)


def add(world: World, arm: int, rewards: Rewards, x: Any, y: float, **replaced: Any) -> None:
    """Add one reward; `move` is noted, not made."""
    given = (
        plain(arm_of)(world.books, arm, rewards),
        world.arms,
        Reward(arm, arm, x, y, *rewards, *rewards),
        world.room,
    )
    mutant(update.add_reward, replaced)(*given, Script(normals=NORMALS))


def test_a_reward_is_written_from_its_base_and_origin_and_seated(world: World) -> None:
    rewards = seated(world, 2)
    world.features.base[:2] = 0.5, -2.0
    moved: list[tuple[Any, ...]] = []
    add(world, 2, rewards, np.array([1.5, 3.0]), 4.0, move=lambda *given: moved.append(given))
    np.testing.assert_allclose(rewards.data[4], [1.0, 5.0, 1.0, 1.5])
    arm, _, i, new, *_ = moved[0]
    assert (i, new) == (4, True)
    assert np.shares_memory(arm.w0, world.centres[2])
    assert list(world.sizes[2]) == [2, 5, 5]


def test_a_reward_that_had_the_row_stays_put_for_good(world: World) -> None:
    rewards = Rewards(world.data[2].copy(), LABEL[np.array(SEATS[2])])
    world.sizes[2, NEXT] = 1
    kept: list[tuple[int, int]] = []
    replaced: dict[str, Any] = {"keep": lambda T, k, data, i: kept.append((k, i)), "move": lambda *given: None}
    add(world, 2, rewards, np.array([0.1, 0.2]), 4.0, **replaced)
    assert kept == [(SEATS[2][1], 1)]
    assert list(world.sizes[2]) == [2, 4, 2]


@pytest.mark.parametrize("shared", [True, False])
def test_an_arm_without_rewards_draws_its_centre_around_the_common_one(world: World, shared: bool) -> None:
    world.prior.shared_centre = shared
    before = world.centres[1, :, D + 1].copy()
    add(world, 1, seated(world, 1), np.ones(2), 1.0, move=lambda *given: None)
    drawn = world.features.centre + np.sqrt(world.features.arm_var) * NORMALS
    np.testing.assert_allclose(world.centres[1, :, D + 1], drawn if shared else before)


class Stages:
    """An update whose stages are noted, not made; moves are left over as told."""

    def __init__(self, world: World, left: tuple[int, ...] = (), off: float = 0.0, finite: bool = True) -> None:
        self.world, self.left, self.off, self.finite, self.done = world, list(left), off, finite, list[Any]()
        self.looked_at = list[tuple[Any, ...]]()

    def update_units(self, arms: Any, *given: Any) -> bool:
        self.done.append("units")
        self.world.shared.off_centre = self.off
        return bool(arms.shared.n_steps < RESERVOIR)

    def moves_of(self, arm: Any, arms: Any, n_moves: int, *rest: Any) -> int:
        at = next(a for a in range(4) if np.shares_memory(arm.w0, self.world.centres[a]))
        self.done.append((at, n_moves))
        return self.left.pop(0) if self.left else 0

    def is_finite(self, *arms: Any) -> bool:
        self.looked_at.append(arms)
        return self.finite

    def run(self, other: int, stage: int, n_moves: tuple[int, int], x: Array = ONES) -> tuple[int, int]:
        replaced = {
            "update_units": self.update_units,
            "rebuild_posteriors": lambda *g: self.done.append("rebuilt"),
            "add_reward": lambda *g: self.done.append("added"),
            "moves_of": self.moves_of,
            "redraw_shared": lambda arms, arm, other, *g: self.done.append(("shared", arm, other)),
            "is_finite": lambda books: self.is_finite("all"),
            "is_finite_in": lambda books, arm, other: self.is_finite(arm, other),
            "MANY": D,
        }
        reward = Reward(0, other, x, 1.0, *seated(self.world, 0), *seated(self.world, other))
        stage, left = mutant(update.update, replaced)(self.world.books, reward, stage, n_moves, Script())
        return stage, left


@pytest.mark.parametrize(("steps", "off"), [(10.0, 0.0), (64.0, 0.0), (10.0, 1.0)])
def test_units_come_first_and_may_ask_for_another_origin(world: World, steps: float, off: float) -> None:
    world.shared.n_steps = steps
    stages = Stages(world, off=off)
    assert stages.run(2, UNITS, (32, 12)) == ((ADD, 32) if off else (DONE, 0))
    rest = ["added", (0, 32), (2, 12), ("shared", 0, 2)]
    assert stages.done == (["units"] if off else ["units", *["rebuilt"] * (steps < 64), *rest])


@pytest.mark.parametrize(("rows", "components"), [(9, 3), (8, 7)])
def test_without_a_row_or_two_slots_nothing_is_done(world: World, rows: int, components: int) -> None:
    """Slots for both proposals of a reward's component."""
    world.sizes[0, [K_USED, NEXT]] = components, rows
    stages = Stages(world)
    assert stages.run(2, UNITS, (7, 5)) == (UNITS, 7)
    assert stages.done == []
    world.sizes[0, [K_USED, NEXT]] = 6, 8
    assert stages.run(2, UNITS, (7, 5))[0] == DONE


@pytest.mark.parametrize("entry", [np.nan, np.inf, -np.inf, 1e150, 1.001 * CONTEXT_LIMIT])
def test_a_context_that_is_none_is_refused_before_anything_is_done(world: World, entry: float) -> None:
    stages = Stages(world)
    assert stages.run(2, UNITS, (7, 5), np.array([0.1, entry]))[0] == REFUSED
    assert stages.done == []
    assert stages.run(2, UNITS, (7, 5), np.array([0.0, CONTEXT_LIMIT]))[0] == DONE


@pytest.mark.parametrize(("steps", "stage"), [(10.0, UNITS), (66.0, UNITS), (71.0, ADD), (71.0, MOVE_HERE)])
def test_every_arm_is_looked_at_where_every_arm_may_have_changed(world: World, steps: float, stage: int) -> None:
    """In a whole step, and after a stop at which rewards may have been counted from elsewhere."""
    stages = Stages(world)
    for n, expected in ((steps, ("all",)), (71.0, (0, 2) if stage == UNITS else ("all",))):
        world.shared.n_steps = n
        stages.run(2, stage, (7, 5))
        assert stages.looked_at.pop() == expected


@pytest.mark.parametrize(
    ("stage", "other", "done"),
    [
        (ADD, 2, ["added", (0, 7), (2, 5), ("shared", 0, 2)]),
        (ADD, 0, ["added", (0, 7), ("shared", 0, 0)]),
        (MOVE_HERE, 2, [(0, 7), (2, 5), ("shared", 0, 2)]),
        (MOVE_THERE, 2, [(2, 7), ("shared", 0, 2)]),
    ],
)
def test_an_update_goes_on_from_the_stage_it_reached(world: World, stage: int, other: int, done: list[Any]) -> None:
    for finite in (True, False):
        stages = Stages(world, finite=finite)
        assert stages.run(other, stage, (7, 5)) == (DONE if finite else FAILED, 0)
        assert stages.done == done


def test_an_update_stops_where_moves_are_left(world: World) -> None:
    assert Stages(world, left=(3,)).run(2, UNITS, (7, 5)) == (MOVE_HERE, 3)
    assert Stages(world, left=(0, 4)).run(2, UNITS, (7, 5)) == (MOVE_THERE, 4)


def test_rows_and_sums_are_counted_from_elsewhere(world: World) -> None:
    shift = np.array([0.4, -1.3, 0.9])
    old = np.array([[0.5, -1.5, 1.0, 0.2]])
    plain(keep)(world.tables[0], 1, old, 0)
    data, z = np.vstack([world.data[0], np.full((2, D + 1), 7.0)]), np.append(LABEL[np.array(SEATS[0])], [0, 0])
    plain(update.count_from)(world.tables[0], LABEL, 3, Rewards(data, z), 8, shift)
    move = np.array([0.4, -1.3, 0.0, 0.9])
    np.testing.assert_allclose(data[:8], world.data[0] - move)
    np.testing.assert_array_equal(data[8:], 7.0)  # rows that nobody uses
    for k in range(3):
        mine = world.data[0][np.array(SEATS[0]) == k] - move
        assert_sums(world.tables[0], k, np.vstack([mine, old - move]) if k == 1 else mine)


def faded_rows(world: World) -> list[Any]:
    return [world.features.spread, world.features.square_sum, world.features.n_nonzero]


def test_forgetting_fades_everything_and_drops_what_is_nearly_gone(world: World) -> None:
    world.shared.n_seen = 20.0
    for row in faded_rows(world):
        row[:] = 8.0
    counts = [[known.n for known in parts] for parts in world.known]
    plain(update.forget)(world.books, 0.2)
    assert world.shared.n_seen == 4.0
    np.testing.assert_allclose(faded_rows(world), 1.6)
    assert counts[0] == [4, 2, 2]
    assert list(world.sizes[:, 0]) == [1, 0, 0, 1]  # of 4, 2, 2; none; 2, 2; and 3 rewards a fifth each
    np.testing.assert_allclose([world.tables[0, COUNT, 0], world.tables[3, COUNT, 0]], [0.8, 0.6])
    np.testing.assert_array_equal(world.sizes[:, [ROWS, NEXT]], 0)
    known = world.known[0][0]
    faded = (0.2 * known.n, known.s2, 0.2 * known.syy, 0.2 * known.Sxx, 0.2 * known.Sxy)
    w0 = world.centres[0, :, D + 1]
    assert_slopes(world.tables[0], 0, regression(*faded, w0, world.features.part_var, known.w))


def test_moves_are_limited_by_the_rewards_that_can_move(world: World) -> None:
    asked: list[int] = []

    def note(arm: Any, arms: Any, n_moves: int, *rest: Any) -> int:
        asked.append(n_moves)
        return 0

    moves = mutant(update.moves_of, {"make_moves": note})
    for arm, wanted, made in ((0, 100, 32), (0, 5, 5), (2, 100, 16)):
        moves(plain(arm_of)(world.books, arm, seated(world, arm)), world.arms, wanted, world.room, Script())
        assert asked[-1] == made


def test_slopes_are_redrawn_around_the_redrawn_centre(world: World) -> None:
    normals = [0.4, -1.1, 0.7, 0.9, 0.2, -0.5, 1.3, -0.8, 0.6, -0.3, 1.7, -1.9]
    T, R = world.tables[2], world.features.part_var
    mean, covariance = dense_centre(world, 2)
    plain(update.redraw_arm)(world.arms, 2, False, world.room.solver, Script(normals=normals, uniforms=[0.0] * 9))
    w0 = mean + np.linalg.solve(np.linalg.cholesky(np.linalg.inv(covariance)).T, normals[:3])
    np.testing.assert_allclose(world.centres[2, :, D + 1], w0)
    for k, known in enumerate(world.known[2]):
        H = known.Sxx / known.s2 + np.diag(1 / R)
        U = np.linalg.solve(H, known.Sxy / known.s2 + w0 / R)
        drawn = U + np.linalg.solve(np.linalg.cholesky(H).T, normals[3 + 3 * k : 6 + 3 * k])
        np.testing.assert_allclose(rows_of(T, k, W_ROW, D), drawn)


def test_a_deep_redraw_solves_afresh_and_proposes_every_noise_around_the_new_centre(world: World) -> None:
    asked: list[tuple[int, list[float]]] = []

    def propose(T: Any, k: int, w0: Any, arms: Any, solver: Any, rng: Any) -> None:
        asked.append((k, w0.tolist()))

    T = world.tables[2]
    mean, covariance = dense_centre(world, 2)
    T[4:10, :2] = 99.0  # U and V are out of date
    redraw = mutant(update.redraw_arm, {"propose_noise": propose})
    redraw(world.arms, 2, True, world.room.solver, Script(normals=NORMALS, uniforms=[0.0] * 9))
    w0 = mean + np.linalg.solve(np.linalg.cholesky(np.linalg.inv(covariance)).T, NORMALS)
    assert [k for k, _ in asked] == [0, 1]
    for _, at in asked:
        np.testing.assert_allclose(at, w0)


@pytest.mark.parametrize(
    ("steps", "n_arms", "deep"),
    [(15, 20, True), (63, 20, True), (64, 20, False), (70, 20, True), (75, 20, False), (66, 4, True), (67, 4, False)],
)
def test_scales_are_drawn_without_slopes_early_and_then_on_a_share_of_the_steps(
    world: World, steps: int, n_arms: int, deep: bool
) -> None:
    """One in (arms x features / 6) steps, at most every second."""
    asked: list[tuple[int, int]] = []
    replaced: dict[str, Any] = {
        "propose_scales": lambda arms, first, last, *given: asked.append((first, last)),
        "draw_shared": lambda *given: None,
        "rebuild_posteriors": lambda *given: None,
    }
    world.shared.n_steps = steps
    arms = world.arms._replace(sizes=np.zeros((n_arms, 3), np.int64))
    mutant(update.redraw_shared, replaced)(arms, 0, 1, True, world.room, Script())
    assert asked == [(0, 5)] * deep
    asked.clear()
    world.prior.learned = 0.0
    mutant(update.redraw_shared, replaced)(arms, 0, 1, True, world.room, Script())
    assert not asked


def test_an_arm_is_redrawn_deeply_where_its_scales_were(world: World) -> None:
    for steps, deep in ((15.0, True), (67.0, False)):
        found: list[bool] = []
        replaced: dict[str, Any] = {
            "propose_scales": lambda *given: False,
            "redraw_arm": lambda arms, i, deep, *given, found=found: found.append(deep),
            "draw_shared": lambda *given: None,
            "rebuild_posteriors": lambda *given: None,
        }
        world.shared.n_steps = steps
        mutant(update.redraw_shared, replaced)(world.arms, 0, 2, True, world.room, Script())
        assert found == [deep, deep]
