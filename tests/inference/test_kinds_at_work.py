"""The engine of every kind of reward at work: what fades when, what is learnt anew, and who is told what."""

import math
from typing import Any

import numpy as np
import pytest

from polyarm.inference import KindsEngine, RobustEngine
from polyarm.inference import amounts as amounts_engine
from polyarm.inference import kinds as kinds_engine
from polyarm.inference import links as links_engine
from polyarm.inference.amounts import AmountModel
from polyarm.inference.kinds_found import CONSTANT, MIXTURE, UNKNOWN, Found
from polyarm.inference.links import LinkModels, Reward
from polyarm.inference.migration import forget_sums
from polyarm.kernels import sticks, tally
from polyarm.kernels.amounts import ON, STATUS
from polyarm.kernels.links import MARKS
from polyarm.kernels.robust import update as robust
from polyarm.kernels.sticks import Sticks
from polyarm.models import LogisticSticks, RobustMixture
from polyarm.models.objectives import ProbabilityAbove
from polyarm.policies import make_policy
from tests.inference.learning import Listen, engine

X = np.array([0.8])


@pytest.mark.parametrize("memory", [None, 12])
@pytest.mark.parametrize("kind", ["continuous", "clicks", "purchases", "counts", "durations"])
def test_the_past_fades_once_in_every_part(listen: Listen, kind: str, memory: int | None) -> None:
    """Eight times in a half-life: tally, links, amounts, sticks and the rest, each where it is in use."""
    heard = {
        "tally": listen(tally, "fade"),
        "links": listen(links_engine, "forget_sums"),
        "amounts": listen(amounts_engine, "forget_sums"),
        "sticks": listen(kinds_engine, "forget_sums"),
        "rest": listen(robust, "forget"),
    }
    kinds, rng = engine(half_life=16.0, memory=memory), np.random.default_rng(0)
    state = kinds.init()
    for n in range(1, 61):
        smooth = float(np.exp(rng.standard_normal()))
        y = {
            "continuous": np.log(smooth),
            "clicks": float(rng.random() < 0.3),
            "purchases": smooth if n % 2 else 0.0,
            "counts": float(rng.poisson(9.0)),
            "durations": smooth,
        }[kind]
        for calls in heard.values():
            calls.clear()
        before, state = state.values, kinds.update(state, rng.standard_normal(1), n % 2, y, rng)
        with_kinds, on = len(state.values) > 0, state.amounts.model.level[STATUS] == ON
        if before.tolist() != state.values.tolist():
            continue  # what is learnt anew has not faded yet
        alone = not with_kinds and state.rest.n_rewards % 2 == 0  # then it counts its own steps
        due = {
            "tally": n % 2 == 0,
            "links": n % 2 == 0,
            "amounts": n % 2 == 0 and on,
            "sticks": n % 2 == 0 and with_kinds,
            "rest": alone or (n % 2 == 0 and with_kinds and state.rest_is == MIXTURE),
        }
        for name, calls in heard.items():
            assert len(calls) == due[name], (n, name)
            assert {arguments[-1] for arguments, _ in calls} <= {0.5 ** (2 / 16)}
    assert with_kinds == (kind in ("clicks", "purchases"))
    assert on == (kind in ("purchases", "durations"))


def test_forgetting_leaves_a_share_for_good() -> None:
    """Of sums of any shape; what is left can move no more."""
    rng = np.random.default_rng(0)
    parts: list[Any] = [rng.standard_normal((2, 3)) for _ in Sticks._fields]
    sticks = Sticks(*parts)
    sums, fits = sticks.sums.copy(), sticks.fits.copy()
    forget_sums(sticks, 0.25)
    np.testing.assert_allclose(sticks.sums, 0.25 * sums, rtol=1e-12)
    np.testing.assert_array_equal(sticks.kept, sticks.sums)
    np.testing.assert_array_equal(sticks.fits, fits)
    assert not sticks.sizes.any()


def rounds(calls: list[tuple[Any, Any]]) -> list[tuple[int, int]]:
    """Arms whose rewards moved though none came in, and how often."""
    moved = [arguments for arguments, _ in calls if arguments[2] == robust.MOVE_HERE]
    return [(reward.arm, n_moves[0]) for _, reward, _, n_moves, _ in moved if reward.other == reward.arm]


def test_other_kinds_are_learnt_with_less_work_where_rewards_are_many(listen: Listen) -> None:
    calls = listen(robust, "update")
    for n, work in ((64, (8, 4)), (65, (4, 0))):
        kinds, rng = engine(), np.random.default_rng(0)
        rewards = [Reward(k % 2, rng.standard_normal(1), float(k + rng.random())) for k in range(n)]
        zeros = [Reward(k % 2, X, 0.0) for k in range(3)]
        calls.clear()
        rest = kinds._with_rest_of(kinds.init(), [*rewards, *zeros], Found((0.0,), MIXTURE, 0.0), rng).rest
        assert rest.n_rewards == n  # what is of a kind is none of the rest's
        assert {arguments[3] for arguments, _ in calls if arguments[2] == robust.UNITS} == {work}
        assert [arm for arm, n_moves in rounds(calls) if n_moves == 8] == [0, 1]  # one more round
    for rest_is in (UNKNOWN, CONSTANT):
        assert kinds._with_rest_of(kinds.init(), rewards, Found((0.0,), rest_is, 0.0), rng).rest.n_rewards == 0
    calls.clear()
    assert kinds._with_rest_of(kinds.init(), zeros, Found((0.0,), MIXTURE, 0.0), rng).rest.n_rewards == 0
    assert calls == []


def test_rewards_of_all_arms_are_told_in_turn() -> None:
    """Of arms with other numbers of rewards, each spread evenly over the time that all took."""
    kinds, rng = engine(3), np.random.default_rng(0)
    arms = [0] * 6 + [1] * 3 + [2]
    state = kinds.init()
    for n, arm in enumerate(arms):
        state = kinds.update(state, rng.standard_normal(1), arm, float(n) + 0.37 * rng.random(), rng)
    told = kinds._kept(state)
    assert [reward.arm for reward in told] == [0, 1, 0, 0, 1, 2, 0, 0, 1, 0]
    assert [int(reward.value) for reward in told] == [0, 6, 1, 2, 7, 9, 3, 4, 8, 5]


def test_values_seen_are_told_to_the_last_bit_however_far_they_were_shifted() -> None:
    kinds, rng = engine(), np.random.default_rng(0)
    state = kinds.init()
    for n in range(30):
        value = 1e6 + 0.1 * float(rng.integers(900))
        state = kinds.update(state, rng.standard_normal(1), n % 2, value, rng)
    assert state.rest.shared.origin != 0.0
    assert len(state.values) == 0
    held = set(state.tally[: int(state.seen[tally.USED]), tally.VALUE])
    told = {reward.value for reward in kinds._kept(state)}
    assert len(told & held) == len(held)


def bought(n: int, seed: int = 0) -> list[Reward]:
    """Nothing, or a whole amount."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 1))
    amounts = np.ceil(8 * np.exp(0.6 * x[:, 0] + 0.5 * rng.standard_normal(n)))
    values = np.where(rng.random(n) < 0.4, 0.0, amounts)
    return [Reward(k % 2, row, float(y)) for k, (row, y) in enumerate(zip(x, values, strict=True))]


def test_models_are_judged_by_what_they_said_before_the_reward(listen: Listen) -> None:
    """Links by the probability of the reward's cell under all else, amounts by the mean of the rest; both are told
    how many rewards and amounts there have been."""
    judged, paid_for = listen(LinkModels, "judge"), listen(AmountModel, "judge")
    learnt, earned = listen(LinkModels, "learnt"), listen(AmountModel, "learnt")
    kinds, rng, rewards = engine(), np.random.default_rng(0), bought(70)
    state, together = kinds.init(), 0
    for n, (arm, x, y) in enumerate(rewards, 1):
        for calls in (judged, paid_for, learnt, earned):
            calls.clear()
        on, amounts_on = links_engine.is_on(state.links), amounts_engine.is_on(state.amounts)
        together += on and amounts_on and len(state.values) > 0
        if on:
            law: Any = kinds._own_predictive(state, x, arm)
            cell = float(law.cdf(y + 0.5) - law.cdf(y - 0.5))
        is_kind = bool((state.values == y).any())
        mean = float(kinds.rest.moments(state.rest, x)[0, arm])
        before, state = state, kinds.update(state, x, arm, y, rng)
        assert len(judged) == on
        assert len(paid_for) == (amounts_on and not is_kind)
        for calls in (judged, paid_for):
            for arguments, _ in calls:
                assert arguments[2] == Reward(arm, x, y)
        if on:
            assert judged[0][0][3] == pytest.approx(cell, rel=1e-6, abs=1e-12)
        if paid_for:
            assert paid_for[0][0][3] == pytest.approx(mean, rel=1e-12)
        ((_, _, reward, count, many, kept), _) = learnt[0]
        told = {each.value for each in rewards[:n]}
        assert (reward.value, count, many) == (y, n, len(told) > 3)
        assert sorted(each.value for each in kept()) == sorted(each.value for each in rewards[:n])
        if earned and before.values.tolist() == state.values.tolist():
            ((_, _, reward, count, values, kept), _) = earned[0]
            amounts_so_far = sorted(each.value for each in rewards[:n] if each.value not in state.values)
            assert (reward.value, count) == (y, len(amounts_so_far))
            assert values is state.values
            assert sorted(each.value for each in kept()) == amounts_so_far
    assert together > 20


def test_all_models_at_once_are_one_distribution() -> None:
    kinds, rng = engine(), np.random.default_rng(0)
    state = kinds.init()
    for arm, x, y in bought(120):
        state = kinds.update(state, x, arm, y, rng)
    assert state.links.weights[1 + MARKS] == 0.0  # too many values for marks
    state.links.weights[:] = 0.6, 0.4, 0.0
    state.amounts.weights[:] = state.amounts.density_weights[:] = 0.4, 0.6
    mean, sd = kinds.moments(state, X)
    draws = kinds.draw_means(state, X, 20_000, rng)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * sd.max() / math.sqrt(20_000))
    assert (draws.std(axis=0) <= 1.02 * sd).all()  # where rewards are equal, moments are wider than draws
    assert (draws.std(axis=0) >= 0.9 * sd).all()
    np.testing.assert_allclose(kinds.moments_many(state, np.stack([X, -X]))[0], [mean, sd])
    for arm in range(2):
        law: Any = kinds.predictive(state, X, arm)
        assert law.mean() == pytest.approx(mean[arm], rel=1e-3)
        above = kinds.draw_objectives(state, X, ProbabilityAbove(5.5), 4000, rng)[:, arm].mean()
        assert above == pytest.approx(1 - float(law.cdf(5.5)), abs=0.02)


def test_sticks_begin_in_the_middle_of_their_prior() -> None:
    prior = LogisticSticks(3, 2, arm_shape=(1.1, 1.2), arm_scale=(1.3, 1.4), wide=(1.5, 1.6), most=(1.7, 1.8))
    rest = RobustEngine(RobustMixture(3, 2), 8, 4)
    kinds = KindsEngine(rest, prior)
    assert kinds._hyperprior.tolist() == [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8]
    columns = np.arange(18.0).reshape(6, 3)
    made = kinds._sticks(2, columns)
    np.testing.assert_allclose(made.shared[:, 1], [[1.3 / 1.1, 1.3 / 1.1, 1.4 / 1.2]] * 2)
    assert made.guess[:, 1].tolist() == [[1.0] * 3] * 2
    for zero in (made.shared[:, 0], made.guess[:, 0], made.sums, made.kept, made.fits, made.sizes):
        assert not zero.any()
    assert made.columns is columns
    assert made.sums is not made.kept
    for memory, rows in ((None, 16), (5, 5), (40, 16)):
        least = KindsEngine(RobustEngine(RobustMixture(3, 2), memory=memory))
        assert [part.shape for part in least._no_rewards(2)] == [(rows, 2 + 3 + 4)] * 3
        assert [part.shape for part in least._no_rewards(0)] == [(0, 5)] * 3
    for one, moves in ((kinds._chains.alone, (8, 4)), (kinds._quick.alone, (4, 0))):
        assert (one.half_life, one.moves, one.other_arm_moves) == (None, *moves)


@pytest.mark.parametrize("kind", ["continuous", "clicks", "purchases"])
def test_another_round_moves_every_arm(listen: Listen, kind: str) -> None:
    """Rewards of the rest where there is one, sticks where there are kinds."""
    updates, visits = listen(robust, "update"), listen(sticks, "visits")
    kinds, rng = engine(3), np.random.default_rng(0)
    state = kinds.init()
    for n in range(30):
        smooth = float(np.exp(rng.standard_normal()))
        y = {"continuous": smooth, "clicks": float(n % 3 == 0), "purchases": smooth if n % 2 else 0.0}[kind]
        state = kinds.update(state, rng.standard_normal(1), n % 3, y, rng)
    for calls in (updates, visits):
        calls.clear()
    kinds.refresh(state, rng)
    rest = kind != "clicks"
    assert rounds(updates) == [(arm, 8) for arm in range(3) if rest]
    assert len(updates) == (3 if rest else 0)
    wanted = [] if kind == "continuous" else [(arm, 32, 1) for arm in range(3)]
    assert [arguments[2:5] for arguments, _ in visits] == wanted


def test_a_cell_has_its_probability_where_the_rest_is_one_value() -> None:
    """Three values that come again and again and a fourth: counts beside sticks, and no mixture at all."""
    kinds, rng = engine(), np.random.default_rng(0)
    state = kinds.init()
    for n in range(60):
        y = 7.0 if n in (20, 41) else float(n % 3)
        state = kinds.update(state, rng.standard_normal(1), n % 2, y, rng)
    assert (state.rest_is, state.constant) == (CONSTANT, 7.0)
    assert sorted(state.values) == [0.0, 1.0, 2.0]
    assert links_engine.is_on(state.links)
    for arm in range(2):
        law: Any = kinds._own_predictive(state, X, arm)
        for y in (0.0, 1.0, 2.0, 3.0, 7.0):
            found = kinds._probability(state, Reward(arm, X, y))
            assert found == pytest.approx(law.probability(y), rel=1e-9)
        total = sum(kinds._probability(state, Reward(arm, X, y)) for y in (0.0, 1.0, 2.0, 7.0))
        assert total == pytest.approx(1.0)


def test_amounts_end_with_the_kind_that_they_were_beside() -> None:
    """Nine zeros of sixty rewards are a kind, and of sixty-one they are none."""
    kinds, rng = engine(), np.random.default_rng(0)
    state = kinds.init()
    for n in range(1, 64):
        y = 0.0 if n <= 18 and n % 2 else float(np.exp(0.3 * rng.standard_normal()))
        state = kinds.update(state, rng.standard_normal(1), n % 2, y, rng)
        assert state.values.tolist() == ([0.0] if 7 <= n <= 60 else []) or n < 7
        if n > 7:
            amounts_so_far = max(n - 9, n // 2)
            assert amounts_engine.is_on(state.amounts) == (amounts_so_far >= 8 and n <= 60), n
    assert state.amounts.weights.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("size", [1e-50, 1e-74, 1e-76, 1e-100, 1e-157, 1e-300])
@pytest.mark.parametrize("value", [None, 1.0, 3.0])
def test_contexts_next_to_nothing_leave_numbers_whatever_comes_then(size: float, value: float | None) -> None:
    """Amounts, clicks and purchases; a column whose mean square is below 1e-80 says nothing."""
    engine, rng = KindsEngine(RobustEngine(RobustMixture(2, 2))), np.random.default_rng(0)
    state = engine.init()
    for t in range(60):
        x = rng.standard_normal(2) * (size if t < 40 else 1e7)
        amount = float(rng.exponential()) if value != 1.0 else 1.0
        state = engine.update(state, x, t % 2, amount if value is None or rng.random() < 0.4 else 0.0, rng)
        assert np.isfinite(engine.moments(state, x)).all()
    state.require_sound()


@pytest.mark.parametrize("memory", [{}, {"memory": 8}, {"half_life": 50.0}])
@pytest.mark.parametrize("size", [1e-12, 1e-30, 1e-39, 1e-42, 1e-74])
def test_columns_that_jump_between_two_measures_are_measured_at_once(size: float, memory: dict[str, float]) -> None:
    """Three columns, continuous rewards; their next measure after the jump would come 211 steps later."""
    policy: Any = make_policy("nonparametric", 3, 3, **memory)
    rng = np.random.default_rng(1)
    state = policy.init()
    for t in range(420):
        x = rng.standard_normal(3) * (size if t < 300 else 1.0)
        arm = policy.choose(state, x, rng).arm
        state = policy.update(state, x, arm, float(rng.standard_normal() + 3 * x[arm] * (t >= 300)), rng)
        if t > 300:
            assert state.rest.features.unit[0] < 1e8
    state.require_sound()
    moments = policy.engine.moments(state, np.array([1.0, 0.0, 0.0]))
    assert np.isfinite(moments).all()
    assert moments[0, 0] > 1.0


@pytest.mark.parametrize("seed", [8, 29])
def test_slopes_follow_a_column_into_its_new_unit(seed: int) -> None:
    """Counts with a memory of 8: a column of 10^-16 that becomes one of 10^-6 left cut points that are none."""
    policy: Any = make_policy("nonparametric", 2, 2, memory=8)
    state, rng = policy.init(), np.random.default_rng(seed)
    for t in range(260):
        x = rng.standard_normal(2)
        x[0] *= 2e-16 if t < 172 else 2.3e-6
        state = policy.update(state, x, t % 2, float(rng.poisson(2 + t % 2)), rng)
    state.require_sound()
    unit = state.links.models.columns[sticks.UNIT, 0]
    assert np.abs(state.links.models.fits[..., 0, 3]).max() < 30 * unit**0.5
