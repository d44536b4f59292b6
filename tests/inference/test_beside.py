"""Models of counts, marks and amounts beside the default one: how much they work, what they weigh, what they say."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammainc

from polyarm.inference import amounts as amounts_engine
from polyarm.inference import links as links_engine
from polyarm.inference import links_grid
from polyarm.inference.amounts import ENOUGH, AmountModel, AmountState
from polyarm.inference.door import copied, equal
from polyarm.inference.generalized import gamma_shape
from polyarm.inference.links import DISPERSIONS, MARK_GUESS, LinkModels, LinkState, Reward, is_due
from polyarm.kernels import amounts, generalized, links, sticks
from polyarm.kernels.amounts import AMOUNT_UNIT, GAMMA_SHAPE, NEXT_TO_NOTHING, OFF, ON, ORIGIN, STATUS
from polyarm.kernels.links import ALIVE, COUNTS, DISPERSION, FAMILIES, LEVEL, MARKS
from polyarm.models import JumpMixture, StudentMixture
from polyarm.models.objectives import MEAN, ProbabilityAbove
from polyarm.types import Array
from tests.inference.learning import Listen

X = np.array([0.8])
BASE = StudentMixture(np.ones(1), np.array([4.0]), np.array([3.0]), np.array([2.0]))


def stars(n: int, marks: int = 5, seed: int = 0) -> list[Reward]:
    """Marks from 1 on, or counts where there are many of them."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 1))
    values = np.clip(np.round(0.5 * marks + 1.5 * x[:, 0] + rng.standard_normal(n)), 1, marks)
    arms = rng.integers(3, size=n) // 2  # of every three rewards one is the second arm's
    return [Reward(int(a), row, float(y)) for a, row, y in zip(arms, x, values, strict=True)]


def paid(n: int, seed: int = 0) -> list[Reward]:
    """Amounts whose mean is 8 exp(0.6 x)."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 1))
    values = 8 * np.exp(0.6 * x[:, 0] + 0.5 * rng.standard_normal(n))
    return [Reward(int(a), row, float(y)) for a, row, y in zip(rng.integers(3, size=n) // 2, x, values, strict=True)]


def marked(models: LinkModels, rewards: list[Reward], heard: Callable[[int, LinkState], None] | None = None) -> Any:
    state = models.init()
    for n, reward in enumerate(rewards, 1):
        state = models.learnt(state, reward, n, n > 5, partial(list, rewards[:n]))
        if heard is not None:
            heard(n, state)
    return state


def counted(model: AmountModel, rewards: list[Reward], heard: Callable[[int, AmountState], None] | None = None) -> Any:
    state = model.init()
    for n, reward in enumerate(rewards, 1):
        state = model.learnt(state, reward, n, np.zeros(1), partial(list, rewards[:n]))
        if heard is not None:
            heard(n, state)
    return state


@pytest.fixture
def young(monkeypatch: pytest.MonkeyPatch) -> int:
    """Arms are young for eight rewards only, and so little work is allowed that what is shared waits."""
    for module in (links_engine, amounts_engine):
        monkeypatch.setattr(module, "YOUNG", 8)
        monkeypatch.setattr(module, "WORK", 6)
    return 8


def rows_of(state: Any, arm: int) -> tuple[int, int]:
    sizes = (state.models if isinstance(state, LinkState) else state.model).sizes[arm]
    return int(sizes[sticks.ROWS]), int(sizes[sticks.NEXT])


def recounts(state: Any, arm: int, young: int) -> bool:
    """Whether an arm's sums are counted afresh: at powers of two, where no row has just come round again."""
    rows, following = rows_of(state, arm)
    return rows > young and math.log2(rows).is_integer() and following == rows


@pytest.mark.parametrize("memory", [None, 16, 20])
def test_marks_are_visited_shared_and_cut_on_schedule(listen: Listen, young: int, memory: int | None) -> None:
    visit, share, recount = (listen(links, name) for name in ("visit", "share", "recount"))
    cut = listen(LinkModels, "_move_cuts")
    rewards, models, begun = stars(90), LinkModels(2, 1, moves=5, memory=memory), list[int]()

    def heard(n: int, state: LinkState) -> None:
        visits = [arguments[2:] for arguments, _ in visit]
        if n > 5 and not begun:
            begun.append(n)
            assert visits == [(arm, len(state.data[arm]), 0) for _ in range(8) for arm in range(2)]
            assert (len(share), len(cut), len(recount)) == (8, 8, 0)
        elif begun:
            a = rewards[n - 1].arm
            due = is_due(n)
            again = 2 if rows_of(state, a)[0] <= young else 1
            assert visits == [(a, 5, 5 * n)] * again + [(arm, 2048, 0) for arm in range(2) if due], n
            assert len(share) == (n <= young or n % 3 == 0), n  # 2 arms, 2^3 multiplications each: more than twice 6
            assert len(cut) == due
            assert [arguments[2] for arguments, _ in recount] == [a] * recounts(state, a, young), n
        for calls in (visit, share, recount, cut):
            calls.clear()

    marked(models, rewards, heard)
    assert begun == [6]


def test_counts_that_are_no_marks_have_no_cut_points(listen: Listen, young: int) -> None:
    visit, cut = listen(links, "visit"), listen(LinkModels, "_move_cuts")
    rewards = [Reward(0, X, 20.0), Reward(0, X, 0.0), *stars(60, marks=20)]

    def heard(n: int, state: LinkState) -> None:
        assert len(state.models.cuts) == 0
        if n > 6:
            again = 2 if rows_of(state, rewards[n - 1].arm)[0] <= young else 1
            assert [arguments[2:] for arguments, _ in visit] == [(rewards[n - 1].arm, 5, 5 * n)] * again
        visit.clear()

    state = marked(LinkModels(2, 1, moves=5), rewards, heard)
    assert cut == []
    assert state.models.grid[ALIVE:].tolist() == [1.0, 0.0]
    assert state.weights.tolist() == [0.5, 0.5, 0.0]


@pytest.mark.parametrize("status", [0, 1, 2])
def test_amounts_begin_in_units_of_one_from_nothing(status: int) -> None:
    state = AmountModel(2, 1).init(status)
    assert state.model.level[[STATUS, GAMMA_SHAPE, ORIGIN, AMOUNT_UNIT, amounts.HIGHEST]].tolist() == [
        status,
        1,
        0,
        1,
        1,
    ]
    assert state.model.columns[sticks.UNIT].tolist() == [1.0, 1.0]
    assert state.model.columns.sum() == 2.0
    assert len(state.model.sums) == len(state.model.kept) == len(state.model.fits) == (2 if status == ON else 0)
    assert state.weights.tolist() == [1.0, 0.0]
    assert [rows.shape for rows in state.data] == [(0, 5)] * 2
    empty = LinkModels(2, 1).init()
    assert empty.models.columns[sticks.UNIT].tolist() == [1.0, 1.0]
    assert empty.models.columns.sum() == 2.0
    assert empty.weights.tolist() == [1.0, 0.0, 0.0]
    np.testing.assert_allclose(empty.dispersions, 1 / 9)
    assert not empty.models.grid.any()
    assert [rows.shape for rows in empty.data] == [(0, 7)] * 2


@pytest.mark.parametrize("memory", [None, 16, 20])
def test_amounts_are_visited_and_shared_on_schedule(listen: Listen, young: int, memory: int | None) -> None:
    visit, share, recount = (listen(amounts, name) for name in ("visit", "share", "recount"))
    shape = listen(AmountModel, "_find_shape")
    rewards = paid(90)

    def heard(n: int, state: AmountState) -> None:
        visits, a = [arguments[2:] for arguments, _ in visit], rewards[n - 1].arm
        if n < ENOUGH:
            assert visits == []
        elif n == ENOUGH:
            assert visits == [(arm, len(state.data[arm]), 0) for _ in range(8) for arm in range(2)]
            assert (len(share), len(shape), len(recount)) == (8, 8, 0)
        else:
            again = 2 if rows_of(state, a)[0] <= young else 1
            assert visits == [(a, 5, 5 * n)] * again, n
            assert len(share) == (n <= young or n % 3 == 0), n
            assert len(shape) == is_due(n)
            assert [arguments[2] for arguments, _ in recount] == [a] * recounts(state, a, young), n
        for calls in (visit, share, recount, shape):
            calls.clear()

    counted(AmountModel(2, 1, moves=5, memory=memory), rewards, heard)


@pytest.mark.parametrize("model", ["links", "amounts"])
def test_what_is_shared_waits_for_its_cost(listen: Listen, model: str) -> None:
    """One fit of what A arms share costs A (d + 1)^3 multiplications, and a reward may cost 20 000."""
    rng, dim = np.random.default_rng(0), 26
    rewards = [Reward(0, rng.standard_normal(dim), float(1 + k % 6)) for k in range(85)]
    every = 1 + 3 * 27**3 // 20_000
    assert every == 3
    share, shared = listen(links if model == "links" else amounts, "share"), []

    def heard(n: int, state: Any) -> None:
        shared.extend([n] * len(share))
        share.clear()

    if model == "links":
        marked(LinkModels(3, dim, moves=1), rewards, heard)
    else:
        counted(AmountModel(3, dim, moves=1), rewards, heard)
    assert [n for n in shared if n > 60] == [61, 62, 63, 64, *range(66, 86, every)]


@pytest.mark.parametrize(
    ("later", "looked_at", "share"), [(0, 2048, 1.0), (0, 7, 14 / 40), (9, 2048, 9 / 25), (1, 3, 1 / 17)]
)
def test_cut_points_follow_the_latest_rewards_by_their_share(
    monkeypatch: pytest.MonkeyPatch, later: int, looked_at: int, share: float
) -> None:
    """Two Newton steps, then the share that rewards which can still move are of all that is counted."""
    models, rewards = LinkModels(2, 1), [*stars(38), Reward(0, X, 1.0), Reward(1, X, 5.0)]
    state = marked(models, rewards)
    if later:
        models.fade(state, 0.4)  # what has faded moves no more
        rewards = stars(later, seed=1)
        for n, reward in enumerate(rewards, 41):
            state = models.learnt(state, reward, n, True, partial(list, rewards))
    state.models.cuts[:] += [0.1, -0.2, 0.3, 0.5]
    monkeypatch.setattr(links_engine, "LOOKED_AT", looked_at)
    eta, numbers, total = [], [], 0.0
    for arm in range(2):
        own = [reward for reward in rewards if reward.arm == arm][-looked_at:]
        line = state.models.fits[arm, MARKS, :, 2]
        eta += [float(np.append(reward.context, 1.0) @ line) for reward in own]
        numbers += [int(reward.value) - 1 for reward in own]
        total += float(state.models.sums[arm, MARKS, 0])
    before, cuts = state.models.cuts.copy(), state.models.cuts.copy()
    for _ in range(2):
        generalized.cut_step(cuts, MARK_GUESS, np.array(eta), np.array(numbers))
    models._move_cuts(state)
    assert len(numbers) / total == pytest.approx(share)
    np.testing.assert_allclose(state.models.cuts, before + share * (cuts - before), rtol=1e-12)


@pytest.mark.parametrize("looked_at", [2048, 5])
def test_the_shape_is_fitted_to_the_latest_amounts_of_every_arm(
    monkeypatch: pytest.MonkeyPatch, looked_at: int
) -> None:
    model, rewards = AmountModel(2, 1), paid(40)
    state = counted(model, rewards)
    monkeypatch.setattr(amounts_engine, "LOOKED_AT", looked_at)
    logs, counts = [], []
    for arm in range(2):
        own = [reward for reward in rewards if reward.arm == arm][-looked_at:]
        counts.append(len(own))
        for reward in own:
            size = (reward.value - state.model.level[ORIGIN]) / state.model.level[AMOUNT_UNIT]
            logs.append(math.log(size) - float(np.append(reward.context, 1.0) @ state.model.fits[arm, :, 2]))
    state.model.level[GAMMA_SHAPE] = 77.0
    model._find_shape(state)
    assert state.model.level[GAMMA_SHAPE] == pytest.approx(gamma_shape(np.array(logs), np.array(counts), 2), rel=1e-12)


@pytest.mark.parametrize("alive", [(True, True), (True, False), (False, True)])
def test_no_model_is_preferred_at_first(alive: tuple[bool, bool]) -> None:
    rewards, models = stars(20), LinkModels(2, 1)
    grid = marked(models, rewards).models.grid
    state = models._begun(grid, alive, rewards)
    n = 1 + sum(alive)
    assert state.weights.tolist() == [1 / n, alive[0] / n, alive[1] / n]
    assert state.models.grid[ALIVE:].tolist() == list(alive)
    assert state.models.level[DISPERSION] == pytest.approx(np.mean(DISPERSIONS))
    assert state.models.level[LEVEL] == pytest.approx(math.log(0.5 + np.mean([reward.value for reward in rewards])))
    assert len(state.models.cuts) == (4 if alive[MARKS] else 0)
    assert state.models.sums[:, :, 0].sum(axis=0).tolist() == [20.0, 20.0]


def test_a_family_that_no_longer_applies_leaves_its_weight_to_the_others() -> None:
    models, rewards = LinkModels(2, 1), stars(20)
    state = marked(models, rewards)
    state.weights[:] = 0.2, 0.3, 0.5
    for value, weights in ((0.0, [0.2, 0.3, 0.5]), (-1.0, [0.2 / 0.7, 0.0, 0.5 / 0.7]), (14.0, [0.4, 0.6, 0.0])):
        after = models.learnt(copied(state), Reward(0, X, value), 21, True, partial(list, rewards))
        np.testing.assert_allclose(after.weights, weights, rtol=1e-12)
        assert (after.models.grid[ALIVE:] > 0).tolist() == [w > 0 for w in weights[1:]]


def test_draws_of_links_are_of_the_model_that_is_drawn() -> None:
    """The mean as an objective is the mean, and a value's probability that of its family, number by number."""
    models = LinkModels(2, 1)
    state = marked(models, stars(40))
    state.weights[:] = 0.25, 0.35, 0.4
    u = np.random.default_rng(3).random(400)
    family = np.where(u < 0.25, 0, np.where(u < 0.6, 1, 2))
    np.testing.assert_array_equal(models._models(state, 400, np.random.default_rng(3)), family)
    draws, worths, above = (np.full((400, 2), np.nan) for _ in range(3))
    models.draw_means(state, X, draws, np.random.default_rng(3))
    models.draw_objectives(state, X, MEAN, worths, np.random.default_rng(3))
    models.draw_objectives(state, X, ProbabilityAbove(2.0), above, np.random.default_rng(3))
    for found in (draws, worths, above):
        np.testing.assert_array_equal(np.isnan(found).any(axis=1), family == 0)  # left to the other model
    np.testing.assert_allclose(worths, draws, rtol=1e-8)
    rng, chosen = np.random.default_rng(3), np.random.default_rng(3).random(400)
    rng.random(len(chosen))
    for which in range(FAMILIES):
        rows = np.flatnonzero(family == 1 + which)
        eta = models._predictors(state, which, X, len(rows), rng)
        for row, at in zip(rows, eta, strict=True):
            for arm in range(2):
                p = np.empty(60)
                links.probabilities_at(state.models, which, float(at[arm]), p)
                first = 3 if which == COUNTS else 2  # numbers of what is at most 2: counts 0, 1, 2, marks 1, 2
                assert above[row, arm] == pytest.approx(1.0 - p[:first].sum(), abs=1e-9)


WEIGHTS = [(0.25, 0.35, 0.4), (0.0, 0.6, 0.4), (0.5, 0.0, 0.5), (0.5, 0.5, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("base", ["smooth", "jumps"])
def test_the_predictive_of_links_is_the_sum_of_the_models(base: str, weights: tuple[float, float, float]) -> None:
    models = LinkModels(2, 1)
    state = marked(models, stars(40))
    state.weights[:] = weights
    other, counts, marks = weights
    own: Any = BASE if base == "smooth" else JumpMixture(np.array([2.0, 7.5]), np.array([0.5, 0.3]), BASE)
    found = models.predictive(state, X, 1, own, np.array([1.0, 2.0]))
    p = np.zeros((FAMILIES, 40))
    for family in range(FAMILIES):
        links.probabilities(state.models, family, 1, X, p[family])
    for value in range(12):
        wanted = counts * p[COUNTS, value] + (marks * p[MARKS, value - 1] if 1 <= value <= 5 else 0.0)
        wanted += other * 0.5 if base == "jumps" and value == 2 else 0.0
        assert found.probability(float(value)) == pytest.approx(wanted, rel=1e-6, abs=2e-8)
    assert found.probability(7.5) == pytest.approx(other * 0.3 if base == "jumps" else 0.0)
    assert found.rest is BASE
    assert found.weights.sum() == pytest.approx(1.0 - other * (1.0 if base == "smooth" else 0.2), abs=1e-9)
    assert found.weights.min() > 1e-9
    chosen = models._models(state, 500, np.random.default_rng(0))
    assert set(chosen.tolist()) == {number for number, weight in enumerate(weights) if weight > 0}


def test_values_of_counts_go_to_twice_the_highest_and_twenty_on_and_marks_from_the_lowest_to_the_highest() -> None:
    models = LinkModels(2, 1)
    state = marked(models, [reward._replace(value=0.5 * reward.value) for reward in stars(40)])
    np.testing.assert_allclose(models.values(state, MARKS), [0.5, 1.0, 1.5, 2.0, 2.5])
    np.testing.assert_allclose(models.values(state, COUNTS), 0.5 * np.arange(2 * 5 + 20))


@pytest.mark.parametrize(("value", "below"), [(0.0, True), (-1.0, True), (6.0, False), (8.0, False)])
def test_a_longer_scale_has_its_new_cut_points_where_the_new_mark_is(
    monkeypatch: pytest.MonkeyPatch, value: float, below: bool
) -> None:
    models, rewards = LinkModels(2, 1), stars(60)
    state = marked(models, rewards)
    before, moved = state.models.cuts.copy(), list[Array]()
    monkeypatch.setattr(LinkModels, "_move_cuts", lambda self, state: moved.append(state.models.cuts.copy()))
    models.learnt(state, Reward(1, X, value), 61, True, partial(list, rewards))
    (cuts,) = moved
    assert len(cuts) == 4 + round(abs(value - (1.0 if below else 5.0)))
    assert (np.diff(cuts) > 0).all()
    np.testing.assert_array_equal(cuts[-4:] if below else cuts[:4], before)


def test_a_new_arm_changes_nothing_for_the_others() -> None:
    for models, state in (
        (LinkModels(2, 1), marked(LinkModels(2, 1), stars(40))),
        (AmountModel(2, 1), counted(AmountModel(2, 1), paid(40))),
    ):
        before = copied(state)
        wider: Any = models.with_arm(state)
        old, new = (part.models if isinstance(part, LinkState) else part.model for part in (before, wider))
        np.testing.assert_array_equal(new.sums[:2], old.sums)
        np.testing.assert_array_equal(new.sizes, [*old.sizes.tolist(), [0, 0]])
        np.testing.assert_allclose(new.fits[:2], old.fits, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(new.columns, old.columns)
        np.testing.assert_array_equal(new.guess, old.guess)
        assert not new.sums[2].any()
        assert len(wider.data[2]) == 0
        np.testing.assert_array_equal(wider.weights, before.weights)


def test_weights_fade_to_powers_and_sums_to_shares() -> None:
    for models, state in (
        (LinkModels(2, 1), marked(LinkModels(2, 1), stars(40))),
        (AmountModel(2, 1), counted(AmountModel(2, 1), paid(40))),
    ):
        if isinstance(state, LinkState):
            state.dispersions[:] = np.arange(1.0, 10.0) / 45.0
        weights = np.array([0.2, 0.3, 0.5])[: len(state.weights)]
        state.weights[:] = weights / weights.sum()
        powers = state.weights**0.3
        if isinstance(state, AmountState):
            state.density_weights[:] = 0.9, 0.1
            faded = state.density_weights**0.3
        sums = (state.models if isinstance(state, LinkState) else state.model).sums
        before = float(sums.reshape(2, -1, sums.shape[-1])[:, 0, 0].sum())
        spread = state.dispersions**0.3 if isinstance(state, LinkState) else None
        models.fade(state, 0.3)
        np.testing.assert_allclose(state.weights, powers / powers.sum(), rtol=1e-12)
        if isinstance(state, AmountState):
            np.testing.assert_allclose(state.density_weights, faded / faded.sum(), rtol=1e-12)
        if spread is not None:
            np.testing.assert_allclose(state.dispersions, spread / spread.sum(), rtol=1e-12)
        assert float(sums.reshape(2, -1, sums.shape[-1])[:, 0, 0].sum()) == pytest.approx(0.3 * before)
    waiting = AmountModel(2, 1).init()
    AmountModel(2, 1).fade(waiting, 0.3)
    assert equal(waiting, AmountModel(2, 1).init())


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_draws_of_amounts_are_of_the_model_that_is_drawn(sign: float) -> None:
    """Where the gamma model is drawn, mean, worth and density of a draw are those of one gamma distribution."""
    model = AmountModel(2, 1)
    state = counted(model, [reward._replace(value=sign * reward.value) for reward in paid(40)])
    state.weights[:] = state.density_weights[:] = 0.3, 0.7
    level = state.model.level
    assert np.sign(level[AMOUNT_UNIT]) == sign
    ours = np.random.default_rng(3).random(300) < 0.7
    draws, worths, above, grid = np.full((300, 2), np.nan), np.full((300, 2), np.nan), np.full((300, 2), np.nan), None
    model.draw_means(state, X, draws, np.random.default_rng(3))
    shares = np.broadcast_to([0.25, 0.15, 0.6], (2, 300, 3)).copy()
    values = np.array([0.0, 50.0])
    model.draw_objectives(state, X, MEAN, values, shares, worths, np.random.default_rng(3))
    np.testing.assert_array_equal(np.isnan(draws).any(axis=1), ~ours)
    np.testing.assert_allclose(worths, 0.15 * 50.0 + 0.6 * draws, rtol=1e-6)
    limit = sign * 6.0
    model.draw_objectives(state, X, ProbabilityAbove(limit), values, shares, above, np.random.default_rng(3))
    shape, unit = float(level[GAMMA_SHAPE]), float(level[AMOUNT_UNIT])
    below = gammainc(shape, shape * (limit - level[ORIGIN]) / unit / ((draws - level[ORIGIN]) / unit))
    tail = 1.0 - below if sign > 0 else below
    high = 0.15 + (0.25 if limit < 0 else 0.0)
    assert np.nanmax(np.abs(above - high - 0.6 * tail)) < 0.6 / 32  # of 32 slices one may be on the other side
    grid = sign * np.array([0.5, 4.0, 9.0, 30.0])
    densities = np.full((300, 4), np.nan)
    model.draw_densities(state, X, 1, grid, densities, np.random.default_rng(3))
    wanted = stats.gamma(shape, scale=draws[:, 1:] * sign / shape).pdf(sign * grid)
    np.testing.assert_allclose(densities, np.where(ours[:, None], wanted, np.nan), rtol=1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_predictive_of_amounts_is_the_sum_of_both_models(sign: float) -> None:
    model = AmountModel(2, 1)
    state = counted(model, [reward._replace(value=sign * reward.value) for reward in paid(40)])
    draws = np.empty((20_000, 2))
    state.weights[:] = 0.0, 1.0
    model.draw_means(state, X, draws, np.random.default_rng(0))
    state.density_weights[:] = 0.3, 0.7
    found = model.predictive(state, X, 1, BASE)
    shape = float(state.model.level[GAMMA_SHAPE])
    for low, high in ((2.0, 5.0), (-5.0, -2.0), (-1.0, 3.0), (-3.0, 1.0)):
        each = [np.maximum(sign * y, 0.0) * shape / (sign * draws[:, 1]) for y in (low, high)]
        gamma = abs(gammainc(shape, each[1]) - gammainc(shape, each[0])).mean()
        base = float(BASE.cdf(high) - BASE.cdf(low))
        wanted = 0.3 * base + 0.7 * gamma
        assert model.probability_between(state, X, 1, (low, high), base) == pytest.approx(wanted, abs=4e-3)
        assert float(found.cdf(high) - found.cdf(low)) == pytest.approx(
            model.probability_between(state, X, 1, (low, high), base), rel=1e-9
        )
    assert found.mean() == pytest.approx(0.3 * 3.0 + 0.7 * draws[:, 1].mean(), rel=0.02)


def test_means_go_by_the_weights_of_means_and_distributions_by_those_of_densities() -> None:
    model = AmountModel(2, 1)
    state = counted(model, paid(40))
    values, shares, nothing = np.zeros(1), np.full((2, 30, 2), 0.5), np.full((30, 2), np.nan)
    for of_means, of_densities in (((1.0, 0.0), (0.0, 1.0)), ((0.0, 1.0), (1.0, 0.0))):
        state.weights[:], state.density_weights[:] = of_means, of_densities
        means, worths, above = (nothing.copy() for _ in range(3))
        model.draw_means(state, X, means, np.random.default_rng(0))
        model.draw_objectives(state, X, MEAN, values, shares, worths, np.random.default_rng(0))
        model.draw_objectives(state, X, ProbabilityAbove(5.0), values, shares, above, np.random.default_rng(0))
        densities = np.full((30, 3), np.nan)
        model.draw_densities(state, X, 1, np.array([1.0, 5.0, 9.0]), densities, np.random.default_rng(0))
        for found, weight in ((means, of_means), (worths, of_means), (above, of_densities), (densities, of_densities)):
            assert np.isnan(found).all() == (weight[1] == 0.0)
        assert model.predictive(state, X, 1, BASE).base_weight == of_densities[0]
        base = model.probability_between(state, X, 1, (2.0, 5.0), 0.123)
        assert (base == 0.123) == (of_densities[0] == 1.0)


def test_amounts_end_where_one_is_none() -> None:
    model, rewards = AmountModel(2, 1), paid(20)
    state = counted(model, rewards)
    assert state.model.level[STATUS] == ON
    for value, status in ((1e-9, ON), (0.0, ON), (-1e-9, OFF), (-1.0, OFF)):
        reward = Reward(1, X, value)
        judged = copied(state)
        model.judge(judged, reward, 3.0, 0.1)
        assert equal(judged, state) == (status == OFF)  # what is no amount tells nothing of amounts
        after = model.learnt(copied(state), reward, 21, np.zeros(1), partial(list, rewards))
        assert after.model.level[STATUS] == status
        if value == 0.0:  # it counts as next to nothing
            held = after.model.level[AMOUNT_UNIT] * NEXT_TO_NOTHING
            assert after.data[1][after.model.sizes[1, sticks.NEXT] - 1, 2] == pytest.approx(held)
        if status == OFF:
            assert equal(after, model.init(OFF))
            assert equal(model.learnt(after, rewards[0], 22, np.zeros(1), partial(list, rewards)), after)


@pytest.mark.parametrize("part", ["kept", "weights"])
def test_models_whose_numbers_failed_are_given_up(part: str) -> None:
    """A model beside the default one ends where its numbers do: the default goes on without it."""
    rewards, models = stars(30), LinkModels(2, 1)
    state = marked(models, rewards)
    for broken in [state.weights] if part == "weights" else [state.models.sums[0, 1], state.models.kept[0, 1]]:
        broken[1] = np.nan
    after = models.learnt(state, rewards[0], 31, True, partial(list, rewards))
    assert not links_engine.is_on(after)
    assert equal(after, models.off(state))
    assert after.models.grid[STATUS] == links_grid.OFF
    assert not after.models.grid[ALIVE:].any()
    assert after.weights.tolist() == [1.0, 0.0, 0.0]
    paying, amount = paid(30), AmountModel(2, 1)
    held = counted(amount, paying)
    for broken in [held.weights] if part == "weights" else [held.model.sums[0], held.model.kept[0]]:
        broken[1] = np.nan
    assert equal(amount.learnt(held, paying[0], 31, np.zeros(1), partial(list, paying)), amount.init(OFF))


def test_a_grid_that_has_not_seen_all_rewards_is_none() -> None:
    rewards, models = stars(30), LinkModels(2, 1)
    state = marked(models, rewards)
    for n, on in ((31, True), (32, False), (30, False)):
        after = models.learnt(copied(state), rewards[0], n, True, partial(list, rewards))
        assert links_engine.is_on(after) == on
    assert not links_engine.is_on(models.learnt(models.init(), rewards[0], 1, False, partial(list, rewards)))
