"""The region of contexts that a component explains: distances, weights, the draw of tau, by definition."""

import numpy as np
import pytest
from scipy import stats

from polyarm.kernels._jit import plain
from polyarm.kernels.robust import gating
from polyarm.types import Array
from tests.kernels.robust.world import SEATS, D, World, make_world
from tests.kernels.script import Script

TAU, GAMMA = 0.55, 0.75
x = np.array([0.7, -1.1, 1.0])


@pytest.fixture
def world() -> World:
    return make_world()


def predictive(world: World, members: Array, at: Array) -> float:
    """Log density of a context in a component with these members, relative to N(., v) at its centre."""
    total = 0.0
    for j in range(D - 1):  # the intercept says nothing
        v, m = 1 / world.features.precision[j], world.features.mean[j]
        n = len(members)
        mean = (m + TAU * members[:, j].sum()) / (1 + TAU * n)
        sd = np.sqrt(v * (1 + TAU / (1 + TAU * n)))
        total += stats.norm.logpdf(at[j], mean, sd) + 0.5 * np.log(2 * np.pi * v)
    return float(total)


def members_of(world: World, arm: int, k: int) -> Array:
    return np.asarray(world.data[arm][np.array(SEATS[arm]) == k, :D])


def test_distance_is_minus_the_log_density(world: World) -> None:
    distance, T, features = plain(gating.minus_log_density), world.tables[0], world.features
    for k in range(3):
        assert distance(T, k, features, TAU, x, 0.0) == pytest.approx(-predictive(world, members_of(world, 0, k), x))
    assert distance(T, -1, features, TAU, x, 0.0) == pytest.approx(-predictive(world, np.empty((0, D)), x))
    mine = members_of(world, 0, 0)
    without = predictive(world, mine[1:], mine[0])
    assert distance(T, 0, features, TAU, mine[0], 1.0) == pytest.approx(-without)
    assert distance(T, 0, features, 0.0, x, 0.0) == 0.0


def test_distances_of_four_components_are_those_of_each(world: World) -> None:
    T, features = world.tables[0], world.features
    found = plain(gating.minus_log_densities)(T, 0, features, TAU, x)
    each = [plain(gating.minus_log_density)(T, k, features, TAU, x, 0.0) for k in range(4)]
    np.testing.assert_allclose(found, each, rtol=1e-14)
    np.testing.assert_array_equal(plain(gating.minus_log_densities)(T, 0, features, 0.0, x), 0.0)


def test_weights_in_a_context_have_the_mean_and_the_size_of_the_definition(world: World) -> None:
    """Means are exact; the size answers for n rewards and for locations that are not known, every term of it."""
    counts, K = np.empty(4), 3
    plain(gating.local_counts)(world.tables[0], K, world.features, world.shared, x, counts)
    members = [members_of(world, 0, k) for k in range(K)] + [np.empty((0, D))]
    held = np.array([len(part) for part in members[:-1]] + [GAMMA])
    weights = held * np.exp([predictive(world, part, x) for part in members])
    P = weights / weights.sum()
    np.testing.assert_allclose(counts / counts.sum(), P)

    Z = np.empty(K + 1)  # var of log N(x; m, v) over m ~ N(location, vague v) in two columns
    for k, part in enumerate(members):
        shrink = 1 / (1 + TAU * len(part))
        far = 0.0
        for j in range(D - 1):
            mean = (world.features.mean[j] + TAU * part[:, j].sum()) * shrink
            far += (x[j] - mean) ** 2 * world.features.precision[j]
        vague = TAU * shrink
        Z[k] = vague * (far + 0.5 * vague * (D - 1))
    blur = 0.0
    for k in range(K + 1):
        others = sum(P[j] ** 2 * Z[j] for j in range(K + 1) if j != k)
        blur += P[k] ** 2 * ((1 - P[k]) ** 2 * Z[k] + others)
    spread = (P * (1 - P)).sum()
    variance = spread / (held.sum() + 1) + blur
    assert counts.sum() == pytest.approx(spread / variance - 1)


def test_weights_without_locations_are_counts(world: World) -> None:
    counts = np.empty(4)
    world.shared.location_var = 0.0
    plain(gating.local_counts)(world.tables[0], 3, world.features, world.shared, x, counts)
    np.testing.assert_array_equal(counts, [4, 2, 2, GAMMA])


def test_a_context_that_no_component_knows_leaves_a_size_of_one_at_least(world: World) -> None:
    counts = np.empty(4)
    plain(gating.local_counts)(world.tables[0], 3, world.features, world.shared, np.array([-4.0, 4.0, 1.0]), counts)
    assert counts.sum() == pytest.approx(1.0)
    assert counts.min() >= gating.NEVER


@pytest.mark.parametrize("normal", [0.0, 0.8])
def test_tau_is_drawn_given_locations_in_every_column_of_every_component(world: World, normal: float) -> None:
    """IG(shape + columns/2, scale + squares/2); a location is N(tau away shrink, tau shrink) in units of its column."""
    rng = Script(normals=[normal] * 99, gammas=[2.0])
    drawn = plain(gating.draw_location_var)(world.arms, rng)
    squares, count = 0.0, 0
    for arm, parts in enumerate(world.known):
        for k in range(len(parts)):
            mine = members_of(world, arm, k)
            shrink = 1 / (1 + TAU * len(mine))
            for j in range(D - 1):
                away = (mine[:, j] - world.features.mean[j]).sum() * np.sqrt(world.features.precision[j])
                squares += (TAU * away * shrink + np.sqrt(TAU * shrink) * normal) ** 2
                count += 1
    assert rng.asked == [(pytest.approx(1.9 + 0.5 * count),)]
    assert drawn == pytest.approx((0.6 + 0.5 * squares) / 2.0)


def test_tau_stays_within_bounds(world: World) -> None:
    for gamma, bound in ((1e300, gating.TAU_LOW), (1e-300, gating.TAU_HIGH)):
        rng = Script(gammas=[gamma])
        assert plain(gating.draw_location_var)(world.arms, rng) == bound
