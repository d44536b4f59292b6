"""Where components are at home: distances, weights in a context and the draw of tau, from their definitions."""

import numpy as np
import pytest
from scipy import stats

from polyarm.kernels import robust_places as places
from polyarm.kernels._jit import plain
from polyarm.kernels.robust_places import AT, PRECISION
from polyarm.types import Array
from tests.kernels.robust_world import SEATS, D, World, make_world
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
        v, m = 1 / world.columns[PRECISION, j], world.columns[AT, j]
        n = len(members)
        mean = (m + TAU * members[:, j].sum()) / (1 + TAU * n)
        sd = np.sqrt(v * (1 + TAU / (1 + TAU * n)))
        total += stats.norm.logpdf(at[j], mean, sd) + 0.5 * np.log(2 * np.pi * v)
    return float(total)


def members_of(world: World, arm: int, k: int) -> Array:
    return np.asarray(world.data[arm][np.array(SEATS[arm]) == k, :D])


def test_distance_is_minus_the_log_density(world: World) -> None:
    distance, T, columns = plain(places.distance), world.tables[0], world.columns
    for k in range(3):
        assert distance(T, k, columns, TAU, x, 0.0) == pytest.approx(-predictive(world, members_of(world, 0, k), x))
    assert distance(T, -1, columns, TAU, x, 0.0) == pytest.approx(-predictive(world, np.empty((0, D)), x))
    mine = members_of(world, 0, 0)
    without = predictive(world, mine[1:], mine[0])
    assert distance(T, 0, columns, TAU, mine[0], 1.0) == pytest.approx(-without)
    assert distance(T, 0, columns, 0.0, x, 0.0) == 0.0


def test_weights_in_a_context_have_the_mean_and_the_size_of_the_definition(world: World) -> None:
    """Means are exact; the size answers for n rewards and for places that are not known, every term of it."""
    counts, K = np.empty(4), 3
    plain(places.local_counts)(world.tables[0], K, world.columns, GAMMA, TAU, x, counts)
    members = [members_of(world, 0, k) for k in range(K)] + [np.empty((0, D))]
    held = np.array([len(part) for part in members[:-1]] + [GAMMA])
    weights = held * np.exp([predictive(world, part, x) for part in members])
    P = weights / weights.sum()
    np.testing.assert_allclose(counts / counts.sum(), P)

    Z = np.empty(K + 1)  # var of log N(x; m, v) over m ~ N(place, vague v) in two columns
    for k, part in enumerate(members):
        shrink = 1 / (1 + TAU * len(part))
        far = 0.0
        for j in range(D - 1):
            mean = (world.columns[AT, j] + TAU * part[:, j].sum()) * shrink
            far += (x[j] - mean) ** 2 * world.columns[PRECISION, j]
        vague = TAU * shrink
        Z[k] = vague * (far + 0.5 * vague * (D - 1))
    blur = 0.0
    for k in range(K + 1):
        others = sum(P[j] ** 2 * Z[j] for j in range(K + 1) if j != k)
        blur += P[k] ** 2 * ((1 - P[k]) ** 2 * Z[k] + others)
    spread = (P * (1 - P)).sum()
    variance = spread / (held.sum() + 1) + blur
    assert counts.sum() == pytest.approx(spread / variance - 1)


def test_weights_without_places_are_counts(world: World) -> None:
    counts = np.empty(4)
    plain(places.local_counts)(world.tables[0], 3, world.columns, GAMMA, 0.0, x, counts)
    np.testing.assert_array_equal(counts, [4, 2, 2, GAMMA])


def test_a_context_that_no_component_knows_leaves_a_size_of_one_at_least(world: World) -> None:
    counts = np.empty(4)
    plain(places.local_counts)(world.tables[0], 3, world.columns, GAMMA, TAU, np.array([-4.0, 4.0, 1.0]), counts)
    assert counts.sum() == pytest.approx(1.0)
    assert counts.min() >= places.NEVER


@pytest.mark.parametrize("normal", [0.0, 0.8])
def test_tau_is_drawn_given_places_in_every_column_of_every_component(world: World, normal: float) -> None:
    """IG(shape + columns/2, scale + squares/2); a place is N(tau away shrink, tau shrink) in units of its column."""
    rng = Script(normals=[normal] * 99, gammas=[2.0])
    drawn = plain(places.draw_tau)(world.tables, world.sizes, world.columns, TAU, 1.9, 0.6, rng)
    squares, count = 0.0, 0
    for arm, parts in enumerate(world.known):
        for k in range(len(parts)):
            mine = members_of(world, arm, k)
            shrink = 1 / (1 + TAU * len(mine))
            for j in range(D - 1):
                away = (mine[:, j] - world.columns[AT, j]).sum() * np.sqrt(world.columns[PRECISION, j])
                squares += (TAU * away * shrink + np.sqrt(TAU * shrink) * normal) ** 2
                count += 1
    assert rng.asked == [(pytest.approx(1.9 + 0.5 * count),)]
    assert drawn == pytest.approx((0.6 + 0.5 * squares) / 2.0)


def test_tau_stays_within_bounds(world: World) -> None:
    for gamma, bound in ((1e300, places.TAU_LOW), (1e-300, places.TAU_HIGH)):
        rng = Script(gammas=[gamma])
        assert plain(places.draw_tau)(world.tables, world.sizes, world.columns, TAU, 1.9, 0.6, rng) == bound
