"""What the arms share: every conditional from its definition, with a generator that says what it was asked for."""

import numpy as np
import pytest
from scipy import stats

from polyarm.kernels._jit import plain
from polyarm.kernels.robust import shared as common
from polyarm.types import Array
from tests.kernels.robust.world import GROUP, SEATS, W_ROW, WILD, D, World, make_world, rows_of
from tests.kernels.script import Script

LAM_SHAPE, LAM_SCALE, RHO_SHAPE, RHO_SCALE = [1.1, 1.2], [0.3, 0.4], [1.5, 1.6], [0.7, 0.8]  # of the hand-made world
NOISE_SHAPE, RATE_SHAPE, RATE, WIDE, GAMMA_SHAPE, GAMMA_RATE = 1.3, 1.7, 0.9, 3.1, 2.1, 2.2
USED = (0, 2, 3)  # arms with rewards


@pytest.fixture
def world() -> World:
    return make_world()


def slopes(world: World, arm: int, k: int) -> Array:
    return rows_of(world.tables[arm], k, W_ROW, D)


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
    before = [slopes(world, 0, k).copy() for k in range(3)]
    plain(common.draw_shared)(world.arms, Script(normals=[0.3] * 99))
    assert world.shared.location_var == 0.55
    for k in range(3):
        np.testing.assert_array_equal(slopes(world, 0, k), before[k])
