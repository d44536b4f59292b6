"""Moves of the robust sampler: the weights a move draws from, and what it leaves behind, against dense algebra."""

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from polyarm.kernels._jit import plain
from polyarm.kernels.robust import moves, records
from polyarm.kernels.robust.component import COUNT, MEAN, MOVES, MOVES_KEPT, SYY, VAR, keep, recount
from polyarm.types import Array, IntArray
from tests.kernels.robust.test_component import assert_sums
from tests.kernels.robust.test_gating import members_of, predictive
from tests.kernels.robust.world import (
    CAPACITY,
    PAIRS,
    SEATS,
    WILD,
    D,
    Known,
    World,
    make_world,
    regression,
    rows_of,
    symmetric,
    write,
)
from tests.kernels.script import Script
from tests.statistics.mutants import mutant

GAMMA, TAU, A, B = 0.75, 0.55, 1.3, 0.45


@pytest.fixture
def world() -> World:
    return make_world()


class Arm:
    """An arm of the hand-made world with its seating, labels in another order than slots."""

    def __init__(self, world: World, arm: int) -> None:
        self.world, self.T, self.size = world, world.tables[arm], world.sizes[arm]
        self.label, self.slot = world.slots[arm]
        self.data = world.data[arm].copy()
        self.z = self.label[np.array(SEATS[arm], dtype=np.int64)]
        self.w0 = world.centres[arm, :, D + 1]

    @property
    def record(self) -> records.Arm:
        """The arm as kernels take it."""
        return records.Arm(self.T, self.label, self.slot, self.size, self.w0, self.data, self.z)

    def move(self, i: int, rng: Any, pick: int | None = None, new: bool = False) -> tuple[Array, Array]:
        """Move reward i; with `pick` to that choice.  Gives the log weights it drew from and the noises proposed."""
        caught: list[Array] = []
        proposed: list[float] = []

        def draw(weight: Array, gap: Array, size: int, rng: Any) -> int:
            with np.errstate(divide="ignore"):
                caught.append(np.log(weight[:size]) - gap[:size])
            return int(np.argmax(caught[0])) if pick is None else pick

        def suggest(half: float, a: float, b: float, wide: bool, rng: Any) -> float:
            assert (a, b) == (A, B)
            self.wide.append(wide)
            proposed.append([0.9, 0.35][len(proposed)])
            return proposed[-1]

        self.wide: list[bool] = []
        wrong = mutant(moves.move, {"draw_weighted": draw, "suggest_noise": suggest})
        wrong(self.record, self.world.arms, i, new, self.world.room, rng)
        return caught[0], np.array(proposed)

    def members(self, k: int, without: int = -1) -> IntArray:
        """Rows of the rewards in slot k."""
        return np.array(
            [i for i in range(len(self.data)) if self.z[i] == self.label[k] and i != without], dtype=np.int64
        )

    def component(self, rows: IntArray, s2: float) -> Known:
        X, y = self.data[rows, :D], self.data[rows, D]
        R = self.world.features.part_var
        return regression(float(len(y)), s2, float(y @ y), X.T @ X, X.T @ y, self.w0, R, np.zeros(D))

    def log_weight(self, i: int, rows: IntArray, s2: float) -> float:
        """n N(y; x'U, s2 + x'Vx) p(x) of a component with these rewards."""
        x, y = self.data[i, :D], self.data[i, D]
        known = self.component(rows, s2)
        spread = np.sqrt(s2 + x @ known.V @ x)
        density = float(stats.norm.logpdf(y, x @ known.U, spread))
        return float(np.log(len(rows))) + density + predictive(self.world, self.data[rows, :D], x)

    def log_weight_new(self, i: int, s2: float) -> float:
        """gamma/2 N(y; x'w0, s2 + x'Rx) p(x) p(s2) / h(s2)."""
        x, y, R = self.data[i, :D], self.data[i, D], self.world.features.part_var
        far = y - x @ self.w0
        density = stats.norm.logpdf(far, 0.0, np.sqrt(s2 + (x**2 * R).sum()))
        usual, wild = (stats.invgamma.logpdf(s2, shape, scale=B) for shape in (A, WILD[1]))
        prior = logsumexp([usual, wild], b=[1 - WILD[0], WILD[0]])
        near = stats.invgamma.logpdf(s2, A + 0.5, scale=B + 0.5 * far**2)
        h = logsumexp([usual, near], b=[0.5, 0.5])
        return float(np.log(GAMMA / 2) + density + predictive(self.world, np.empty((0, D)), x) + prior - h)


def assert_same_odds(found: Array, wanted: list[float]) -> None:
    np.testing.assert_allclose(found - found[0], np.array(wanted) - wanted[0], rtol=1e-9, atol=1e-9)


def assert_seated(arm: Arm) -> None:
    """Sums, U and V of every component are those of the rewards that carry its label, and slots invert labels."""
    for k in range(arm.size[0]):
        rows = arm.members(k)
        assert_sums(arm.T, k, arm.data[rows])
        known = arm.component(rows, arm.T[VAR, k])
        np.testing.assert_allclose(rows_of(arm.T, k, MEAN, D), known.U, rtol=1e-8)
        np.testing.assert_allclose(symmetric(rows_of(arm.T, k, MEAN + D, PAIRS)), known.V, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(arm.slot[arm.label], np.arange(CAPACITY))


@pytest.mark.parametrize("i", range(8))
def test_weights_of_a_move_in_company(world: World, i: int) -> None:
    arm = Arm(world, 0)
    own = int(arm.slot[arm.z[i]])
    found, _ = arm.move(i, Script(), pick=own)
    noises = [known.s2 for known in world.known[0]]
    wanted = [arm.log_weight(i, arm.members(k, without=i), noises[k]) for k in range(3)]
    assert_same_odds(found, [*wanted, arm.log_weight_new(i, 0.9), arm.log_weight_new(i, 0.35)])
    assert_seated(arm)


def lone(world: World) -> tuple[Arm, int]:
    """An arm in which the last reward sits alone, in the second of three slots."""
    arm = Arm(world, 2)
    arm.move(3, Script(), pick=2)
    assert arm.size[0] == 3
    assert_seated(arm)
    return arm, 3


def test_a_lone_reward_competes_with_its_own_noise_variance_and_one_proposal(world: World) -> None:
    arm, i = lone(world)
    own = int(arm.slot[arm.z[i]])
    s2 = arm.T[VAR].copy()
    assert s2[own] == 0.9
    arm.T[VAR, own] = s2[own] = 0.62
    found, proposed = arm.move(i, Script(), pick=own)
    np.testing.assert_array_equal(proposed, [0.9])  # only one: its own is the other
    wanted = [
        arm.log_weight_new(i, 0.62) if k == own else arm.log_weight(i, arm.members(k), float(s2[k])) for k in range(3)
    ]
    assert_same_odds(found, [*wanted, arm.log_weight_new(i, 0.9)])


def test_a_lone_reward_may_take_another_noise_variance(world: World) -> None:
    arm, i = lone(world)
    own = int(arm.slot[arm.z[i]])
    arm.move(i, Script(), pick=3)
    assert (int(arm.slot[arm.z[i]]), arm.size[0]) == (own, 3)
    assert arm.T[VAR, own] == 0.9
    assert_seated(arm)


def test_a_lone_reward_that_leaves_closes_its_slot(world: World) -> None:
    arm, i = lone(world)
    arm.move(i, Script(), pick=0)
    assert (int(arm.slot[arm.z[i]]), arm.size[0]) == (0, 2)
    assert_seated(arm)


@pytest.mark.parametrize(("pick", "s2"), [(3, 0.9), (4, 0.35)])
def test_a_reward_that_opens_a_slot_takes_the_noise_it_was_weighed_with(world: World, pick: int, s2: float) -> None:
    arm = Arm(world, 0)
    arm.move(2, Script(), pick=pick)
    assert arm.size[0] == 4
    assert int(arm.slot[arm.z[2]]) == 3
    assert arm.T[VAR, 3] == s2
    assert_seated(arm)


def test_a_reward_that_changes_company_is_counted_out_and_in(world: World) -> None:
    arm = Arm(world, 0)
    before = arm.T[MOVES, :3].copy()
    arm.move(5, Script(), pick=2)
    assert int(arm.slot[arm.z[5]]) == 2
    np.testing.assert_array_equal(arm.T[MOVES, :3] - before, [1, 0, 1])
    assert_seated(arm)


@pytest.mark.parametrize("pick", [0, 1, 2, 3])
def test_a_new_reward_has_no_seat_yet(world: World, pick: int) -> None:
    arm = Arm(world, 2)
    arm.data = np.vstack([arm.data, [0.3, -0.8, 1.0, 0.6]])
    arm.z = np.append(arm.z, 99)
    noises = [known.s2 for known in world.known[2]]
    wanted = [arm.log_weight(4, arm.members(k), noises[k]) for k in range(2)]
    wanted += [arm.log_weight_new(4, 0.9), arm.log_weight_new(4, 0.35)]
    found, _ = arm.move(4, Script(), pick=pick, new=True)
    assert_same_odds(found, wanted)
    assert int(arm.slot[arm.z[4]]) == min(pick, 2)
    assert arm.size[0] == (3 if pick >= 2 else 2)
    assert_seated(arm)


def test_an_own_component_that_one_reward_rules_is_solved_without_it(world: World) -> None:
    arm = Arm(world, 0)
    arm.data[0] = 1000.0, -700.0, 1.0, 1700.0
    for k in range(3):
        rows, s2 = arm.members(k), world.known[0][k].s2
        known = arm.component(rows, s2)
        write(arm.T, k, known)
    found, _ = arm.move(0, Script(), pick=0)
    wanted = arm.log_weight(0, arm.members(0, without=0), world.known[0][0].s2)
    new = arm.log_weight_new(0, 0.9)
    assert found[0] - found[3] == pytest.approx(wanted - new, rel=1e-6)
    assert_seated(arm)


def test_sums_are_computed_afresh_after_many_moves_or_a_giant(world: World) -> None:
    """What is kept stays in them: a small MOVES_KEPT makes every removal a fresh count."""
    for n_moves, rows in ((MOVES_KEPT + 1.0, (0, 1, 5)), (0.0, ())):
        arm = Arm(make_world(), 0)
        old = np.array([[0.5, -1.5, 1.0, 0.2]])
        plain(keep)(arm.T, 0, old, 0)
        plain(recount)(arm.T, 0, arm.data, arm.z, 8, int(arm.label[0]))
        arm.T[MOVES, 0] = n_moves
        if not rows:
            arm.data[6, D] = 1e9
            plain(recount)(arm.T, 0, arm.data, arm.z, 8, int(arm.label[0]))
            arm.T[SYY, 0] = 1e18  # digits of the others are gone
        label, arm.z[6] = int(arm.label[0]), int(arm.label[1])
        plain(moves.remove)(arm.record, 0, world.features.part_var, 6, label, world.room.solver)
        assert_sums(arm.T, 0, np.vstack([old, arm.data[[0, 1, 5]]]))
        assert arm.T[MOVES, 0] == 0


def test_a_variance_that_rounding_has_eaten_up_counts_as_none(world: World) -> None:
    arm, room = Arm(world, 0), world.room
    arm.T[MEAN + D : MEAN + D + PAIRS, 1] = 0.0
    arm.T[MEAN + D, 1] = -1e-3  # x'Vx below 0
    plain(moves.score)(arm.record, 0, world.features, 0.0, room)
    e = arm.data[0, D] - arm.data[0, :D] @ arm.T[MEAN : MEAN + D, 1]
    assert room.weight[1] == pytest.approx(arm.T[COUNT, 1] / np.sqrt(arm.T[VAR, 1]), rel=1e-15)
    assert room.gap[1] == pytest.approx(0.5 * e * e / arm.T[VAR, 1], rel=1e-14)


def test_weighted_draws() -> None:
    draw, gap = plain(moves.draw_weighted), np.array([1000.0, 1001.0, 999.0, 5000.0])
    p = np.array([1.0, 2.0, 3.0, 4.0]) * np.exp(-(gap - 999.0))
    edges = np.cumsum(p) / p.sum()
    for u, k in ((0.0, 0), (edges[0] - 1e-9, 0), (edges[0] + 1e-9, 1), (edges[1] + 1e-9, 2), (1 - 1e-12, 2)):
        assert draw(np.array([1.0, 2.0, 3.0, 4.0]), gap, 4, Script(uniforms=[u])) == k


def test_noise_is_suggested_by_the_prior_or_given_the_reward() -> None:
    suggest = plain(moves.suggest_noise)
    for wide, shape, scale in ((False, A, B), (True, A + 0.5, B + 0.8)):
        rng = Script(gammas=[2.0])
        assert suggest(0.8, A, B, wide, rng) == pytest.approx(scale / 2.0)
        assert rng.asked == [(shape,)]


def test_a_lone_reward_stands_for_the_proposal_it_looks_like(world: World) -> None:
    """The other proposal is from h2 with probability h1 / (h1 + h2), and the other way round."""
    arm, i = lone(world)
    assert arm.wide == [False, True]
    own = int(arm.slot[arm.z[i]])
    half = 0.5 * (arm.data[i, D] - arm.data[i, :D] @ arm.w0) ** 2
    h1, h2 = (stats.invgamma.pdf(0.9, A + t, scale=B + 2 * t * half) for t in (0.0, 0.5))
    assert plain(moves.wider)(0.9, half, B, world.prior) == pytest.approx(h2 / h1)
    for u, wide in ((h1 / (h1 + h2) - 1e-9, True), (h1 / (h1 + h2) + 1e-9, False)):
        arm.move(i, Script(uniforms=[u]), pick=own)
        assert arm.wide == [wide]


def test_moves_stop_where_no_slot_is_free(world: World) -> None:
    arm = Arm(world, 0)
    asked: list[int] = []

    def note(given: records.Arm, arms: Any, i: int, *rest: Any) -> None:
        asked.append(i)
        given.size[0] += 1

    make = mutant(moves.make_moves, {"move": note})
    rng = Script(uniforms=[0.0, 0.5, 0.99, 0.3])
    left = make(arm.record, world.arms, 10, world.room, rng)
    assert (asked, left) == ([0, 4, 7, 2], 6)  # from three components to seven: two proposals need two slots
    assert make(arm.record, world.arms, 0, world.room, rng) == 0
    assert arm.T[COUNT, 0] == 4
    assert members_of(world, 0, 0).shape == (4, D)
