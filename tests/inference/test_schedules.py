"""How much an engine works after a reward: the calls of its kernels are listened to, and compared with the schedule."""

from typing import Any

import numpy as np
import pytest

from polyarm.inference import Budget, GibbsEngine, HierarchicalEngine, KindsEngine, RobustEngine, Sweeps
from polyarm.inference import franchise as franchise_engine
from polyarm.inference import gibbs as gibbs_engine
from polyarm.inference.gibbs import REDRAW_EVERY, grown
from polyarm.inference.kinds import LOOKS
from polyarm.inference.slots import doubled_slots
from polyarm.kernels import sticks
from polyarm.kernels.franchise import moves as franchise
from polyarm.kernels.mixture import gibbs
from polyarm.kernels.mixture.records import NEXT, ROWS
from polyarm.kernels.robust import update as robust
from polyarm.models import HierarchicalMixture, LinearMixture, NormalInverseGamma, RobustMixture
from tests.contracts.states import fed, rewards
from tests.inference.learning import Listen


def process(concentration: float = 0.5) -> LinearMixture:
    return LinearMixture(NormalInverseGamma(2, 0.0, 1.0, 2.0, 0.01), concentration)


@pytest.mark.parametrize("memory", [None, 6])
def test_an_arm_moves_by_the_number_of_rewards_that_it_ever_had(listen: Listen, memory: int | None) -> None:
    budget = Budget(3, warmup_rewards=12)
    learn = listen(gibbs, "learn")
    data = rewards(60, 2, 2, seed=0)
    fed(GibbsEngine([process()] * 2, budget, memory=memory), data, np.random.default_rng(0))
    seen = [0, 0]
    for ((_, arm, x, y, n_moves, _), _), (context, played, reward) in zip(learn, data, strict=True):
        seen[arm] += 1
        assert (arm, y, n_moves) == (played, reward, budget.moves_at(seen[arm]))
        np.testing.assert_array_equal(x, context)
    assert budget.moves_at(4) == 27


def test_moves_that_found_no_room_are_made_when_there_is_some(listen: Listen) -> None:
    """Many components: a kernel that stopped for want of a slot goes on with exactly what was left."""
    learn, more = listen(gibbs, "learn"), listen(gibbs, "random_moves")
    engine = GibbsEngine([process(1e9)] * 2, Budget(20, warmup_rewards=0))
    state = fed(engine, rewards(150, 2, 2, seed=0), np.random.default_rng(0))
    assert state.tables.shape[2] > 32
    owed = [left for _, left in learn if left > 0]
    assert len(owed) > 0
    begun = [arguments[2] for arguments, _ in more]
    went_on = [left for _, left in more if left > 0]
    assert sorted(begun) == sorted([*owed, *went_on])


def test_splits_are_proposed_as_often_as_their_cost_allows(listen: Listen) -> None:
    """With probability min(1, moves / n), n the rewards that can move; never without proposals to make."""
    calls = listen(gibbs_engine, "split_merge")
    engine = GibbsEngine([process()] * 1, Budget(4, split_merge=3, warmup_rewards=0), memory=16)
    rng, data = np.random.default_rng(0), rewards(416, 2, 1, seed=0)
    state = fed(engine, data[:4], rng)
    assert len(calls) == 4
    assert {arguments[2] for arguments, _ in calls} == {3}
    state = fed(engine, data[4:16], rng, state)
    calls.clear()
    fed(engine, data[16:], rng, state)
    assert len(calls) == pytest.approx(100, abs=4.5 * np.sqrt(400 * 0.25 * 0.75))
    calls.clear()
    for rule in (Budget(4, split_merge=0), Budget(0, split_merge=3, warmup_rewards=0)):
        fed(GibbsEngine([process()], rule), data[:30], rng)
    assert calls == []


@pytest.mark.parametrize(("tolerance", "sweeps"), [(0.0, 3), (1e9, 1)])
def test_sweeps_end_when_the_joint_density_settles(listen: Listen, tolerance: float, sweeps: int) -> None:
    swept, split = listen(gibbs, "sweep"), listen(gibbs_engine, "split_merge")
    fed(GibbsEngine([process()], Sweeps(3, tolerance, 2)), rewards(12, 2, 1, seed=0), np.random.default_rng(0))
    assert [arguments[3] for arguments, _ in swept] == [n for n in range(1, 13) for _ in range(sweeps)]
    assert [arguments[2] for arguments, _ in split] == [2] * (12 * sweeps)


def test_sweeps_compare_with_the_density_before_each() -> None:
    """They end at the first change below the tolerance, relative to the density before that sweep."""
    engine = GibbsEngine([process()], Sweeps(9, 0.1))
    for joint, expected in (
        ([-100.0, -80.0, -70.0, -64.0, -1.0], 3),  # by 20 %, 12.5 % and 8.6 %
        ([-100.0, -109.0, -1.0], 1),
        ([-100.0, -111.0, -101.0, -1.0], 2),  # 11 % of the first, 9.0 % of the second
        ([10.0, 8.0, 7.3, 1.0], 2),
        ([-100.0, -90.0, -80.0, -73.0, -1.0], 3),  # a change of just a tenth is not below it
    ):
        told = iter(joint)
        object.__setattr__(engine, "_log_joint", lambda state, arm, told=told: next(told))
        engine._sweep_until_settled(engine.init(), 0, Sweeps(9, 0.1), np.random.default_rng(0))
        assert len(joint) - len(list(told)) == expected + 1, joint  # one density before all sweeps, and one after each


def test_the_franchise_moves_ten_times_per_reward_at_most(listen: Listen) -> None:
    moved, tables = listen(franchise, "move_rewards"), listen(franchise, "move_tables")
    engine = HierarchicalEngine(HierarchicalMixture(NormalInverseGamma(2)), 2, 35, 2)
    fed(engine, rewards(30, 2, 2, seed=0), np.random.default_rng(0))
    begun = [arguments[1] for arguments, _ in moved]
    assert begun == [min(35, 10 * n) for n in range(1, 31)]
    assert [arguments[1] for arguments, _ in tables] == [2] * 30  # n is below 35
    tables.clear()
    for moves, table_moves in ((0, 2), (5, 0)):
        idle = HierarchicalEngine(HierarchicalMixture(NormalInverseGamma(2)), 2, moves, table_moves)
        fed(idle, rewards(30, 2, 2, seed=0), np.random.default_rng(0))
    assert tables == []


def test_tables_move_as_often_as_their_cost_allows(listen: Listen) -> None:
    """With probability min(1, moves / n)."""
    tables = listen(franchise, "move_tables")
    engine = HierarchicalEngine(HierarchicalMixture(NormalInverseGamma(2)), 2, 5, 1)
    fed(engine, rewards(300, 2, 2, seed=0), np.random.default_rng(0))
    p = np.minimum(1.0, 5 / np.arange(1, 301))
    assert len(tables) == pytest.approx(p.sum(), abs=4.5 * np.sqrt((p * (1 - p)).sum()))


def test_room_does_not_matter_to_the_franchise() -> None:
    """Moves that stop for want of room go on as if there had been room all along."""
    model = HierarchicalMixture(NormalInverseGamma(2, 0.0, 1.0, 2.0, 0.01), 1e9, 0.1, 1e9, 0.1)
    engine, data = HierarchicalEngine(model, 2, 30, 3), rewards(40, 2, 2, seed=0)
    wide = engine.init()
    for _ in range(2):
        wide = wide._replace(
            dishes=grown(wide.dishes),
            labels=doubled_slots(wide.labels),
            menu=franchise_engine.doubled(wide.menu),
            dish=franchise_engine.doubled(wide.dish),
            guests=franchise_engine.doubled(wide.guests),
        )
    one, same = (fed(engine, data, np.random.default_rng(1), state) for state in (engine.init(), wide))
    assert one.size[0] > 16
    for mine, theirs in zip(engine.seating(one), engine.seating(same), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    x = np.array([0.8, -0.4])
    np.testing.assert_array_equal(engine.expected_means(one, x), engine.expected_means(same, x))


@pytest.mark.parametrize("learned", ["learn_concentration", "learn_shared_concentration"])
def test_concentrations_are_drawn_at_first_and_then_now_and_then(listen: Listen, learned: str) -> None:
    calls = listen(franchise_engine, "redraw_concentration")
    options: dict[str, Any] = {learned: (2.0, 3.0)}
    engine = HierarchicalEngine(HierarchicalMixture(NormalInverseGamma(2), 0.5, 0.1, 0.7), 2, 4, 1, **options)
    state, drawn, rng = engine.init(), [], np.random.default_rng(0)
    for n, (x, arm, y) in enumerate(rewards(65, 2, 2, seed=0), 1):
        before = len(calls)
        state = engine.update(state, x, arm, y, rng)
        if len(calls) > before:
            drawn.append(n)
            counts, rule, prior, _ = calls[-1][0]
            assert prior == (2.0, 3.0)
            if learned == "learn_concentration":
                assert sum(int(c.sum()) for c in counts) == n
                assert len(counts) == 2
            else:
                assert sum(int(c.sum()) for c in counts) == (state.guests > 0).sum()
                assert len(counts) == 1
            assert rule[1] == (0.1 if learned == "learn_concentration" else 0.0)
    assert drawn == [*range(1, REDRAW_EVERY), 20, 40, 60]
    changed = state.rules != np.array([0.5, 0.1, 0.7, 0.0])
    assert changed.tolist() == [learned == "learn_concentration", False, learned != "learn_concentration", False]


@pytest.mark.parametrize("n_arms", [1, 2, 3])
def test_another_arm_moves_in_turn(listen: Listen, n_arms: int) -> None:
    calls = listen(robust, "update")
    engine = RobustEngine(RobustMixture(n_arms, 2), 7, 5)
    data = rewards(24, 2, n_arms, seed=0)
    fed(engine, data, np.random.default_rng(0))
    begun = [(arguments, result) for arguments, result in calls if arguments[2] == robust.UNITS]
    first = [arguments for arguments, (stage, _) in begun if stage != robust.UNITS]  # UNITS: room was made first
    assert len(first) == len(data)
    for n, ((x, arm, y), (_, reward, _, n_moves, _)) in enumerate(zip(data, first, strict=True)):
        a, b, context, value, *_ = reward
        other = n % n_arms
        other = other if other != arm else (other + 1) % n_arms
        assert (a, b, value, n_moves) == (arm, other, y, (7, 5))
        assert context.tolist() == x.tolist()


def test_sticks_are_visited_twice_while_an_arm_is_young_and_another_arms_in_turn(listen: Listen) -> None:
    visits, redrawn, recount = listen(sticks, "visits"), listen(sticks, "redraw_shared"), listen(sticks, "recount")
    engine, rng = KindsEngine(RobustEngine(RobustMixture(3, 2), 4, 2), moves=9), np.random.default_rng(0)
    state = engine.init()
    for t in range(6):
        state = engine.update(state, rng.standard_normal(2), t % 3, float(t == 4), rng)
    for calls in (visits, redrawn, recount):
        calls.clear()
    for n in range(7, 140):
        arm = 0 if n < 110 else n % 3
        state = engine.update(state, rng.standard_normal(2), arm, float(rng.random() < 0.2), rng)
        rows, turn = int(state.sticks.sizes[arm, sticks.ROWS]), n % 3
        expected = [(arm, 9, 2 if rows <= LOOKS else 1)] + [(turn, 4, 1)] * (turn != arm)
        assert [arguments[2:5] for arguments, _ in visits] == expected, n
        assert [arguments[1:3] for arguments, _ in redrawn] == [(arm, turn)]
        assert len(recount) == (rows >= LOOKS and rows & (rows - 1) == 0)
        for calls in (visits, redrawn, recount):
            calls.clear()


def test_a_hyperparameter_is_drawn_at_every_reward_at_first(listen: Listen) -> None:
    calls = listen(gibbs_engine, "redraw")
    engine = GibbsEngine([process()] * 2, Budget(2), learn_concentration=(2.0, 3.0))
    state, drawn, rng = engine.init(), [], np.random.default_rng(0)
    for n, (x, arm, y) in enumerate(rewards(65, 2, 2, seed=0), 1):
        before = len(calls)
        state = engine.update(state, x, arm, y, rng)
        if len(calls) > before:
            drawn.append(n)
    assert drawn == [*range(1, REDRAW_EVERY), 20, 40, 60]
    arguments = calls[-1][0]
    assert arguments[3].tolist() == [2.0, 3.0, 1.0, 1.0, 1.0, 1.0]
    assert arguments[4:6] == (True, False)


def test_only_an_absorbing_engine_keeps_a_root_for_every_component() -> None:
    for options, places in (({}, 1), ({"memory": 5}, 16), ({"half_life": 9.0}, 16)):
        state: Any = GibbsEngine([process()] * 2, **options).init()
        assert state.roots.shape == (2, places, 3, 3)
        assert [len(rows) for rows in state.data] == [5 if "memory" in options else 16] * 2
        assert [len(seats) for seats in state.seats] == [len(rows) for rows in state.data]
        assert state.data[0].shape[1] == 4
    wide: Any = GibbsEngine([process()] * 2, memory=40).init()
    assert len(wide.data[0]) == 16
    assert (NEXT, ROWS) == (2, 1)
