"""What the arms share: every conditional from its definition, with a generator that says what it was asked for."""

import numpy as np
import pytest
from scipy import stats

from polyarm.kernels._jit import plain
from polyarm.kernels.robust import shared as common
from polyarm.types import Array
from tests.kernels.robust.world import CENTRE_RATIO, GROUP, SEATS, W_ROW, WILD, D, World, make_world, rows_of
from tests.kernels.script import Script
from tests.statistics.mutants import mutant

LAM_SHAPE, LAM_SCALE, RHO_SHAPE, RHO_SCALE = [1.1, 1.2], [0.3, 0.4], [1.5, 1.6], [0.7, 0.8]  # of the hand-made world
NOISE_SHAPE, RATE_SHAPE, RATE, WIDE, GAMMA_SHAPE, GAMMA_RATE = 1.3, 1.7, 0.9, 3.1, 2.1, 2.2
RATIO_SHAPE, RATIO_SCALE = 1.4, 0.7
MEAN_SQUARE = [0.3**2 + 1 / 1.4, 0.2**2 + 1 / 0.9]  # of the columns of the hand-made world, and how much is the mean's
LEVEL = [0.3**2 / MEAN_SQUARE[0], 0.2**2 / MEAN_SQUARE[1]]
USED = (0, 2, 3)  # arms with rewards


@pytest.fixture
def world() -> World:
    return make_world()


def slopes(world: World, arm: int, k: int) -> Array:
    return rows_of(world.tables[arm], k, W_ROW, D)


def against_quadrature(drawn: list[float], grid: Array, log_density: Array) -> tuple[float, float]:
    """Mean of draws minus that of a density on a grid, in standard errors by batch means, and the density's spread."""
    weights = np.exp(log_density - log_density.max())
    mean = np.average(grid, weights=weights)
    spread = np.sqrt(np.average((grid - mean) ** 2, weights=weights))
    batches = np.array(drawn).reshape(40, -1).mean(axis=1)
    return float((batches.mean() - mean) / (batches.std(ddof=1) / np.sqrt(40))), float(spread)


def test_variances_follow_the_scales(world: World) -> None:
    lam, rho, unit = world.shared.arm_var[GROUP], world.shared.part_ratio[GROUP], world.features.unit
    plain(common.set_variances)(world.shared, world.features, world.prior)
    np.testing.assert_allclose(world.features.arm_var, lam * unit)
    np.testing.assert_allclose(world.features.part_var, lam * rho * unit)
    world.prior.shared_centre = 0.0
    plain(common.set_variances)(world.shared, world.features, world.prior)
    np.testing.assert_allclose(world.features.arm_var, common.NO_SHARE * lam * unit)
    np.testing.assert_allclose(world.features.part_var, lam * unit)
    world.prior.intercept = 0.0  # then the last feature is a column like the others
    plain(common.set_variances)(world.shared, world.features, world.prior)
    np.testing.assert_allclose(world.features.part_var, world.shared.arm_var[0] * unit)


@pytest.mark.parametrize("shared", [True, False])
def test_spreads_of_centres_and_components_have_their_conditionals(shared: bool) -> None:
    """lam2 given centres and slopes and the old rho, then rho given slopes and the new lam2."""
    world = make_world(shared)
    old, unit, c = world.shared.part_ratio.copy(), world.features.unit, world.features.centre
    rng = Script(gammas=[1.0, 2.0, 0.5, 0.8])
    plain(common.draw_spreads)(world.arms, rng)
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
        lam = (LAM_SCALE[g] * world.shared.reward_square + (among + within / ratio) / 2) / next(draws)
        assert world.shared.arm_var[g] == pytest.approx(lam)
        found.append(lam)
        if shared:
            assert next(asked)[0] == pytest.approx(RHO_SHAPE[g] + n_within / 2)
            assert world.shared.part_ratio[g] == pytest.approx((RHO_SCALE[g] + within / lam / 2) / next(draws))
        else:
            assert world.shared.part_ratio[g] == old[g]
    assert not list(asked)


def test_spreads_stay_within_bounds_and_a_fixed_ratio_stays(world: World) -> None:
    world.prior.part_shape[0] = 0.0
    kept, S2 = world.shared.part_ratio[0], world.shared.reward_square
    plain(common.draw_spreads)(world.arms, Script(gammas=[1e300, 1e300, 1e300]))
    assert world.shared.part_ratio[0] == kept
    np.testing.assert_allclose([*world.shared.arm_var, world.shared.part_ratio[1]], [1e-12 * S2, 1e-12 * S2, 1e-6])
    plain(common.draw_spreads)(world.arms, Script(gammas=[1e-300, 1e-300, 1e-300]))
    np.testing.assert_allclose([*world.shared.arm_var, world.shared.part_ratio[1]], [1e12 * S2, 1e12 * S2, 1e4])


def test_the_density_of_the_centres_spread_given_that_of_slopes(world: World) -> None:
    """kappa ~ IG(shape, scale lam2 / S2), and nothing where kappa is fixed."""
    assert plain(common.ratio_given)(2.0, world.arms) == 0.0
    world.prior.centre_shape = RATIO_SHAPE
    S2 = world.shared.reward_square
    wanted = [stats.invgamma.logpdf(CENTRE_RATIO, RATIO_SHAPE, scale=RATIO_SCALE * lam2 / S2) for lam2 in (0.3, 2.0)]
    found = [plain(common.ratio_given)(lam2, world.arms) for lam2 in (0.3, 2.0)]
    assert found[1] - found[0] == pytest.approx(wanted[1] - wanted[0])


@pytest.mark.parametrize("bug", [False, True])
def test_the_spread_of_slopes_is_drawn_given_that_of_their_centre(world: World, bug: bool) -> None:
    """IG times the density of kappa, as quadrature has it; without that density a bug is noticed."""
    spreads = mutant(common.draw_spreads, {"ratio_given": lambda lam2, arms: 0.0} if bug else {})
    asked, rho, rng = Script(gammas=[1.0]), world.shared.part_ratio.copy(), np.random.default_rng(5)
    plain(common.draw_spreads)(world.arms, asked)
    shape, scale, drawn = asked.asked[0][0], world.shared.arm_var[0], []  # of that IG
    world.shared.part_ratio[:], world.prior.centre_shape, world.centre_ratio[0] = rho, RATIO_SHAPE, 1.0
    for _ in range(6000):
        spreads(world.arms, rng)
        drawn.append(np.log(world.shared.arm_var[0]))
        world.shared.part_ratio[:] = rho
    grid = np.linspace(-6.0, 6.0, 4000)
    ratio = RATIO_SCALE * np.exp(grid) / world.shared.reward_square
    density = stats.invgamma.logpdf(np.exp(grid), shape, scale=scale) + grid
    density += stats.invgamma.logpdf(1.0, RATIO_SHAPE, scale=ratio)
    z, _ = against_quadrature(drawn, grid, density)
    assert abs(z) > 6 if bug else abs(z) < 3.5


@pytest.mark.parametrize("shared", [True, False])
def test_the_common_centre_lies_between_its_prior_and_the_arms(shared: bool) -> None:
    """N(0 or the median, wide S2 u) times the arms' centres, or the components' slopes where arms have no centre."""
    world = make_world(shared)
    world.shared.median = 7.0  # far enough to be seen
    normals = [0.6, -1.2, 0.9]
    prior, width = np.array([0.0, 0.0, 7.0]), WIDE * world.shared.reward_square * world.features.unit
    if shared:
        values, spread = np.array([world.centres[arm, :, D + 1] for arm in USED]), world.features.arm_var
    else:
        values = np.array([slopes(world, arm, k) for arm in USED for k in range(len(world.known[arm]))])
        spread = world.features.part_var
    precision = 1 / width + len(values) / spread
    wanted = (prior / width + values.sum(0) / spread) / precision + np.array(normals) / np.sqrt(precision)
    plain(common.draw_common_centre)(world.arms, Script(normals=normals))
    np.testing.assert_allclose(world.features.centre, wanted)


def ratio_density(world: World, kappa: float | Array) -> Array:
    """Log density of log kappa given the means of the arms' centres, by SciPy."""
    means = world.centres[list(USED)][:, :, D + 1].mean(axis=0)
    scale = RATIO_SCALE * world.shared.arm_var[0] / world.shared.reward_square
    found = stats.invgamma.logpdf(kappa, RATIO_SHAPE, scale=scale) + np.log(kappa)
    for j in np.flatnonzero(np.array(GROUP) == 0):
        ratio = (1 - LEVEL[j]) * kappa + LEVEL[j] * WIDE
        var = ratio * world.shared.reward_square * world.features.unit[j] + world.features.arm_var[j] / len(USED)
        found = found + stats.norm.logpdf(means[j], scale=np.sqrt(var))
    return np.asarray(found)


def test_a_spread_of_the_centre_gains_what_prior_and_centres_say(world: World) -> None:
    """The common centre itself, and those of intercepts, say nothing of it."""
    world.prior.centre_shape = RATIO_SHAPE
    for before, after in ((0.3, 1.7), (5.0, 0.02)):
        wanted = ratio_density(world, after) - ratio_density(world, before)
        assert plain(common.gain_of_ratio)(world.arms, before, after) == pytest.approx(float(wanted))
        world.features.centre[:] = 3.0
        world.centres[:, 2] = 4.0
        assert plain(common.gain_of_ratio)(world.arms, before, after) == pytest.approx(float(wanted))


@pytest.mark.parametrize("bug", [False, True])
def test_the_spread_of_the_centre_is_drawn_from_its_conditional(world: World, bug: bool) -> None:
    """As quadrature has it; a prior scale that is half as large again is noticed."""
    world.prior.centre_shape = RATIO_SHAPE
    world.prior.centre_scale *= 1.5 if bug else 1.0
    arms, rng, drawn = world.arms, np.random.default_rng(3), []
    for _ in range(6000):
        plain(common.draw_centre_ratio)(arms, rng)
        drawn.append(np.log(world.centre_ratio.item(0)))
    grid = np.linspace(-12.0, 15.0, 4000)
    density = ratio_density(world, np.exp(grid))
    assert (density[[0, -1]] - density.max()).max() < -15
    z, spread = against_quadrature(drawn, grid, density)
    assert abs(z) > 6 if bug else abs(z) < 3.5
    assert bug or np.std(drawn) == pytest.approx(spread, rel=0.05)


def test_the_common_centre_is_drawn_given_its_new_spread(world: World) -> None:
    """Drawn without c, a spread and an old c would not belong together."""
    world.prior.centre_shape = RATIO_SHAPE
    rng = Script(normals=[0.3] * 99, gammas=[0.9, 0.8, 0.7, 0.6, 0.5, 0.4], uniforms=[1.0 - 1e-9] * 99)  # takes steps
    plain(common.draw_shared)(world.arms, rng)
    assert world.centre_ratio[0] == pytest.approx(CENTRE_RATIO * np.exp(2 * 1.5 * 0.3))
    for j in np.flatnonzero(np.array(GROUP) == 0).tolist():
        mean, width = plain(common.prior_of_centre)(world.arms, j)
        precision = 1 / width + len(USED) / world.features.arm_var[j]
        total = world.centres[list(USED), j, D + 1].sum() / world.features.arm_var[j]
        wanted = (mean / width + total) / precision + 0.3 / np.sqrt(precision)
        assert world.features.centre[j] == pytest.approx(wanted)


def test_a_spread_of_the_centre_far_beyond_its_bounds_is_refused(world: World) -> None:
    world.prior.centre_shape = RATIO_SHAPE
    for bound, step in ((1.5e-8, -1.0), (0.9e8, 1.0)):
        world.centre_ratio[0] = bound
        plain(common.draw_centre_ratio)(world.arms, Script(normals=[step] * 2))
        assert world.centre_ratio[0] == bound


def test_the_centre_of_slopes_is_as_wide_as_its_spread_and_that_of_levels_as_ever(world: World) -> None:
    """A constant column holds the level of rewards as the intercept does, one far from 0 most of it."""
    world.centre_ratio[0] = 0.2
    S2, unit, features = world.shared.reward_square, world.features.unit, world.features
    for mean, precision, level in ((0.0, 1.4, 0.0), (0.3, 1.4, LEVEL[0]), (3.0, 1.0, 0.9), (5.0, 0.0, 1.0)):
        features.mean[0], features.precision[0] = mean, precision
        wanted = (0.2 * (1 - level) + WIDE * level) * S2 * unit[0]
        np.testing.assert_allclose(plain(common.prior_of_centre)(world.arms, 0), (0.0, wanted))
    np.testing.assert_allclose(plain(common.prior_of_centre)(world.arms, 2), (world.shared.median, WIDE * S2))


def test_all_intercepts_shift_together_as_rewards_and_median_ask(world: World) -> None:
    """The shift's density: N(c + shift; median, wide S2 u) times every reward's N(y; x'w + shift, s2)."""
    width = WIDE * world.shared.reward_square * world.features.unit[2]
    precision, pull = 1 / width, (world.shared.median - world.features.centre[2]) / width
    before = [[slopes(world, arm, k).copy() for k in range(len(world.known[arm]))] for arm in range(4)]
    for arm, seats in enumerate(SEATS):
        for row, k in zip(world.data[arm], seats, strict=True):
            precision += 1 / world.known[arm][k].s2
            pull += (row[D] - row[:D] @ before[arm][k]) / world.known[arm][k].s2
    shift = pull / precision - 0.7 / np.sqrt(precision)
    centre, own = world.features.centre.copy(), world.centres[:, :, D + 1].copy()
    plain(common.shift_intercepts)(world.arms, Script(normals=[-0.7]))
    last = np.array([0.0, 0.0, shift])
    np.testing.assert_allclose(world.features.centre, centre + last)
    np.testing.assert_allclose(world.centres[:, :, D + 1], own + last)
    for arm in range(4):
        for k, w in enumerate(before[arm]):
            np.testing.assert_allclose(slopes(world, arm, k), w + last)


@pytest.mark.parametrize("ratio", [0.3, 4.0])
def test_a_noise_variance_belongs_to_the_usual_or_to_the_wild(world: World, ratio: float) -> None:
    """Prior (1 - wild) IG(a, b) + wild IG(a', b), told relative to IG(a, b)."""
    usual, wild = (stats.invgamma.pdf(ratio, shape) for shape in (NOISE_SHAPE, WILD[1]))
    prior = (1 - WILD[0]) * usual + WILD[0] * wild
    assert plain(common.tail)(ratio, world.prior) == pytest.approx(prior / usual)
    share = (1 - WILD[0]) * usual / prior
    for u, shape in ((share - 1e-9, NOISE_SHAPE), (share + 1e-9, WILD[1])):
        assert plain(common.draw_shape)(ratio, world.prior, Script(uniforms=[u])) == shape
    world.prior.wild_share = 0.0
    assert plain(common.tail)(ratio, world.prior) == 1.0
    assert plain(common.draw_shape)(ratio, world.prior, Script(uniforms=[1.0])) == NOISE_SHAPE


def test_the_scale_of_the_noise_has_its_conditional(world: World) -> None:
    """Gamma(shape + sum of shapes, rate / S2 + sum 1/s2), not below a hundred times the least noise."""
    noises = [known.s2 for parts in world.known for known in parts]
    rng = Script(gammas=[0.9], uniforms=[0.0] * 4 + [1.0] * 2)  # four usual, two wild
    plain(common.draw_noise_scale)(world.arms, rng)
    assert rng.asked == [(pytest.approx(RATE_SHAPE + 4 * NOISE_SHAPE + 2 * WILD[1]),)]
    rate = RATE / world.shared.reward_square + sum(1 / s2 for s2 in noises)
    assert world.shared.noise_scale == pytest.approx(0.9 / rate)
    plain(common.draw_noise_scale)(world.arms, Script(gammas=[1e-30]))
    least = common.NOISE_LOW * (world.shared.reward_square + world.shared.arm_var[0] + world.shared.arm_var[1])
    assert plain(common.least_noise)(world.shared) == pytest.approx(least)
    assert world.shared.noise_scale == pytest.approx(100 * least)
    world.shared.arm_var[0] = 1e9
    assert plain(common.least_noise)(world.shared) == pytest.approx(common.NOISE_LOW * 101 * world.shared.reward_square)


@pytest.mark.parametrize("uniform", [0.0, 0.999])
def test_the_concentration_is_drawn_by_escobar_and_west(world: World, uniform: float) -> None:
    above, below = [0.5, 0.8, 1.4], [3.0, 2.0, 5.0]
    gammas = [value for pair in zip(above, below, strict=True) for value in pair] + [1.7]
    rng = Script(gammas=gammas, uniforms=[uniform] * 3)
    plain(common.draw_concentration)(world.arms, rng)
    n, K = [8, 4, 3], [3, 2, 1]
    shape = GAMMA_SHAPE + sum(K) - (3 if uniform == 0.0 else 0)
    rate = GAMMA_RATE - sum(np.log(a / (a + b)) for a, b in zip(above, below, strict=True))
    wanted = [(1.75,), (8,), (1.75,), (4,), (1.75,), (3,), (shape,)]
    np.testing.assert_allclose(rng.asked, wanted)
    assert n == [len(SEATS[arm]) for arm in USED]
    assert world.shared.concentration == pytest.approx(1.7 / rate)


def test_the_concentration_knows_how_likely_a_table_is_taken_off(world: World) -> None:
    """shape loses one with probability n / (n + gamma)."""
    for uniform, lost in ((8 / 8.75 - 1e-9, 1), (8 / 8.75 + 1e-9, 0)):
        fresh = make_world()
        fresh.sizes[2:, 0] = 0
        rng = Script(uniforms=[uniform])
        plain(common.draw_concentration)(fresh.arms, rng)
        assert rng.asked[-1] == (pytest.approx(GAMMA_SHAPE + 3 - lost),)


def test_everything_shared_is_drawn_in_turn_and_only_what_is_learned() -> None:
    drawn = ("arm_var", "part_ratio", "noise_scale", "concentration", "location_var")
    learned = tuple(name for name in drawn if name != "concentration")
    for entry, kept in ((None, ()), ("learned", learned), ("concentration_shape", ("concentration",))):
        world, before = make_world(), make_world()
        if entry is not None:
            setattr(world.prior, entry, 0.0)
        plain(common.draw_shared)(world.arms, Script(normals=[0.3] * 99, gammas=[0.9, 0.8, 0.7, 0.6, 0.5, 0.4]))
        for name in drawn:
            same = getattr(world.shared, name) == getattr(before.shared, name)
            assert np.all(same) == np.any(same) == (name in kept)
        assert np.array_equal(world.features.centre, before.features.centre) == (entry == "learned")
        lam, rho = world.shared.arm_var[GROUP], world.shared.part_ratio[GROUP]
        np.testing.assert_allclose(world.features.part_var, lam * rho * world.features.unit)


def test_without_an_intercept_or_locations_nothing_shifts_or_moves(world: World) -> None:
    world.prior.intercept = world.prior.location_shape = 0.0
    assert world.prior.centre_shape == 0.0
    before = [slopes(world, 0, k).copy() for k in range(3)]
    plain(common.draw_shared)(world.arms, Script(normals=[0.3] * 99))
    assert (world.shared.location_var, world.centre_ratio[0]) == (0.55, WIDE)
    for k in range(3):
        np.testing.assert_array_equal(slopes(world, 0, k), before[k])
