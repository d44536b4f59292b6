"""Scales judged with slopes and centres integrated out: every term against dense algebra, in three features."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from polyarm.kernels._jit import plain
from polyarm.kernels.robust import evidence
from polyarm.kernels.robust import shared as common
from polyarm.kernels.robust.component import VAR
from polyarm.kernels.robust.evidence import LAM, N_SCALES, NOISE, OUTLYING, RHO
from polyarm.kernels.robust.records import Arms, Room, shared_of
from polyarm.types import Array
from tests.kernels.robust.world import SEATS, WILD, XY_ROW, D, World, make_world
from tests.kernels.script import Script
from tests.statistics.mutants import mutant

NOISE_SHAPE = 1.3


@pytest.fixture
def world() -> World:
    return make_world()


def parts_of(world: World) -> tuple[Arms, Room]:
    return world.arms, world.room


def rows_of(world: World, arm: int, k: int) -> tuple[Array, Array]:
    mine = world.data[arm][np.array(SEATS[arm]) == k]
    return mine[:, :D], mine[:, D]


def dense(world: World, arm: int) -> float:
    """Log density of an arm's rewards without 2 pi, from the covariance of all of them."""
    z, rows = np.array(SEATS[arm]), world.data[arm]
    F, y = rows[:, :D], rows[:, D]
    L, R, c = world.features.arm_var, world.features.part_var, world.features.centre
    covariance = (F * L) @ F.T + (z[:, None] == z) * ((F * R) @ F.T) + np.diag(world.tables[arm, VAR, z])
    return float(stats.multivariate_normal.logpdf(y, F @ c, covariance)) + 0.5 * len(y) * math.log(2 * math.pi)


def test_misses_are_squared_errors_around_any_slopes(world: World) -> None:
    at, t = np.array([0.3, -0.7, 1.1]), np.empty(D)
    for k in range(3):
        X, y = rows_of(world, 0, k)
        found = plain(evidence.misses)(world.tables[0], k, at, t)
        assert found == pytest.approx(float(((y - X @ at) ** 2).sum()))
        np.testing.assert_allclose(t, X.T @ y - X.T @ X @ at)
    world.tables[0, 2, 0] = -50.0  # a sum of squares that rounding has eaten up
    assert plain(evidence.misses)(world.tables[0], 0, at, t) == 0.0


@pytest.mark.parametrize("shared", [True, False])
def test_the_evidence_is_the_density_of_all_rewards(shared: bool) -> None:
    world = make_world(shared)
    arms, room = parts_of(world)
    for arm in (0, 2, 3):
        K = arms.sizes[arm, 0]
        found = plain(evidence.arm_evidence)(arms.components[arm], K, arms.centres[arm], arms.features, room.solver)
        assert found == pytest.approx(dense(world, arm), rel=1e-6 if shared else 1e-4)
    total = plain(evidence.evidence)(arms, room.solver)
    assert total == pytest.approx(sum(dense(world, arm) for arm in (0, 2, 3)), rel=1e-6 if shared else 1e-4)


@pytest.mark.parametrize("rho", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_the_prior_of_all_scales(shared: bool, rho: bool) -> None:
    """IG(shape, scale S2) of lam2, IG(shape, scale) of rho, Gamma(shape, rate / S2) of b: of their logarithms."""
    world = make_world(shared)
    if not rho:
        world.prior.part_shape[:] = 0.0

    def log_prior(hyper: Array) -> float:
        given = plain(shared_of)(hyper)
        b, S2 = given.noise_scale, given.reward_square
        total = stats.gamma.logpdf(b, 1.7, scale=S2 / 0.9) + math.log(b)
        for lam, shape, scale in zip(given.arm_var, (1.1, 1.2), (0.3, 0.4), strict=True):
            total += stats.invgamma.logpdf(lam, shape, scale=scale * S2) + math.log(lam)
        if shared and rho:
            for ratio, shape, scale in zip(given.part_ratio, (1.5, 1.6), (0.7, 0.8), strict=True):
                total += stats.invgamma.logpdf(ratio, shape, scale=scale) + math.log(ratio)
        return float(total)

    def told(hyper: Array) -> float:
        return float(plain(evidence.log_prior)(plain(shared_of)(hyper), world.prior))

    other = world.hyper.copy()
    other[[LAM, LAM + 1, RHO, RHO + 1, NOISE]] = 1.9, 0.13, 0.9, 0.07, 2.2
    ours = [told(hyper) for hyper in (other, world.hyper)]
    assert ours[0] - ours[1] == pytest.approx(log_prior(other) - log_prior(world.hyper))
    for which in (LAM, LAM + 1, RHO, RHO + 1, NOISE):
        one = world.hyper.copy()
        one[which] = other[which]
        difference = told(one) - ours[1]
        assert difference == pytest.approx(log_prior(one) - log_prior(world.hyper), abs=1e-12)


@pytest.mark.parametrize("which", [LAM, LAM + 1, RHO, RHO + 1])
def test_a_scale_is_multiplied_within_its_bounds(world: World, which: int) -> None:
    unit = world.shared.reward_square if which < RHO else 1.0
    low, high = (1e-12, 1e12) if which < RHO else (1e-6, 1e4)
    for target, fits in ((low * 1.01, True), (low * 0.99, False), (high * 0.99, True), (high * 1.01, False)):
        fresh = make_world()
        arms, _ = parts_of(fresh)
        factor = target * unit / fresh.hyper[which]
        assert plain(evidence.multiply)(arms, which, factor) == fits
        assert fresh.hyper[which] == pytest.approx(target * unit)
        np.testing.assert_array_equal(fresh.tables, world.tables)
        others = np.delete(fresh.hyper, which)
        np.testing.assert_array_equal(others, np.delete(world.hyper, which))


def test_noise_is_multiplied_everywhere_and_stays_above_the_least(world: World) -> None:
    arms, _ = parts_of(world)
    before = world.tables[:, VAR].copy()
    least = plain(common.least_noise)(world.shared)
    assert plain(evidence.multiply)(arms, NOISE, 0.5)
    assert world.shared.noise_scale == pytest.approx(0.225)
    for arm in range(4):
        K = world.sizes[arm, 0]
        np.testing.assert_allclose(world.tables[arm, VAR, :K], 0.5 * before[arm, :K])
        np.testing.assert_array_equal(world.tables[arm, VAR, K:], before[arm, K:])
    smallest = world.tables[0, VAR, 0]
    assert not plain(evidence.multiply)(arms, NOISE, 0.99 * least / smallest)
    assert plain(evidence.multiply)(arms, NOISE, 1.02)
    world.tables[:, VAR] = 1.0
    world.shared.noise_scale = 0.9 * least  # b itself may be the least
    assert not plain(evidence.multiply)(arms, NOISE, 1.0)


@pytest.mark.parametrize("s2", [0.2, 3.0, 50.0])
def test_shares_are_prior_over_proposal(world: World, s2: float) -> None:
    """(1 - wild) IG(a, b) + wild IG(a', b) over 1/2 IG(a, b) + 1/2 IG(a + n/2, b + e/2)."""
    n, e, b = 3.0, 40.0, 0.45
    usual, wild = (stats.invgamma.pdf(s2, shape, scale=b) for shape in (NOISE_SHAPE, WILD[1]))
    bulk = stats.invgamma.pdf(s2, NOISE_SHAPE + n / 2, scale=b + e / 2)
    expected = math.log(((1 - WILD[0]) * usual + WILD[0] * wild) / (0.5 * usual + 0.5 * bulk))
    assert plain(evidence.log_share)(s2, n, e, b, world.prior) == pytest.approx(expected)


def test_a_share_far_out_does_not_overflow(world: World) -> None:
    n, e, b, s2 = 400.0, 1e9, 0.45, 1e6
    usual = stats.invgamma.logpdf(s2, NOISE_SHAPE, scale=b)
    bulk = stats.invgamma.logpdf(s2, NOISE_SHAPE + n / 2, scale=b + e / 2)
    log_tail = math.log(plain(common.tail)(s2 / b, world.prior))
    expected = usual + log_tail - np.logaddexp(usual, bulk) + math.log(2)
    assert plain(evidence.log_share)(s2, n, e, b, world.prior) == pytest.approx(float(expected))


def far_out(world: World, arm: int, k: int, distance: float) -> None:
    """Move the rewards of a component so far away, in its sums."""
    X, y = rows_of(world, arm, k)
    T, far = world.tables[arm], y + distance
    T[2, k] = far @ far
    T[XY_ROW : XY_ROW + D, k] = X.T @ far


@pytest.mark.parametrize("usual", [True, False])
def test_noise_of_outlying_components_is_drawn_from_either_half(world: World, usual: bool) -> None:
    far_out(world, 0, 1, 60.0)
    arms, room = parts_of(world)
    before = world.tables[:, VAR].copy()
    e = plain(evidence.misses)(world.tables[0], 1, world.features.centre, np.empty(D))
    script = Script(uniforms=[0.4 if usual else 0.6], gammas=[0.7])
    gain = plain(evidence.redraw_outlying)(arms, room, script)
    drawn = 0.45 / 0.7 if usual else (0.45 + e / 2) / 0.7
    assert script.asked == [(NOISE_SHAPE if usual else NOISE_SHAPE + 1.0,)]
    assert world.tables[0, VAR, 1] == pytest.approx(drawn)
    shares = [plain(evidence.log_share)(s2, 2.0, e, 0.45, world.prior) for s2 in (drawn, before[0, 1])]
    assert gain == pytest.approx(shares[0] - shares[1])
    others = world.tables[:, VAR].copy()
    others[0, 1] = before[0, 1]
    np.testing.assert_array_equal(others, before)
    plain(evidence.restore_noise)(arms, room)
    np.testing.assert_array_equal(world.tables[:, VAR], before)


def test_only_components_beyond_the_limit_are_outlying_and_none_falls_below_the_least(world: World) -> None:
    c = world.features.centre
    X, y = rows_of(world, 2, 0)
    fit = world.tables[2]
    for factor, n_drawn in ((0.99, 0), (1.01, 1)):
        far = X @ c + math.sqrt(factor * OUTLYING * world.shared.reward_square)  # so far on average, exactly
        far_out(world, 2, 0, 0.0)
        fit[2, 0] = far @ far
        fit[XY_ROW : XY_ROW + D, 0] = X.T @ far
        arms, room = parts_of(world)
        script = Script(uniforms=[0.0], gammas=[1e30])
        gain = plain(evidence.redraw_outlying)(arms, room, script)
        assert len(script.asked) == n_drawn
        assert gain == (-math.inf if n_drawn else 0.0)
    assert len(y) == 2


def target(world: World) -> float:
    arms, room = parts_of(world)
    plain(common.set_variances)(world.shared, world.features, world.prior)
    known = plain(evidence.evidence)(arms, room.solver) + plain(evidence.log_prior)(world.shared, world.prior)
    if world.prior.centre_shape > 0:  # kappa ~ IG(shape, scale lam2 / S2)
        scale = world.prior.centre_scale * world.shared.arm_var[0] / world.shared.reward_square
        known += stats.invgamma.logpdf(world.centre_ratio[0], world.prior.centre_shape, scale=scale)
    return float(known)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(("which", "normal"), [(LAM, 0.8), (LAM + 1, -0.7), (RHO, 1.4), (RHO + 1, -2.0), (NOISE, 0.5)])
def test_a_proposal_is_taken_with_metropolis_probability(which: int, normal: float, learned: bool) -> None:
    """Step exp(0.3 10^u z); taken where log(1 - uniform) is below the change of evidence and prior."""
    factor = math.exp(0.3 * 10**0.25 * normal)
    changed = make_world()
    changed.prior.centre_shape = 1.4 * learned
    before = target(changed)
    changed.hyper[which] *= factor
    if which == NOISE:
        changed.tables[:, VAR] *= factor
    gain = target(changed) - before
    for shift, taken in ((-1e-6, True), (1e-6, False)):
        world = make_world()
        world.prior.centre_shape = 1.4 * learned
        log_uniform = min(gain + shift, -1e-12)
        uniforms = [0.5, 0.25] + ([0.9] if which < NOISE else []) + [-math.expm1(log_uniform)]
        script = Script(uniforms=uniforms + [0.5, 0.25] * 9, normals=[normal, 0.0, 0.0])
        arms, room = parts_of(world)
        took = proposals(1)(arms, which, which + 1, room, script)
        if gain + shift < 0:
            assert took == taken
        expected = factor if took else 1.0
        fresh = make_world()
        assert world.hyper[which] == pytest.approx(expected * fresh.hyper[which])
        if which == NOISE:
            np.testing.assert_allclose(world.tables[:, VAR], expected * fresh.tables[:, VAR])
        wide = np.array([world.features.arm_var, world.features.part_var])
        plain(common.set_variances)(world.shared, world.features, world.prior)
        np.testing.assert_allclose(wide, [world.features.arm_var, world.features.part_var])


def proposals(n: int) -> Callable[..., Any]:
    """The Metropolis steps, so many of them."""
    kernel = mutant(evidence.propose_scales, {})
    kernel.__globals__["PROPOSALS"] = n
    return kernel


def test_entries_are_drawn_evenly_and_those_that_are_fixed_are_left_alone() -> None:
    for uniform, which in ((0.0, LAM), (0.3, LAM + 1), (0.5, RHO), (0.7, RHO + 1), (0.9, NOISE)):
        world = make_world()
        arms, room = parts_of(world)
        script = Script(uniforms=[uniform, 0.25, 0.9, 1e-300, 0.0], normals=[1e-3])
        proposals(1)(arms, LAM, N_SCALES, room, script)
        changed = np.flatnonzero(world.hyper != make_world().hyper)
        assert changed.tolist() in ([which], [])
    for centred, shape in ((0.0, 1.5), (1.0, 0.0)):
        world = make_world()
        world.prior.shared_centre, world.prior.part_shape[0] = centred, shape
        arms, room = parts_of(world)
        assert not proposals(1)(arms, RHO, RHO + 1, room, Script(normals=[0.5]))
        assert world.shared.part_ratio[0] == make_world().shared.part_ratio[0]


def with_an_outlier() -> tuple[World, float]:
    """A world with one outlying component, whose noise variance suits it, and its squared misses."""
    world = make_world()
    far_out(world, 0, 1, 60.0)
    e = plain(evidence.misses)(world.tables[0], 1, world.features.centre, np.empty(D))
    world.tables[0, VAR, 1] = (0.45 + e / 2) / (NOISE_SHAPE + 1.0)
    return world, e


def test_a_joint_proposal_changes_scale_and_outlying_noise_or_neither() -> None:
    """The threshold of taking it is evidence + prior + prior over proposal of the noise, after minus before."""
    world, e = with_an_outlier()
    old, new, factor = world.tables[0, VAR, 1], (0.45 + e / 2) / 9.0, math.exp(-0.4 * 0.3 * 10**0.25)
    shares = [plain(evidence.log_share)(s2, 2.0, e, 0.45, world.prior) for s2 in (new, old)]
    before, lam = target(world), world.shared.arm_var[0]
    world.shared.arm_var[0] *= factor
    world.tables[0, VAR, 1] = new
    gain = target(world) - before + shares[0] - shares[1]
    assert gain < -0.01
    for shift, taken in ((-1e-6, True), (1e-6, False)):
        world, _ = with_an_outlier()
        arms, room = parts_of(world)
        script = Script(uniforms=[0.0, 0.25, 0.3, 0.9, -math.expm1(gain + shift)], normals=[-0.4], gammas=[9.0])
        assert proposals(1)(arms, LAM, LAM + 1, room, script) == taken
        assert world.tables[0, VAR, 1] == pytest.approx(new if taken else old)
        assert world.shared.arm_var[0] == pytest.approx(lam * factor if taken else lam)
        if not taken:
            assert target(world) == pytest.approx(before)


def log_density(world: World, k: int, w0: Array) -> float:
    """Of a noise variance in arm 0, as the kernel has it."""
    given = (world.features.part_var, world.shared.noise_scale, world.prior, world.room.solver)
    return float(plain(evidence.noise_density)(world.tables[0], k, w0, *given))


@pytest.mark.parametrize("k", [0, 1, 2])
def test_the_density_of_a_noise_variance_without_its_slopes(world: World, k: int) -> None:
    w0, (X, y), found, exact = np.array([0.2, -0.3, 0.5]), rows_of(world, 0, k), [], []
    for s2 in (0.3, 1.1, 4.0):
        world.tables[0, VAR, k] = s2
        found.append(log_density(world, k, w0))
        covariance = (X * world.features.part_var) @ X.T + s2 * np.eye(len(y))
        usual, wild = (stats.invgamma.pdf(s2, shape, scale=0.45) for shape in (NOISE_SHAPE, WILD[1]))
        prior = math.log((1 - WILD[0]) * usual + WILD[0] * wild) + math.log(s2)
        exact.append(prior + float(stats.multivariate_normal.logpdf(y, X @ w0, covariance)))
    np.testing.assert_allclose(np.diff(found), np.diff(exact), rtol=1e-6)


def test_a_noise_variance_is_proposed_and_taken_with_metropolis_probability(world: World) -> None:
    w0, factor = np.array([0.2, -0.3, 0.5]), math.exp(0.3 * 10**0.25 * 0.8)
    arms, room = parts_of(world)
    T, old = world.tables[0], world.tables[0, VAR, 1]
    before = log_density(world, 1, w0)
    T[VAR, 1] = old * factor
    gain = log_density(world, 1, w0) - before
    assert gain < 0
    for shift, taken in ((-1e-6, True), (1e-6, False)):
        T[VAR, 1] = old
        script = Script(uniforms=[0.25, -math.expm1(gain + shift)], normals=[0.8])
        plain(evidence.propose_noise)(T, 1, w0, arms, room.solver, script)
        assert T[VAR, 1] == pytest.approx(old * factor if taken else old)
    T[VAR, 1] = old
    script = Script(uniforms=[1.0, 1.0 - 1e-16], normals=[-9.0])  # below the least it is never taken
    plain(evidence.propose_noise)(T, 1, w0, arms, room.solver, script)
    assert T[VAR, 1] == old
