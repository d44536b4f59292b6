"""Draws of an arm's whole distribution: every number of a drawn mixture from what was drawn, in three features."""

import math

import numpy as np
import pytest
from scipy import stats

from polyarm.kernels._jit import plain
from polyarm.kernels.mixture.means import room_for
from polyarm.kernels.objectives import EXPECTATION, UTILITY, Functional, Parts
from polyarm.kernels.robust import draws
from polyarm.kernels.robust.predict import MAX_STICKS, TAIL, View, describe_components, view_of
from polyarm.types import Array
from tests.kernels.robust.test_predict import common_centre, located, without_idle_lanes, x
from tests.kernels.robust.world import World, make_world
from tests.kernels.script import Script

WEIGHTS = [0.4, 1.1, 0.2, 0.7]  # gammas of the three components of arm 0 and of the unseen


@pytest.fixture
def world() -> World:
    return make_world()


def view(world: World, arm: int) -> View:
    found = located(world, arm)
    return found._replace(c=np.linspace(0.5, 2.0, len(found.m)))


H = np.array([0.6, -1.4, 0.2])  # what the arms have in common


def drawn(world: World, arm: int, at: View, script: Script, h: Array = H) -> tuple[Array, Array, Array]:
    parts: Parts = plain(room_for)(len(at.m) + MAX_STICKS)
    n = plain(draws.draw_mixture)(world.arms, arm, at, h, parts, script)
    return parts.weight[:n], parts.mean[:n], parts.variance[:n]


def test_a_view_is_an_arm_in_a_context(world: World) -> None:
    for arm in range(4):
        m, v, _, G, _, _ = located(world, arm)
        found = without_idle_lanes(plain(view_of)(world.arms, arm, common_centre(world), x[:2]), len(m))
        parts = np.empty((3, len(m)))
        plain(describe_components)(world.books, x[:2], arm, parts)
        np.testing.assert_allclose(found.m, m)
        np.testing.assert_allclose(found.v, v)
        np.testing.assert_allclose(found.c, parts[0])
        np.testing.assert_allclose(found.G.T @ found.G, G.T @ G)
        np.testing.assert_array_equal(found.x, x)


def test_a_mixture_is_written_from_what_is_drawn(world: World) -> None:
    """Weights Dirichlet(c), means m + G'h + sd z with one h, noises of the state; the unseen part in sticks."""
    at = view(world, 0)
    own, z = np.array([0.3, -0.8, 1.2]), np.array([0.5, -1.5, 0.9, 2.0, -0.4, 0.1])
    script = Script(
        normals=[*own, *z],
        gammas=[*WEIGHTS, 1.6, 2.5, 1e-300],
        betas=[0.6, 0.75],
        uniforms=[0.9, 0.0, 0.9],  # the second stick's noise is a wild one
    )
    h, script_tail = np.append(own, H), TAIL
    weight, mean, variance = drawn(world, 0, at, script)
    p = np.array(WEIGHTS) / sum(WEIGHTS)
    left = p[3] * np.array([1.0, 0.4, 0.4 * 0.25])
    assert left[2] > script_tail
    np.testing.assert_allclose(weight[:3], p[:3])
    np.testing.assert_allclose(weight[3:5], left[:2] * [0.6, 0.75])
    assert weight.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(mean[:3], 2.5 + at.m[:3] + np.sqrt(at.v[:3]) * z[:3] + h @ at.G[:, :3])
    np.testing.assert_allclose(mean[3:6], 2.5 + at.m[3] + h @ at.G[:, 3] + math.sqrt(at.v[3]) * z[3:])
    np.testing.assert_allclose(variance[:3], [known.s2 for known in world.known[0]])
    np.testing.assert_allclose(variance[3:6], [0.45 / 1.6, 0.45 / 2.5, 0.45 / 1e-100])
    usual, wild = world.prior.noise_shape, world.prior.wild_shape
    gammas, betas = [a for a in script.asked if len(a) == 1], [a for a in script.asked if len(a) == 2]
    assert gammas[:7] == [*((c,) for c in at.c), (usual,), (wild,), (usual,)]
    assert set(betas) == {(1.0, world.shared.concentration)}
    assert world.shared.origin == 2.5
    assert world.shared.noise_scale == 0.45
    assert 0.0 < world.prior.wild_share < 0.9


def test_sticks_end_where_little_is_left_or_all_are_broken(world: World) -> None:
    at = view(world, 0)
    few = drawn(world, 0, at, Script(gammas=WEIGHTS, betas=[0.9] * 99))[0]
    left = 0.7 / 2.4 * 0.1 ** np.arange(40)
    n = int((left >= TAIL).sum()) + 1
    assert len(few) == 3 + n
    np.testing.assert_allclose(few[3:], [*(0.9 * left[: n - 1]), left[n - 1]], rtol=1e-9)
    many = drawn(world, 0, at, Script(gammas=WEIGHTS, betas=[1e-9] * 9999))[0]
    assert len(many) == 3 + MAX_STICKS
    assert many.sum() == pytest.approx(1.0)


def test_a_noise_beyond_all_bounds_is_cut_off(world: World) -> None:
    world.shared.noise_scale = 1e150
    variance = drawn(world, 1, view(world, 1), Script(gammas=[1.0, 0.0], betas=[0.999999]))[2]
    assert variance[0] == 1e200


def test_an_arm_whose_every_weight_vanishes_is_all_unseen(world: World) -> None:
    weight = drawn(world, 0, view(world, 0), Script(gammas=[0.0] * 4, betas=[0.5] * 99))[0]
    np.testing.assert_array_equal(weight[:4], [0.0, 0.0, 0.0, 0.5])


def test_densities_are_those_of_the_drawn_mixtures(world: World) -> None:
    at = plain(view_of)(world.arms, 0, common_centre(world), x[:2])
    normals, gammas, betas = np.linspace(-1, 1.5, 40), [*WEIGHTS, *[1.3] * 5] * 2, [0.9] * 99
    grid, out = np.array([1.0, 2.5, 4.0]), np.zeros((1, 3))
    plain(draws.draw_density)(world.books, 0, x[:2], grid, out, Script(normals, gammas, betas=betas))
    parts = drawn(world, 0, at, Script(normals[3:], gammas, betas=betas), normals[:3])
    expected = sum(w * stats.norm.pdf(grid, m, math.sqrt(v)) for w, m, v in zip(*parts, strict=True))
    np.testing.assert_allclose(out[0], expected)


def test_single_values_stand_beside_the_parts() -> None:
    parts = Parts(np.array([0.5, 0.5, 9.0, 9.0, 9.0]), np.arange(5.0), np.full(5, 2.0))
    values, shares = np.array([7.0, -3.0]), np.array([0.1, 0.3, 0.6])
    assert plain(draws.with_values)(parts, 2, values, shares) == 4
    np.testing.assert_allclose(parts.weight[:4], [0.3, 0.3, 0.1, 0.3])
    np.testing.assert_allclose(parts.mean, [0.0, 1.0, 7.0, -3.0, 4.0])
    np.testing.assert_allclose(parts.variance, [2.0, 2.0, 0.0, 0.0, 2.0])


@pytest.mark.parametrize("kind", [EXPECTATION, UTILITY])
def test_worths_are_those_of_the_drawn_mixtures(world: World, kind: int) -> None:
    """For a utility the unseen components have a typical noise variance b / a."""
    values, out = np.array([7.0]), np.empty((2, 4))
    shares = np.empty((4, 2, 2))
    shares[..., 0] = np.linspace(0.1, 0.8, 8).reshape(4, 2)
    shares[..., 1] = 1 - shares[..., 0]
    normals, gammas, betas = np.linspace(-1, 1.5, 400), np.linspace(0.5, 2, 400), [0.9999] * 99
    script = Script(normals, gammas, betas=betas)
    r, common = 0.8, common_centre(world)
    plain(draws.draw_worths)(world.books, x[:2], Functional(kind, r, 0.0), values, shares, out, script)
    script, h = Script(normals[6:], gammas, betas=betas), normals[:6].reshape(2, 3)
    for arm in range(4):
        at = plain(view_of)(world.arms, arm, common, x[:2])
        for draw in range(2):
            weight, mean, variance = drawn(world, arm, at, script, h[draw])
            value, rest = shares[arm, draw]
            if kind == EXPECTATION:
                expected = value * 7.0 + rest * weight @ mean
            else:
                variance[len(world.known[arm]) :] = 0.45 / world.prior.noise_shape
                utility = rest * weight @ np.exp(-r * mean + r * r * variance / 2) + value * math.exp(-r * 7.0)
                expected = -math.log(utility) / r
            assert out[draw, arm] == pytest.approx(expected)
