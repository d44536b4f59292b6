"""What the arms share: every conditional from its definition, with a generator that says what it was asked for."""

import numpy as np
import pytest
from scipy import stats

from polyarm.kernels import robust_scales as scales
from polyarm.kernels._jit import plain
from polyarm.kernels.robust_component import VAR
from polyarm.kernels.robust_places import AT, PRECISION
from polyarm.kernels.robust_scales import (
    ARM_VAR,
    BASE,
    CENTRE,
    GAMMA,
    LAM,
    MEDIAN,
    NOISE,
    NONZERO,
    OFF,
    ORIGIN,
    PART_VAR,
    RHO,
    RUNNING,
    SCALED,
    SEEN,
    SPREAD,
    SQUARE,
    STEPS,
    SUM,
    TAU,
    TIED_SD,
    UNIT,
    WINDOW,
)
from polyarm.types import Array
from tests.kernels.robust_world import SEATS, W_ROW, WILD, D, World, make_world, rows_of
from tests.kernels.script import Script

GROUP = [0, 0, 1]
LAM_SHAPE, LAM_SCALE, RHO_SHAPE, RHO_SCALE = [1.1, 1.2], [0.3, 0.4], [1.5, 1.6], [0.7, 0.8]  # of the hand-made world
NOISE_SHAPE, RATE_SHAPE, RATE, WIDE, GAMMA_SHAPE, GAMMA_RATE = 1.3, 1.7, 0.9, 3.1, 2.1, 2.2
USED = (0, 2, 3)  # arms with rewards


@pytest.fixture
def world() -> World:
    return make_world()


def slopes(world: World, arm: int, k: int) -> Array:
    return rows_of(world.tables[arm], k, W_ROW, D)


def test_variances_follow_the_scales(world: World) -> None:
    lam, rho, unit = world.hyper[[LAM, LAM, LAM + 1]], world.hyper[[RHO, RHO, RHO + 1]], world.columns[UNIT]
    plain(scales.set_variances)(world.hyper, world.columns, world.law)
    np.testing.assert_allclose(world.columns[ARM_VAR], lam * unit)
    np.testing.assert_allclose(world.columns[PART_VAR], lam * rho * unit)
    world.law[scales.SHARED] = 0.0
    plain(scales.set_variances)(world.hyper, world.columns, world.law)
    np.testing.assert_allclose(world.columns[ARM_VAR], scales.NO_SHARE * lam * unit)
    np.testing.assert_allclose(world.columns[PART_VAR], lam * unit)
    world.law[scales.INTERCEPT] = 0.0  # then the last feature is a column like the others
    plain(scales.set_variances)(world.hyper, world.columns, world.law)
    np.testing.assert_allclose(world.columns[PART_VAR], world.hyper[LAM] * unit)


@pytest.mark.parametrize("shared", [True, False])
def test_spreads_of_centres_and_components_have_their_conditionals(shared: bool) -> None:
    """lam2 given centres and slopes and the old rho, then rho given slopes and the new lam2."""
    world = make_world(shared)
    old, unit, c = world.hyper[[RHO, RHO + 1]].copy(), world.columns[UNIT], world.columns[CENTRE]
    rng = Script(gammas=[1.0, 2.0, 0.5, 0.8])
    plain(scales.draw_spreads)(*world.shared, rng)
    asked, found = iter(rng.asked), []
    draws = iter([1.0, 2.0, 0.5, 0.8])
    for g in range(2):
        mine = [j for j in range(D) if GROUP[j] == g]
        among = within = n_among = n_within = 0.0
        for arm in USED:
            w0 = world.centres[arm, :, D + 1] if shared else c
            for j in mine:
                among += (w0[j] - c[j]) ** 2 / unit[j] if shared else 0.0
                n_among += shared
                for k in range(len(world.known[arm])):
                    within += (slopes(world, arm, k)[j] - w0[j]) ** 2 / unit[j]
                    n_within += 1
        assert next(asked)[0] == pytest.approx(LAM_SHAPE[g] + (n_among + n_within) / 2)
        ratio = old[g] if shared else 1.0
        lam = (LAM_SCALE[g] * world.hyper[SQUARE] + (among + within / ratio) / 2) / next(draws)
        assert world.hyper[LAM + g] == pytest.approx(lam)
        found.append(lam)
        if shared:
            assert next(asked)[0] == pytest.approx(RHO_SHAPE[g] + n_within / 2)
            assert world.hyper[RHO + g] == pytest.approx((RHO_SCALE[g] + within / lam / 2) / next(draws))
        else:
            assert world.hyper[RHO + g] == old[g]
    assert not list(asked)


def test_spreads_stay_within_bounds_and_a_fixed_ratio_stays(world: World) -> None:
    world.law[scales.RHO_SHAPE] = 0.0
    kept, S2 = world.hyper[RHO], world.hyper[SQUARE]
    plain(scales.draw_spreads)(*world.shared, Script(gammas=[1e300, 1e300, 1e300]))
    assert world.hyper[RHO] == kept
    np.testing.assert_allclose(world.hyper[[LAM, LAM + 1, RHO + 1]], [1e-12 * S2, 1e-12 * S2, 1e-6])
    plain(scales.draw_spreads)(*world.shared, Script(gammas=[1e-300, 1e-300, 1e-300]))
    np.testing.assert_allclose(world.hyper[[LAM, LAM + 1, RHO + 1]], [1e12 * S2, 1e12 * S2, 1e4])


@pytest.mark.parametrize("shared", [True, False])
def test_the_common_centre_lies_between_its_prior_and_the_arms(shared: bool) -> None:
    """N(0 or the median, wide S2 u) times the arms' centres, or the components' slopes where arms have no centre."""
    world = make_world(shared)
    world.hyper[MEDIAN] = 7.0  # far enough to be seen
    normals = [0.6, -1.2, 0.9]
    prior, width = np.array([0.0, 0.0, 7.0]), WIDE * world.hyper[SQUARE] * world.columns[UNIT]
    if shared:
        values, spread = np.array([world.centres[arm, :, D + 1] for arm in USED]), world.columns[ARM_VAR]
    else:
        values = np.array([slopes(world, arm, k) for arm in USED for k in range(len(world.known[arm]))])
        spread = world.columns[PART_VAR]
    precision = 1 / width + len(values) / spread
    wanted = (prior / width + values.sum(0) / spread) / precision + np.array(normals) / np.sqrt(precision)
    plain(scales.draw_common_centre)(*world.shared, Script(normals=normals))
    np.testing.assert_allclose(world.columns[CENTRE], wanted)


def test_all_intercepts_shift_together_as_rewards_and_median_ask(world: World) -> None:
    """The shift's density: N(c + shift; median, wide S2 u) times every reward's N(y; x'w + shift, s2)."""
    width = WIDE * world.hyper[SQUARE] * world.columns[UNIT, 2]
    precision, pull = 1 / width, (world.hyper[MEDIAN] - world.columns[CENTRE, 2]) / width
    before = [[slopes(world, arm, k).copy() for k in range(len(world.known[arm]))] for arm in range(4)]
    for arm, seats in enumerate(SEATS):
        for row, k in zip(world.data[arm], seats, strict=True):
            precision += 1 / world.known[arm][k].s2
            pull += (row[D] - row[:D] @ before[arm][k]) / world.known[arm][k].s2
    shift = pull / precision - 0.7 / np.sqrt(precision)
    centre, own = world.columns[CENTRE].copy(), world.centres[:, :, D + 1].copy()
    plain(scales.shift_intercepts)(*world.shared, Script(normals=[-0.7]))
    last = np.array([0.0, 0.0, shift])
    np.testing.assert_allclose(world.columns[CENTRE], centre + last)
    np.testing.assert_allclose(world.centres[:, :, D + 1], own + last)
    for arm in range(4):
        for k, w in enumerate(before[arm]):
            np.testing.assert_allclose(slopes(world, arm, k), w + last)


@pytest.mark.parametrize("ratio", [0.3, 4.0])
def test_a_noise_variance_belongs_to_the_usual_or_to_the_wild(world: World, ratio: float) -> None:
    """Prior (1 - wild) IG(a, b) + wild IG(a', b), told relative to IG(a, b)."""
    usual, wild = (stats.invgamma.pdf(ratio, shape) for shape in (NOISE_SHAPE, WILD[1]))
    prior = (1 - WILD[0]) * usual + WILD[0] * wild
    assert plain(scales.tail)(ratio, world.law) == pytest.approx(prior / usual)
    share = (1 - WILD[0]) * usual / prior
    for u, shape in ((share - 1e-9, NOISE_SHAPE), (share + 1e-9, WILD[1])):
        assert plain(scales.draw_shape)(ratio, world.law, Script(uniforms=[u])) == shape
    world.law[scales.WILD_SHARE] = 0.0
    assert plain(scales.tail)(ratio, world.law) == 1.0
    assert plain(scales.draw_shape)(ratio, world.law, Script(uniforms=[1.0])) == NOISE_SHAPE


def test_the_scale_of_the_noise_has_its_conditional(world: World) -> None:
    """Gamma(shape + sum of shapes, rate / S2 + sum 1/s2), not below a hundred times the least noise."""
    noises = [known.s2 for parts in world.known for known in parts]
    rng = Script(gammas=[0.9], uniforms=[0.0] * 4 + [1.0] * 2)  # four usual, two wild
    plain(scales.draw_noise)(world.tables, world.sizes, world.hyper, world.law, rng)
    assert rng.asked == [(pytest.approx(RATE_SHAPE + 4 * NOISE_SHAPE + 2 * WILD[1]),)]
    rate = RATE / world.hyper[SQUARE] + sum(1 / s2 for s2 in noises)
    assert world.hyper[NOISE] == pytest.approx(0.9 / rate)
    plain(scales.draw_noise)(world.tables, world.sizes, world.hyper, world.law, Script(gammas=[1e-30]))
    least = scales.NOISE_LOW * (world.hyper[SQUARE] + world.hyper[LAM] + world.hyper[LAM + 1])
    assert plain(scales.least_noise)(world.hyper) == pytest.approx(least)
    assert world.hyper[NOISE] == pytest.approx(100 * least)
    world.hyper[LAM] = 1e9
    assert plain(scales.least_noise)(world.hyper) == pytest.approx(scales.NOISE_LOW * 101 * world.hyper[SQUARE])


@pytest.mark.parametrize("uniform", [0.0, 0.999])
def test_the_concentration_is_drawn_by_escobar_and_west(world: World, uniform: float) -> None:
    above, below = [0.5, 0.8, 1.4], [3.0, 2.0, 5.0]
    gammas = [value for pair in zip(above, below, strict=True) for value in pair] + [1.7]
    rng = Script(gammas=gammas, uniforms=[uniform] * 3)
    plain(scales.draw_concentration)(world.tables, world.sizes, world.hyper, world.law, rng)
    n, K = [8, 4, 3], [3, 2, 1]
    shape = GAMMA_SHAPE + sum(K) - (3 if uniform == 0.0 else 0)
    rate = GAMMA_RATE - sum(np.log(a / (a + b)) for a, b in zip(above, below, strict=True))
    wanted = [(1.75,), (8,), (1.75,), (4,), (1.75,), (3,), (shape,)]
    np.testing.assert_allclose(rng.asked, wanted)
    assert n == [len(SEATS[arm]) for arm in USED]
    assert world.hyper[GAMMA] == pytest.approx(1.7 / rate)


def test_the_concentration_knows_how_likely_a_table_is_taken_off(world: World) -> None:
    """shape loses one with probability n / (n + gamma)."""
    for uniform, lost in ((8 / 8.75 - 1e-9, 1), (8 / 8.75 + 1e-9, 0)):
        fresh = make_world()
        fresh.sizes[2:, 0] = 0
        rng = Script(uniforms=[uniform])
        plain(scales.draw_concentration)(fresh.tables, fresh.sizes, fresh.hyper, fresh.law, rng)
        assert rng.asked[-1] == (pytest.approx(GAMMA_SHAPE + 3 - lost),)


def test_everything_shared_is_drawn_in_turn_and_only_what_is_learned() -> None:
    changing = [LAM, LAM + 1, RHO, RHO + 1, NOISE, GAMMA, TAU]
    for entry, kept in ((None, []), (scales.LEARNED, [*changing[:5], TAU]), (scales.GAMMA_SHAPE, [GAMMA])):
        world = make_world()
        before, centre = world.hyper.copy(), world.columns[CENTRE].copy()
        if entry is not None:
            world.law[entry] = 0.0
        plain(scales.draw_shared)(*world.shared, Script(normals=[0.3] * 99, gammas=[0.9, 0.8, 0.7, 0.6, 0.5, 0.4]))
        assert [i for i in changing if world.hyper[i] == before[i]] == sorted(kept, key=changing.index)
        assert np.array_equal(world.columns[CENTRE], centre) == (entry == scales.LEARNED)
        lam, rho = world.hyper[[LAM, LAM, LAM + 1]], world.hyper[[RHO, RHO, RHO + 1]]
        np.testing.assert_allclose(world.columns[PART_VAR], lam * rho * world.columns[UNIT])


def test_without_an_intercept_or_places_nothing_shifts_or_moves(world: World) -> None:
    world.law[[scales.INTERCEPT, scales.TAU_SHAPE]] = 0.0
    before = [slopes(world, 0, k).copy() for k in range(3)]
    plain(scales.draw_shared)(*world.shared, Script(normals=[0.3] * 99))
    assert world.hyper[TAU] == 0.55
    for k in range(3):
        np.testing.assert_array_equal(slopes(world, 0, k), before[k])


@pytest.mark.parametrize(
    "rewards",
    [[3.0, 1.0, 2.0], [4.0, 1.0, 2.0, 9.0], [0.0, 0.0, 0.0, 0.0, 1.0, 3.0], [0.0, 0.0, 12.0], [1.0, 1e9, 2.0, 4.0]],
)
def test_the_robust_scale_is_that_of_its_definition(rewards: list[float]) -> None:
    median, square = plain(scales.robust_scale)(np.array(rewards))
    gaps = np.abs(np.array(rewards) - np.median(rewards))
    seen = np.sort(gaps[gaps > 0])
    tame = np.minimum(gaps, 10 * seen[(len(seen) - 1) // 2])
    assert median == np.median(rewards)
    assert square == pytest.approx(max(1.4826 * np.median(gaps), 0.25 * tame.mean()) ** 2)


def test_equal_rewards_have_no_scale() -> None:
    assert plain(scales.robust_scale)(np.full(5, 3.0)) == (3.0, 0.0)
    assert plain(scales.typical_gap)(np.zeros(4)) == 0.0


def test_ties_count_where_one_value_holds_a_tenth() -> None:
    rng = np.random.default_rng(0)
    apart = rng.standard_normal(40)
    assert plain(scales.tied_sd)(apart) == 0.0
    three, four = apart.copy(), apart.copy()
    three[[4, 9, 30]] = 0.3
    four[[4, 9, 30, 31]] = 0.3
    assert plain(scales.tied_sd)(three) == 0.0
    assert plain(scales.tied_sd)(four) == pytest.approx(np.std(four))
    assert plain(scales.tied_sd)(np.array([1.0, 2.0])) == 0.0
    wild = np.array([0.0, 0.0, 1.0, -1.0, 1e9, -2.0])
    assert plain(scales.tied_sd)(wild) == pytest.approx(np.std([0.0, 0.0, 1.0, -1.0, 10.0, -2.0]))
    assert plain(scales.tied_sd)(-wild) == pytest.approx(np.std([0.0, 0.0, 1.0, -1.0, 10.0, -2.0]))


def test_columns_are_noted_without_losing_digits_to_an_offset(world: World) -> None:
    world.columns[[RUNNING, SPREAD, SUM, NONZERO]] = 0.0
    X = np.array([[1.0, 1e6 + 1], [0.0, 1e6 + 3], [4.0, 1e6 + 2], [-2.0, 1e6 + 7]])
    for row in X:
        plain(scales.note_columns)(world.hyper, world.columns, row)
    assert world.hyper[SEEN] == 4
    np.testing.assert_allclose(world.columns[RUNNING, :2], X.mean(0))
    np.testing.assert_allclose(world.columns[SPREAD, :2], 4 * X.var(0), rtol=1e-9)
    np.testing.assert_allclose(world.columns[SUM, :2], (X**2).sum(0))
    np.testing.assert_array_equal(world.columns[NONZERO, :2], [3, 4])


def test_columns_are_measured_by_their_nonzero_entries_or_around_their_base(world: World) -> None:
    """Slopes and centres change with the unit, so that they stay what they are in standard units."""
    world.hyper[SEEN] = 10.0
    world.columns[RUNNING, :2], world.columns[SPREAD, :2] = (0.5, 8.0), (20.0, 5.0)
    world.columns[SUM, :2], world.columns[NONZERO, :2], world.columns[BASE, :2] = (24.0, 700.0), (6.0, 10.0), (0.0, 7.0)
    before, unit = slopes(world, 0, 1).copy(), world.columns[UNIT].copy()
    centre, own = world.columns[CENTRE].copy(), world.centres[:, :, D + 1].copy()
    plain(scales.measure_columns)(world.tables, world.sizes, world.centres, world.hyper, world.columns, 2)
    squares = np.array([24.0 / 6.0, 0.5 + 1.0])  # mean square of non-zeros; variance and distance from the base
    np.testing.assert_allclose(world.columns[UNIT], [*(1 / squares), 1.0])
    factor = np.array([*(1 / np.sqrt(squares * unit[:2])), 1.0])
    np.testing.assert_allclose(slopes(world, 0, 1), before * factor)
    np.testing.assert_allclose(world.columns[CENTRE], centre * factor)
    np.testing.assert_allclose(world.centres[:, :, D + 1], own * factor)
    np.testing.assert_allclose(world.columns[AT, :2], [0.5, 1.0])
    np.testing.assert_allclose(world.columns[PRECISION, :2], [1 / 2.0, 1 / 0.5])


def test_constant_columns_say_nothing(world: World) -> None:
    world.hyper[SEEN] = 10.0
    world.columns[RUNNING, 0], world.columns[SPREAD, 0], world.columns[BASE, 0] = 3.0, 0.0, 0.0
    world.columns[SUM, 0], world.columns[NONZERO, 0] = 90.0, 10.0
    plain(scales.measure_columns)(world.tables, world.sizes, world.centres, world.hyper, world.columns, 1)
    assert world.columns[PRECISION, 0] == 0.0
    assert world.columns[UNIT, 0] == pytest.approx(1 / 9)


@pytest.mark.parametrize(
    ("mean", "base", "wanted"),
    [(5.0, 0.0, 5.0), (3.9, 0.0, 0.0), (-5.0, 0.0, -5.0), (2.9, 5.0, 0.0), (5.05, 5.0, 5.0), (5.2, 5.0, 5.2)],
)
def test_a_column_far_from_zero_is_counted_from_its_mean(world: World, mean: float, base: float, wanted: float) -> None:
    world.hyper[SEEN] = 1001.0
    world.columns[[RUNNING, SPREAD, BASE, PRECISION], 0] = mean, 1001.0, base, 1.0  # standard deviation 1
    assert plain(scales.base_for)(world.hyper, world.columns, 0) == wanted


def test_a_few_contexts_must_be_farther_to_be_believed(world: World) -> None:
    world.columns[[RUNNING, BASE, PRECISION], 0] = 60.0, 0.0, 1.0
    for seen, far in ((1.0, False), (2.0, False), (3.0, True)):  # 4 + 64 / (seen - 1)^2 standard deviations
        world.hyper[SEEN] = seen
        world.columns[SPREAD, 0] = seen
        assert plain(scales.base_for)(world.hyper, world.columns, 0) == (60.0 if far else 0.0)
    world.columns[PRECISION, 0] = 0.0
    assert plain(scales.base_for)(world.hyper, world.columns, 0) == 0.0


def calm(world: World) -> None:
    """Nothing is off centre."""
    world.hyper[SEEN] = 1001.0
    world.columns[[RUNNING, BASE], :2] = 0.0
    world.columns[SPREAD, :2] = 1001.0


def test_what_is_off_centre_is_noticed(world: World) -> None:
    off = plain(scales.off_centre)
    calm(world)
    assert not off(world.hyper, world.columns, world.law)
    world.columns[RUNNING, 1] = 9.0
    assert off(world.hyper, world.columns, world.law)
    calm(world)
    world.hyper[MEDIAN] = -1001 * np.sqrt(world.hyper[SQUARE])
    assert off(world.hyper, world.columns, world.law)
    world.law[scales.INTERCEPT] = 0.0  # nothing to count from without an intercept
    assert not off(world.hyper, world.columns, world.law)
    world.hyper[SCALED] = scales.BEGIN_AGAIN
    assert off(world.hyper, world.columns, world.law)


def test_counting_from_elsewhere_leaves_every_prediction(world: World) -> None:
    """x'w + origin is the same before and after, for the common centre, the arms' centres and every component."""
    calm(world)
    world.columns[RUNNING, 0] = 9.0
    world.columns[SUM, :2], world.columns[NONZERO, :2] = 1001 * 82.0, 1001.0
    world.hyper[MEDIAN] = 5000.0
    reservoir, shift, raw = np.array([4999.0, 5002.0]), np.empty(D), np.array([8.0, 0.7])

    def told() -> list[float]:
        features = np.array([*(raw - world.columns[BASE, :2]), 1.0])
        lines = [world.columns[CENTRE], *world.centres[:, :, D + 1]]
        lines += [slopes(world, arm, k) for arm in range(4) for k in range(len(world.known[arm]))]
        return [float(features @ line + world.hyper[ORIGIN]) for line in lines]

    plain(scales.measure_columns)(world.tables, world.sizes, world.centres, world.hyper, world.columns, 2)
    before = told()
    given = (world.tables, world.sizes, world.centres, world.hyper, world.columns, reservoir, shift)
    plain(scales.recentre)(*given)
    np.testing.assert_allclose(shift, [9.0, 0.0, 5000.0])
    np.testing.assert_allclose(world.columns[BASE, :2], [9.0, 0.0])
    np.testing.assert_allclose(reservoir, [-1.0, 2.0])
    np.testing.assert_allclose([world.hyper[ORIGIN], world.hyper[MEDIAN]], [5002.5, 0.0])
    np.testing.assert_allclose(world.columns[AT, :2], 0.0, atol=1e-12)
    factor = np.sqrt(82.0)  # of the first column's slopes: its unit is now its standard deviation
    raw = np.array([9.0 + (8.0 - 9.0) / factor, 0.7])
    np.testing.assert_allclose(told(), before)


def test_another_scale_begins_again_around_the_median(world: World) -> None:
    rho = np.array([0.11, 0.22])
    S2 = world.hyper[SQUARE]
    world.hyper[SCALED] = scales.BEGIN_AGAIN
    plain(scales.begin_again)(*world.shared, rho)
    assert world.hyper[SCALED] == 1.0
    np.testing.assert_allclose(world.hyper[[LAM, LAM + 1]], S2 * np.divide(LAM_SCALE, LAM_SHAPE))
    np.testing.assert_allclose(world.hyper[[RHO, RHO + 1]], rho)
    b = S2 * RATE_SHAPE / RATE
    assert world.hyper[NOISE] == pytest.approx(b)
    flat = [0.0, 0.0, world.hyper[MEDIAN]]
    np.testing.assert_allclose(world.columns[CENTRE], flat)
    np.testing.assert_allclose(world.centres[:, :, D + 1], np.tile(flat, (4, 1)))
    for arm in USED:
        for k, known in enumerate(world.known[arm]):
            mine = world.data[arm][np.array(SEATS[arm]) == k, D]
            np.testing.assert_allclose(slopes(world, arm, k), flat)
            errors = ((mine - flat[2]) ** 2).sum()
            assert world.tables[arm, VAR, k] == pytest.approx((b + errors / 2) / (NOISE_SHAPE + known.n / 2))


def test_the_first_scale_is_taken_once(world: World) -> None:
    hyper, centre, own = world.hyper.copy(), world.columns[CENTRE].copy(), world.centres[:, :, D + 1].copy()
    w, s2 = slopes(world, 2, 1).copy(), world.tables[2, VAR, 1]
    S2, S = 1.44, 1.2
    plain(scales.adopt_reward_unit)(world.tables, world.sizes, world.centres, world.hyper, world.columns)
    np.testing.assert_allclose(world.hyper[[LAM, LAM + 1, NOISE]], S2 * hyper[[LAM, LAM + 1, NOISE]])
    np.testing.assert_allclose(world.columns[CENTRE], S * centre)
    np.testing.assert_allclose(world.centres[:, :, D + 1], S * own)
    np.testing.assert_allclose(slopes(world, 2, 1), S * w)
    assert world.tables[2, VAR, 1] == pytest.approx(S2 * s2)
    assert world.hyper[SCALED] == 1.0


def test_rewards_are_measured_and_a_change_of_scale_is_noticed(world: World) -> None:
    given = (world.tables, world.sizes, world.centres, world.hyper, world.columns, world.law)
    measure, rewards = plain(scales.measure_rewards), np.array([1.0, 2.0, 4.0, 2.0])
    median, square = plain(scales.robust_scale)(rewards)
    lam = world.hyper[LAM]
    measure(*given, rewards)
    np.testing.assert_allclose(world.hyper[[MEDIAN, SQUARE, TIED_SD]], [median, square, np.std(rewards)])
    assert (world.hyper[SCALED], world.hyper[LAM]) == (1.0, lam)
    for factor, again in ((99.0, False), (101.0, True), (1 / 99.0, False), (1 / 101.0, True)):
        world.hyper[[SQUARE, SCALED]] = square, 1.0
        measure(*given, factor * rewards)
        assert world.hyper[SCALED] == (scales.BEGIN_AGAIN if again else 1.0)
    world.hyper[SCALED] = 0.0
    measure(*given, rewards)
    assert world.hyper[LAM] == pytest.approx(lam * square)
    measure(*given, np.full(3, 5.0))  # no scale: the old one stays
    assert world.hyper[SQUARE] == pytest.approx(square)


def remembered(world: World, steps: int, y: float = 3.5, uniform: float = 0.5) -> tuple[Array, Script]:
    """The reservoir after one more reward, from one that holds its own numbers."""
    reservoir, rng = np.arange(64.0), Script(uniforms=[uniform])
    world.hyper[STEPS] = steps
    given = (world.tables, world.sizes, world.centres, world.hyper, world.columns, reservoir, world.law)
    plain(scales.update_units)(*given, np.array([0.4, -0.6]), y, rng)
    return reservoir, rng


def test_the_first_reward_is_the_origin(world: World) -> None:
    assert remembered(world, 0)[0][0] == 0.0
    assert (world.hyper[ORIGIN], world.hyper[STEPS], world.hyper[OFF]) == (3.5, 1.0, 0.0)
    world.law[scales.INTERCEPT] = 0.0
    world.hyper[ORIGIN] = 0.0
    assert remembered(world, 0)[0][0] == 3.5


def test_the_reservoir_is_a_sample_of_all_rewards(world: World) -> None:
    assert remembered(world, 5)[0][5] == 3.5 - 2.5
    assert remembered(world, 127, uniform=0.25)[0][32] == 1.0  # place 0.25 * 128
    assert np.array_equal(remembered(world, 127, uniform=0.75)[0], np.arange(64.0))
    world.law[WINDOW] = 100  # what forgets lets every reward of the window have the same chance
    assert remembered(world, 999, uniform=0.25)[0][25] == 1.0
    world.law[WINDOW] = 10
    assert remembered(world, 999, uniform=0.25)[0][16] == 1.0


def test_units_are_measured_early_at_powers_of_two_and_when_a_window_has_passed(world: World) -> None:
    def measures(t: int) -> bool:
        world.hyper[MEDIAN] = np.nan
        remembered(world, t)
        return not np.isnan(world.hyper[MEDIAN])

    assert [t for t in (0, 30, 63, 64, 127, 128, 199, 255) if measures(t)] == [0, 30, 63, 127, 255]
    world.law[WINDOW] = 50
    assert [t for t in (64, 98, 99, 127, 128, 199) if measures(t)] == [99, 127, 199]
    world.law[scales.FIXED_UNITS] = 1.0
    assert not measures(0)
    assert world.hyper[STEPS] == 1.0
