"""Units of reward and context, from their definitions."""

import numpy as np
import pytest

from polyarm.kernels._jit import plain
from polyarm.kernels.robust import units
from polyarm.kernels.robust.component import VAR
from polyarm.types import Array
from tests.kernels.robust.world import SEATS, W_ROW, D, World, make_world, rows_of
from tests.kernels.script import Script

LAM_SHAPE, LAM_SCALE = [1.1, 1.2], [0.3, 0.4]  # of the hand-made world
NOISE_SHAPE, RATE_SHAPE, RATE = 1.3, 1.7, 0.9
USED = (0, 2, 3)  # arms with rewards


@pytest.fixture
def world() -> World:
    return make_world()


def slopes(world: World, arm: int, k: int) -> Array:
    return rows_of(world.tables[arm], k, W_ROW, D)


@pytest.mark.parametrize(
    "rewards",
    [[3.0, 1.0, 2.0], [4.0, 1.0, 2.0, 9.0], [0.0, 0.0, 0.0, 0.0, 1.0, 3.0], [0.0, 0.0, 12.0], [1.0, 1e9, 2.0, 4.0]],
)
def test_the_robust_scale_is_that_of_its_definition(rewards: list[float]) -> None:
    median, square = plain(units.robust_scale)(np.array(rewards))
    gaps = np.abs(np.array(rewards) - np.median(rewards))
    seen = np.sort(gaps[gaps > 0])
    tame = np.minimum(gaps, 10 * seen[(len(seen) - 1) // 2])
    assert median == np.median(rewards)
    assert square == pytest.approx(max(1.4826 * np.median(gaps), 0.25 * tame.mean()) ** 2)


def test_equal_rewards_have_no_scale() -> None:
    assert plain(units.robust_scale)(np.full(5, 3.0)) == (3.0, 0.0)
    assert plain(units.typical_gap)(np.zeros(4)) == 0.0


def test_ties_count_where_one_value_holds_a_tenth() -> None:
    rng = np.random.default_rng(0)
    apart = rng.standard_normal(40)
    assert plain(units.tied_sd)(apart) == 0.0
    three, four = apart.copy(), apart.copy()
    three[[4, 9, 30]] = 0.3
    four[[4, 9, 30, 31]] = 0.3
    assert plain(units.tied_sd)(three) == 0.0
    assert plain(units.tied_sd)(four) == pytest.approx(np.std(four))
    assert plain(units.tied_sd)(np.array([1.0, 2.0])) == 0.0
    wild = np.array([0.0, 0.0, 1.0, -1.0, 1e9, -2.0])
    assert plain(units.tied_sd)(wild) == pytest.approx(np.std([0.0, 0.0, 1.0, -1.0, 10.0, -2.0]))
    assert plain(units.tied_sd)(-wild) == pytest.approx(np.std([0.0, 0.0, 1.0, -1.0, 10.0, -2.0]))


def test_columns_are_noted_without_losing_digits_to_an_offset(world: World) -> None:
    world.columns[:] = 0.0
    X = np.array([[1.0, 1e6 + 1], [0.0, 1e6 + 3], [4.0, 1e6 + 2], [-2.0, 1e6 + 7]])
    for row in X:
        plain(units.note_columns)(world.shared, world.features, row)
    assert world.shared.n_seen == 4
    np.testing.assert_allclose(world.features.raw_mean[:2], X.mean(0))
    np.testing.assert_allclose(world.features.spread[:2], 4 * X.var(0), rtol=1e-9)
    np.testing.assert_allclose(world.features.square_sum[:2], (X**2).sum(0))
    np.testing.assert_array_equal(world.features.n_nonzero[:2], [3, 4])


def test_columns_are_measured_by_their_nonzero_entries_or_around_their_base(world: World) -> None:
    """Slopes and centres change with the unit, so that they stay what they are in standard units."""
    world.shared.n_seen = 10.0
    world.features.raw_mean[:2], world.features.spread[:2] = (0.5, 8.0), (20.0, 5.0)
    world.features.square_sum[:2], world.features.n_nonzero[:2], world.features.base[:2] = (
        (24.0, 700.0),
        (6.0, 10.0),
        (0.0, 7.0),
    )
    before, unit = slopes(world, 0, 1).copy(), world.features.unit.copy()
    centre, own = world.features.centre.copy(), world.centres[:, :, D + 1].copy()
    plain(units.measure_columns)(world.arms, 2, 0.0)
    squares = np.array([24.0 / 6.0, 0.5 + 1.0])  # mean square of non-zeros; variance and distance from the base
    np.testing.assert_allclose(world.features.unit, [*(1 / squares), 1.0])
    factor = np.array([*(1 / np.sqrt(squares * unit[:2])), 1.0])
    np.testing.assert_allclose(slopes(world, 0, 1), before * factor)
    np.testing.assert_allclose(world.features.centre, centre * factor)
    np.testing.assert_allclose(world.centres[:, :, D + 1], own * factor)
    np.testing.assert_allclose(world.features.mean[:2], [0.5, 1.0])
    np.testing.assert_allclose(world.features.precision[:2], [1 / 2.0, 1 / 0.5])


def test_constant_columns_say_nothing(world: World) -> None:
    world.shared.n_seen = 10.0
    world.features.raw_mean[0], world.features.spread[0], world.features.base[0] = 3.0, 0.0, 0.0
    world.features.square_sum[0], world.features.n_nonzero[0] = 90.0, 10.0
    plain(units.measure_columns)(world.arms, 1, 0.0)
    assert world.features.precision[0] == 0.0
    assert world.features.unit[0] == pytest.approx(1 / 9)


@pytest.mark.parametrize(
    ("square_sum", "n_nonzero"),
    [(9e-80, 10.0), (9e-310, 10.0), (0.0, 0.0), (9e-201, 1e-201), (5e-324, 5e-324)],
)
def test_a_column_next_to_nothing_or_long_forgotten_keeps_its_unit(
    world: World, square_sum: float, n_nonzero: float
) -> None:
    world.shared.n_seen, unit = 10.0, world.features.unit.copy()
    world.features.raw_mean[0], world.features.spread[0], world.features.base[0] = 0.0, square_sum, 0.0
    world.features.square_sum[0], world.features.n_nonzero[0] = square_sum, n_nonzero
    plain(units.measure_columns)(world.arms, 1, 0.0)
    assert world.features.unit[0] == unit[0]
    assert world.features.precision[0] == 0.0
    world.features.square_sum[0], world.features.n_nonzero[0] = 1.1e-79, 10.0
    plain(units.measure_columns)(world.arms, 1, 0.0)
    assert world.features.unit[0] == pytest.approx(1 / 1.1e-80)


def test_an_outlying_entry_makes_its_column_vaguer_for_locations(world: World) -> None:
    column = world.features
    world.shared.n_seen, world.shared.n_steps = 99.0, 64
    column.raw_mean[:2], column.spread[:2], column.precision[:2] = 0.0, 99.0, (1.0, 0.0)
    note = plain(units.note_columns)
    note(world.shared, column, np.array([50.0, 50.0]))  # early: units are measured at every step
    np.testing.assert_array_equal(column.precision[:2], [1.0, 0.0])
    world.shared.n_seen, world.shared.n_steps, column.raw_mean[0] = 99.0, 65, 0.0
    note(world.shared, column, np.array([6.0, 50.0]))  # 5.94 from its mean
    np.testing.assert_array_equal(column.precision[:2], [1.0, 0.0])  # a column that says nothing goes on so
    note(world.shared, column, np.array([-10.0, 0.0]))
    away = 10.0 + column.raw_mean[0]
    assert column.precision[0] == pytest.approx(9 / away**2)
    note(world.shared, column, np.array([-19.0, 0.0]))  # six of its standard deviations now, no more
    assert column.precision[0] == pytest.approx(9 / away**2)


@pytest.mark.parametrize(("held", "variance"), [(1.0, 8.0), (0.5, 4.0), (0.1, 2.0)])
def test_what_an_outlying_entry_made_of_a_variance_fades(world: World, held: float, variance: float) -> None:
    world.shared.n_seen = 10.0
    world.features.raw_mean[0], world.features.spread[0], world.features.precision[0] = 0.5, 20.0, 1 / 8.0
    plain(units.measure_columns)(world.arms, 1, held)
    assert world.features.precision[0] == pytest.approx(1 / variance)


def test_columns_without_outlying_entries_have_their_own_variance_at_every_measure(world: World) -> None:
    """No measure finds less than `held` of the variance of the one before: skewed and late columns, too."""
    rng, n = np.random.default_rng(3), 600
    late = np.where(np.arange(n) < 90, 0.0, rng.random(n))
    X = np.column_stack([rng.exponential(size=n), late])
    world.columns[:] = 0.0
    world.features.unit[:] = 1.0
    world.shared.n_steps = world.shared.n_seen = 0.0
    outlying = False
    for t, x in enumerate(X):
        before = world.features.precision[0]
        plain(units.update_units)(world.arms, world.reservoir, x, float(t % 7), Script(uniforms=[0.9]))
        variance = X[: t + 1].var(0)
        measured = t < 64 or (t + 1) & t == 0
        away = x[0] - X[: t + 1, 0].mean()
        if not measured:
            wanted = 9 / away**2 if before * away**2 > 36 else before
            assert world.features.precision[0] == pytest.approx(wanted)
        outlying |= t >= 64 and before * away**2 > 36
        if measured and not outlying:
            np.testing.assert_allclose(world.features.precision[0] * variance[0], 1.0 if t else 0.0, rtol=1e-9)
        if measured and variance[1] > 0 and world.features.precision[1] > 0:
            np.testing.assert_allclose(world.features.precision[1] * variance[1], 1.0, rtol=1e-9)
    assert outlying


@pytest.mark.parametrize(
    ("mean", "base", "wanted"),
    [(5.0, 0.0, 5.0), (3.9, 0.0, 0.0), (-5.0, 0.0, -5.0), (2.9, 5.0, 0.0), (5.05, 5.0, 5.0), (5.2, 5.0, 5.2)],
)
def test_a_column_far_from_zero_is_counted_from_its_mean(world: World, mean: float, base: float, wanted: float) -> None:
    world.shared.n_seen = 1001.0
    column = world.features
    column.raw_mean[0], column.spread[0], column.base[0], column.precision[0] = mean, 1001.0, base, 1.0  # sd 1
    assert plain(units.base_for)(world.shared, world.features, 0) == wanted


def test_a_few_contexts_must_be_farther_to_be_believed(world: World) -> None:
    world.features.raw_mean[0], world.features.base[0], world.features.precision[0] = 60.0, 0.0, 1.0
    for seen, far in ((1.0, False), (2.0, False), (3.0, True)):  # 4 + 64 / (seen - 1)^2 standard deviations
        world.shared.n_seen = seen
        world.features.spread[0] = seen
        assert plain(units.base_for)(world.shared, world.features, 0) == (60.0 if far else 0.0)
    world.features.precision[0] = 0.0
    assert plain(units.base_for)(world.shared, world.features, 0) == 0.0


def calm(world: World) -> None:
    """Nothing is off centre."""
    world.shared.n_seen = 1001.0
    world.features.raw_mean[:2] = world.features.base[:2] = 0.0
    world.features.spread[:2] = 1001.0


def test_what_is_off_centre_is_noticed(world: World) -> None:
    off = plain(units.is_off_centre)
    calm(world)
    assert not off(world.shared, world.features, world.prior)
    world.features.raw_mean[1] = 9.0
    assert off(world.shared, world.features, world.prior)
    calm(world)
    world.shared.median = -1001 * np.sqrt(world.shared.reward_square)
    assert off(world.shared, world.features, world.prior)
    world.prior.intercept = 0.0  # nothing to count from without an intercept
    assert not off(world.shared, world.features, world.prior)
    world.shared.scaled = units.BEGIN_AGAIN
    assert off(world.shared, world.features, world.prior)


def test_counting_from_elsewhere_leaves_every_prediction(world: World) -> None:
    """x'w + origin is the same before and after, for the common centre, the arms' centres and every component."""
    calm(world)
    world.features.raw_mean[0] = 9.0
    world.features.square_sum[:2], world.features.n_nonzero[:2] = 1001 * 82.0, 1001.0
    world.shared.median = 5000.0
    reservoir, shift, raw = world.reservoir, np.empty(D), np.array([8.0, 0.7])
    reservoir[:2] = 4999.0, 5002.0

    def told() -> list[float]:
        features = np.array([*(raw - world.features.base[:2]), 1.0])
        lines = [world.features.centre, *world.centres[:, :, D + 1]]
        lines += [slopes(world, arm, k) for arm in range(4) for k in range(len(world.known[arm]))]
        return [float(features @ line + world.shared.origin) for line in lines]

    plain(units.measure_columns)(world.arms, 2, 0.0)
    precision = world.features.precision[:2] * [1.0, 0.25]  # an entry of the second column was outlying
    world.features.precision[:2] = precision
    before = told()
    plain(units.recentre)(world.books, shift)
    np.testing.assert_allclose(world.features.precision[:2], precision)
    np.testing.assert_allclose(shift, [9.0, 0.0, 5000.0])
    np.testing.assert_allclose(world.features.base[:2], [9.0, 0.0])
    np.testing.assert_allclose(reservoir[:3], [-1.0, 2.0, -5000.0])
    np.testing.assert_allclose([world.shared.origin, world.shared.median], [5002.5, 0.0])
    np.testing.assert_allclose(world.features.mean[:2], 0.0, atol=1e-12)
    factor = np.sqrt(82.0)  # of the first column's slopes: its unit is now its standard deviation
    raw = np.array([9.0 + (8.0 - 9.0) / factor, 0.7])
    np.testing.assert_allclose(told(), before)


def test_another_scale_begins_again_around_the_median(world: World) -> None:
    rho = np.array([0.11, 0.22])
    S2 = world.shared.reward_square
    world.shared.scaled = units.BEGIN_AGAIN
    plain(units.begin_again)(world.books, rho)
    assert world.shared.scaled == 1.0
    np.testing.assert_allclose(world.shared.arm_var, S2 * np.divide(LAM_SCALE, LAM_SHAPE))
    np.testing.assert_allclose(world.shared.part_ratio, rho)
    b = S2 * RATE_SHAPE / RATE
    assert world.shared.noise_scale == pytest.approx(b)
    flat = [0.0, 0.0, world.shared.median]
    np.testing.assert_allclose(world.features.centre, flat)
    np.testing.assert_allclose(world.centres[:, :, D + 1], np.tile(flat, (4, 1)))
    for arm in USED:
        for k, known in enumerate(world.known[arm]):
            mine = world.data[arm][np.array(SEATS[arm]) == k, D]
            np.testing.assert_allclose(slopes(world, arm, k), flat)
            errors = ((mine - flat[2]) ** 2).sum()
            assert world.tables[arm, VAR, k] == pytest.approx((b + errors / 2) / (NOISE_SHAPE + known.n / 2))


def test_the_first_scale_is_taken_once(world: World) -> None:
    before, centre, own = make_world().shared, world.features.centre.copy(), world.centres[:, :, D + 1].copy()
    w, s2 = slopes(world, 2, 1).copy(), world.tables[2, VAR, 1]
    S2, S = 1.44, 1.2
    plain(units.adopt_reward_unit)(world.arms)
    np.testing.assert_allclose(world.shared.arm_var, S2 * before.arm_var)
    assert world.shared.noise_scale == pytest.approx(S2 * before.noise_scale)
    np.testing.assert_allclose(world.features.centre, S * centre)
    np.testing.assert_allclose(world.centres[:, :, D + 1], S * own)
    np.testing.assert_allclose(slopes(world, 2, 1), S * w)
    assert world.tables[2, VAR, 1] == pytest.approx(S2 * s2)
    assert world.shared.scaled == 1.0


def test_rewards_are_measured_and_a_change_of_scale_is_noticed(world: World) -> None:
    measure, rewards = plain(units.measure_rewards), np.array([1.0, 2.0, 4.0, 2.0])
    median, square = plain(units.robust_scale)(rewards)
    lam = world.shared.arm_var[0]
    measure(world.arms, rewards)
    found = world.shared.median, world.shared.reward_square, world.shared.tied_sd
    np.testing.assert_allclose(found, [median, square, np.std(rewards)])
    assert (world.shared.scaled, world.shared.arm_var[0]) == (1.0, lam)
    for factor, again in ((99.0, False), (101.0, True), (1 / 99.0, False), (1 / 101.0, True)):
        world.shared.reward_square, world.shared.scaled = square, 1.0
        measure(world.arms, factor * rewards)
        assert world.shared.scaled == (units.BEGIN_AGAIN if again else 1.0)
    world.shared.scaled = 0.0
    measure(world.arms, rewards)
    assert world.shared.arm_var[0] == pytest.approx(lam * square)
    measure(world.arms, np.full(3, 5.0))  # no scale: the old one stays
    assert world.shared.reward_square == pytest.approx(square)


def remembered(world: World, steps: int, y: float = 3.5, uniform: float = 0.5) -> tuple[Array, Script]:
    """The reservoir after one more reward, from one that holds its own numbers."""
    reservoir, rng = world.reservoir, Script(uniforms=[uniform])
    reservoir[:] = np.arange(64.0)
    world.shared.n_steps = steps
    plain(units.update_units)(world.arms, reservoir, np.array([0.4, -0.6]), y, rng)
    return reservoir, rng


def test_the_first_reward_is_the_origin(world: World) -> None:
    assert remembered(world, 0)[0][0] == 0.0
    assert (world.shared.origin, world.shared.n_steps, world.shared.off_centre) == (3.5, 1.0, 0.0)
    world.prior.intercept = 0.0
    world.shared.origin = 0.0
    assert remembered(world, 0)[0][0] == 3.5


def test_the_reservoir_is_a_sample_of_all_rewards(world: World) -> None:
    assert remembered(world, 5)[0][5] == 3.5 - 2.5
    assert remembered(world, 127, uniform=0.25)[0][32] == 1.0  # place 0.25 * 128
    assert np.array_equal(remembered(world, 127, uniform=0.75)[0], np.arange(64.0))
    world.prior.window = 100  # what forgets lets every reward of the window have the same chance
    assert remembered(world, 999, uniform=0.25)[0][25] == 1.0
    world.prior.window = 10
    assert remembered(world, 999, uniform=0.25)[0][16] == 1.0


def test_units_are_measured_early_at_powers_of_two_and_when_a_window_has_passed(world: World) -> None:
    def measures(t: int) -> bool:
        world.shared.median = np.nan
        remembered(world, t)
        return not np.isnan(world.shared.median)

    assert [t for t in (0, 30, 63, 64, 127, 128, 199, 255) if measures(t)] == [0, 30, 63, 127, 255]
    world.prior.window = 50
    assert [t for t in (64, 98, 99, 127, 128, 199) if measures(t)] == [99, 127, 199]
    world.prior.fixed_units = 1.0
    assert not measures(0)
    assert world.shared.n_steps == 1.0


@pytest.mark.parametrize(("share", "far"), [(0.999, False), (1.001, True), (-0.999, False), (-1.001, True)])
@pytest.mark.parametrize("square", [1.44, 0.04, 900.0])
def test_rewards_are_counted_from_their_median_a_thousand_scales_away(
    world: World, share: float, far: bool, square: float
) -> None:
    calm(world)
    median = share * units.FAR_REWARD * np.sqrt(square)
    world.shared.median, world.shared.reward_square = median, square
    assert plain(units.is_off_centre)(world.shared, world.features, world.prior) == far
    shift, origin = np.empty(D), world.shared.origin
    plain(units.recentre)(world.books, shift)
    assert shift[D - 1] == (median if far else 0.0)
    assert world.shared.origin == pytest.approx(origin + shift[D - 1])


def test_ties_are_tamed_around_the_middle_of_two_medians() -> None:
    """0, 0, 1, 2, 3 and a wild one: the median is 1.5, the typical gap 1.5, so nothing counts beyond 16.5."""
    for wild in (1e9, -1e9):
        rewards = np.array([0.0, 0.0, 1.0, 2.0, 3.0])
        rest = np.append(rewards, wild)
        centre = np.median(rest)
        gaps = np.sort(np.abs(rest - centre))
        widest = 10 * gaps[gaps > 0][(np.count_nonzero(gaps) - 1) // 2]
        assert plain(units.tied_sd)(rest) == pytest.approx(np.std(np.clip(rest, centre - widest, centre + widest)))
