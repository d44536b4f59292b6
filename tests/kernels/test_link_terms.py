"""Every formula of counts and marks against SciPy and dense algebra, in a state written down by hand.

Two columns, one of them far from 0, and an intercept; three arms, the last without rewards; a grid from -1 in steps of
a half.  Every number has a value of its own, so that no term can be left out, or taken twice, unnoticed.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from polyarm.inference.door import copied
from polyarm.kernels import links as kernels
from polyarm.kernels._jit import plain
from polyarm.kernels.links import (
    ALIVE,
    BEYOND,
    COUNTS,
    DISPERSION,
    FAMILIES,
    HIGHEST,
    LAM,
    LEVEL,
    LOWEST,
    MARKS,
    MEAN,
    NARROW,
    NEVER,
    STEP,
    STRIDE,
    SWITCH,
    VARIANCE,
    Links,
)
from polyarm.kernels.sticks import AT, NEXT, STRIDES, UNIT
from polyarm.types import Array
from tests.kernels.script import Script
from tests.statistics.mutants import mutant

A, D = 3, 3
P = D * (D + 1) // 2
LOWER = np.tril_indices(D)
N_ROWS = (5, 3, 0)  # rewards of every arm
HYPERPRIORS = np.array([[3.1, 2.3, 1.7, 0.9, 5.0, 7.0, 40.0, 60.0], [2.1, 1.3, 0.7, 1.9, 3.0, 4.0, 30.0, 20.0]])
X = np.array([0.4, 8.7])
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


class World(NamedTuple):
    links: Links
    data: tuple[Array, ...]


def sums_of(rows: Array, family: int) -> Array:
    """Sum of z f and of w f f', from the definition."""
    out = np.zeros(1 + D + P)
    for row in rows:
        f, w, z = row[:D], row[D + 1 + family], row[D + 1 + FAMILIES + family]
        out += np.concatenate([[1.0], z * f, w * np.outer(f, f)[LOWER]])
    return out


@pytest.fixture
def world() -> World:
    rng = np.random.default_rng(7)
    data = []
    for n in N_ROWS:
        rows = np.zeros((6, D + 1 + 2 * FAMILIES))
        for row in rows[:n]:
            row[:D] = [rng.standard_normal(), 9.0 + rng.standard_normal(), 1.0]
            row[D] = -1.0 + 0.5 * rng.integers(2, 6)
            row[D + 1 : D + 1 + FAMILIES], row[D + 1 + FAMILIES :] = 0.2 + rng.random(2), rng.standard_normal(2)
        data.append(rows)
    columns = np.zeros((6, D))
    columns[UNIT], columns[AT] = [0.6, 1.7, 0.0], [0.0, 9.0, 0.0]
    grid = np.zeros(ALIVE + FAMILIES)
    grid[LOWEST], grid[HIGHEST], grid[STEP], grid[ALIVE:] = -1.0, 2.0, 0.5, 1.0
    kept = np.abs(rng.standard_normal((A, FAMILIES, 1 + D + P)))
    sums = np.stack([[sums_of(rows[:n], h) for h in range(2)] for rows, n in zip(data, N_ROWS, strict=True)])
    fits = np.stack([[line(rng) for _ in range(FAMILIES)] for _ in range(A)])
    spreads = np.array([[0.5, 0.9, 1.2], [0.8, 0.8, 1.4]])
    guess = np.stack([np.vstack([0.3 * rng.standard_normal(D), spreads]) for _ in range(FAMILIES)])
    sizes = np.array([[n, n] for n in N_ROWS])
    links = Links(sums, kept, fits, guess, np.array([-0.7, 0.4, 1.3]), np.array([0.3, 0.4]), grid, columns, sizes)
    return World(links, tuple(data))


def line(rng: np.random.Generator) -> Array:
    """Factor of the information about some coefficients, and their centre; above the diagonal is nothing to read."""
    factor = np.tril(rng.standard_normal((D, D)), -1) + np.diag(1.0 + rng.random(D)) + np.triu(np.full((D, D), 99.0), 1)
    return np.column_stack([factor, [0.3 * rng.standard_normal(), 0.05 * rng.standard_normal(), 0.4]])


def normal_of(fit: Array) -> tuple[Array, Array]:
    F = np.tril(fit[:, :D])
    return fit[:, D].copy(), np.asarray(np.linalg.inv(F @ F.T), dtype=np.float64)


def predicted(links: Links, arm: int, family: int, f: Array) -> tuple[float, float]:
    """Mean and variance of f'beta."""
    U, V = normal_of(links.fits[arm, family])
    return float(f @ U), float(f @ V @ f)


def log_probability(links: Links, family: int, eta: float, k: int) -> float:
    """By SciPy."""
    if family == MARKS:
        edges = np.concatenate([[-np.inf], links.cuts, [np.inf]])
        return float(np.log(expit(eta - edges[k]) - expit(eta - edges[k + 1])))
    mu, r = math.exp(eta + links.level[LEVEL]), links.level[DISPERSION]
    return float(stats.nbinom.logpmf(k, 1 / r, 1 / (1 + r * mu)))


def test_rewards_have_numbers_on_the_grid(world: World) -> None:
    for y, count, mark in ((1.5, 3, 5), (1.6, 3, 5), (1.4, 3, 5), (0.0, 0, 2), (-1.0, -2, 0)):
        assert plain(kernels.number_of)(world.links, COUNTS, y) == count
        assert plain(kernels.number_of)(world.links, MARKS, y) == mark


def test_a_family_lives_where_it_has_lines_and_is_a_model(world: World) -> None:
    links = world.links
    links.grid[ALIVE + MARKS] = 0.0
    assert plain(kernels.lives)(links, COUNTS)
    assert not plain(kernels.lives)(links, MARKS)
    assert not plain(kernels.lives)(links._replace(fits=links.fits[:, :0]), COUNTS)
    assert plain(kernels.highest_eta)(links) == pytest.approx(math.log(BEYOND * (2.0 / 0.5 + 1)))


@pytest.mark.parametrize("family", [COUNTS, MARKS])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_slopes_are_derivatives_of_log_probabilities(world: World, family: int, k: int) -> None:
    h = 1e-4
    for eta in (-1.1, 0.3, 1.7):
        low, here, high = (log_probability(world.links, family, eta + t, k) for t in (-h, 0.0, h))
        s, w = plain(kernels.slope_at)(world.links, family, eta, float(k))
        assert s == pytest.approx((high - low) / (2 * h), rel=1e-5, abs=1e-7)
        assert w == pytest.approx((2 * here - high - low) / h**2, rel=1e-4, abs=1e-5)


def test_slopes_stop_at_the_largest_mean_and_the_outer_marks(world: World) -> None:
    slope = plain(kernels.slope_at)
    top = plain(kernels.highest_eta)(world.links) - world.links.level[LEVEL]
    assert slope(world.links, COUNTS, top + 3.0, 2.0) == slope(world.links, COUNTS, top, 2.0)
    assert slope(world.links, MARKS, 0.2, 9.0) == slope(world.links, MARKS, 0.2, 3.0)
    assert slope(world.links, MARKS, 0.2, -4.0) == slope(world.links, MARKS, 0.2, 0.0)


@pytest.mark.parametrize("family", [COUNTS, MARKS])
@pytest.mark.parametrize("v", [0.9 * NARROW, 1.1 * NARROW])
def test_expected_slopes_are_sums_over_nodes(world: World, family: int, v: float) -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(3 if v < NARROW else 15)
    pairs = [plain(kernels.slope_at)(world.links, family, 0.3 + math.sqrt(v) * t, 2.0) for t in nodes]
    found = plain(kernels.expected_slope)(world.links, family, 0.3, v, 2.0)
    np.testing.assert_allclose(found, weights @ np.array(pairs) / weights.sum())


def test_a_predictor_is_read_from_factor_and_centre(world: World) -> None:
    f = np.array([0.7, -1.3, 1.0])
    found = plain(kernels.predictor)(world.links.fits[1, 0], f, np.empty(D))
    np.testing.assert_allclose(found, predicted(world.links, 1, 0, f))


def test_sums_are_counted_in_and_afresh(world: World) -> None:
    s, f = np.zeros(1 + D + P), np.array([0.7, -1.3, 1.0])
    plain(kernels.count_in)(s, f, D, 0.6, 0.9)
    np.testing.assert_allclose(s, [0.0, *(0.9 * f), *(0.6 * np.outer(f, f)[LOWER])])
    before = world.links.sums.copy()
    world.links.sums[0, :, 1:] = 99.0
    plain(kernels.recount)(world.links, world.data[0], 0)
    np.testing.assert_allclose(world.links.sums[0, :, 0], before[0, :, 0])
    np.testing.assert_allclose(world.links.sums[0, :, 1:], (before + world.links.kept)[0, :, 1:])
    np.testing.assert_array_equal(world.links.sums[1:], before[1:])


def fitted(links: Links, s: Array, family: int) -> tuple[Array, Array]:
    """Information and centre from sums and a prior of slopes and of the height at `at`."""
    guess, at = links.guess[family], np.append(links.columns[AT, : D - 1], 1.0)
    q = np.append(1 / (guess[VARIANCE, : D - 1] * links.columns[UNIT, : D - 1]), 0.0)
    H = np.zeros((D, D))
    H[LOWER] = s[1 + D :]
    H = H + np.tril(H, -1).T + np.diag(q) + np.outer(at, at) / guess[VARIANCE, -1]
    pull = s[1 : 1 + D] + q * guess[MEAN] + at * guess[MEAN, -1] / guess[VARIANCE, -1]
    return H, np.asarray(np.linalg.solve(H, pull), dtype=np.float64)


def assert_fit(fit: Array, H: Array, U: Array) -> None:
    F = np.tril(fit[:, :D])
    np.testing.assert_allclose(F @ F.T, H, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fit[:, D], U, rtol=1e-8, atol=1e-10)


def test_every_arm_is_fitted_to_its_sums_and_the_prior(world: World) -> None:
    plain(kernels.fit_all)(world.links)
    for arm in range(A):
        for family in range(FAMILIES):
            assert_fit(world.links.fits[arm, family], *fitted(world.links, world.links.sums[arm, family], family))


@pytest.mark.parametrize(("n_moves", "start"), [(0, 0), (1, 3), (3, 4), (3, 11), (5, 2), (9, 2)])
@pytest.mark.parametrize(("steep", "dead"), [(1.0, -1), (40.0, -1), (1.0, COUNTS), (1.0, MARKS)])
def test_a_visit_expands_some_rewards_and_goes_to_the_new_centres(
    world: World, n_moves: int, start: int, steep: float, dead: int
) -> None:
    links, rows, arm, n = world.links, world.data[0], 0, N_ROWS[0]
    links.sizes[arm, NEXT] = 2  # the latest is in the second row
    links.fits[:, :, :, D] *= steep  # from far away the step is held back
    if dead >= 0:
        links.grid[ALIVE + dead] = 0.0
    wanted, s, fits = rows.copy(), links.sums.copy(), links.fits.copy()
    count = min(n_moves, n)
    visited = [1, *((start + t) % n for t in range(1, count))][:count] if count < n else list(range(n))
    for family in (h for h in range(FAMILIES) if h != dead):
        for i in visited:
            f, old = rows[i, :D], wanted[i].copy()
            m, v = predicted(links, arm, family, f)
            k = float(plain(kernels.number_of)(links, family, rows[i, D]))
            slope, w = plain(kernels.expected_slope)(links, family, m, v, k)
            wanted[i, D + 1 + family], wanted[i, D + 1 + FAMILIES + family] = w, slope + w * m
            s[arm, family] += sums_of(wanted[i : i + 1], family) - sums_of(old[None], family)
    if count == n:
        s[arm, :, 1:] = [links.kept[arm, h, 1:] + sums_of(wanted[:n], h)[1:] for h in range(FAMILIES)]
    mutant(kernels.visit, {"STRIDES": 1})(links, rows, arm, n_moves, start)
    np.testing.assert_allclose(rows, wanted)
    np.testing.assert_allclose(links.sums, s, rtol=1e-8, atol=1e-9)
    for family in range(FAMILIES):
        if count == 0 or family == dead:
            np.testing.assert_array_equal(links.fits[arm, family], fits[arm, family])
            continue
        H, U = fitted(links, s[arm, family], family)
        step = U - fits[arm, family, :, D]
        far = float(np.abs(rows[visited, :D] @ step).max())
        assert_fit(links.fits[arm, family], H, fits[arm, family, :, D] + min(1.0, STRIDE / far) * step)
    np.testing.assert_array_equal(links.fits[1:], fits[1:])


@pytest.mark.parametrize(("steep", "n_moves", "expected"), [(0.0, 5, 3), (40.0, 5, STRIDES), (40.0, 3, STRIDES)])
def test_a_visit_goes_on_in_strides_until_none_is_held_back(
    world: World, steep: float, n_moves: int, expected: int
) -> None:
    links, rows = world.links, world.data[0]
    links.fits[:, :, :, D] *= steep
    mine, theirs, taken, far = copied(links), rows.copy(), 0, math.inf
    while far > STRIDE * (1 - 1e-9) and taken < STRIDES:
        before = mine.fits[0, :, :, D].copy()
        mutant(kernels.visit, {"STRIDES": 1})(mine, theirs, 0, n_moves, 4)
        taken, far = taken + 1, float(np.abs(theirs[:5, :D] @ (mine.fits[0, :, :, D] - before).T).max())
    plain(kernels.visit)(links, rows, 0, n_moves, 4)
    assert taken == expected
    np.testing.assert_array_equal(rows, theirs)
    np.testing.assert_array_equal(links.fits, mine.fits)
    np.testing.assert_array_equal(links.sums, mine.sums)


@pytest.mark.parametrize("at", [2, 5])
def test_a_reward_is_taken_in_and_what_had_its_row_stays_for_good(world: World, at: int) -> None:
    links, rows = world.links, world.data[0]
    links.sizes[0, NEXT] = at
    kept, sums, old = links.kept.copy(), links.sums.copy(), rows.copy()
    plain(kernels.add_reward)(links, rows, 0, X, 1.5)
    np.testing.assert_array_equal(rows[at], [*X, 1.0, 1.5, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(np.delete(rows, at, 0), np.delete(old, at, 0))
    sums[0, :, 0] += 1.0
    if at < 5:
        kept[0, :, 1:] += [sums_of(old[at : at + 1], h)[1:] for h in range(FAMILIES)]
    np.testing.assert_allclose(links.sums, sums)
    np.testing.assert_allclose(links.kept, kept)
    assert links.sizes[0].tolist() == [max(5, at + 1), at + 1]
    assert links.sizes[1:].tolist() == [[3, 3], [0, 0]]


@pytest.mark.parametrize("high", [1.0, 1e-3])
def test_what_arms_share_has_the_updates_of_variational_bayes(world: World, high: float) -> None:
    """beta_0 of slopes and of the height at `at` from the arms that have rewards, then one lam of all slopes."""
    links, hyperpriors = world.links, HYPERPRIORS.copy()
    hyperpriors[:, 6:] *= high
    before, fits = links.guess.copy(), links.fits.copy()
    plain(kernels.share)(links, hyperpriors)
    for family, hyperprior in enumerate(hyperpriors):
        lam, at = before[family, LAM], np.append(links.columns[AT, : D - 1], 1.0)
        rows = np.vstack([np.eye(D)[: D - 1], at])
        means, variances = np.empty((2, D)), np.empty((2, D))
        for arm in range(2):
            U, V = normal_of(fits[arm, family])
            means[arm], variances[arm] = rows @ U, np.diag(rows @ V @ rows.T)
        wide = np.array([hyperprior[4], hyperprior[4], hyperprior[5]])
        spread = 1 / (1 / wide + 2 / lam)
        centre = means.sum(axis=0) / lam * spread
        unit = np.array([0.6, 1.7, 1.0])
        squares = (((means - centre) ** 2 + variances) / unit + spread).sum(axis=0)
        slopes = min((hyperprior[2] + 0.5 * squares[:2].sum()) / (hyperprior[0] + 0.5 * 4), hyperprior[6])
        height = min((hyperprior[3] + 0.5 * squares[2]) / (hyperprior[1] + 0.5 * 2), hyperprior[7])
        np.testing.assert_allclose(links.guess[family, MEAN], centre)
        np.testing.assert_allclose(links.guess[family, LAM], [slopes, slopes, height])
        np.testing.assert_allclose(links.guess[family, VARIANCE], spread + np.array([slopes, slopes, height]))
        for arm in range(A):
            assert_fit(links.fits[arm, family], *fitted(links, links.sums[arm, family], family))


def test_a_family_that_is_no_model_shares_nothing(world: World) -> None:
    before = world.links.guess.copy()
    world.links.grid[ALIVE + COUNTS] = 0.0
    plain(kernels.share)(world.links, HYPERPRIORS)
    np.testing.assert_array_equal(world.links.guess[COUNTS], before[COUNTS])
    assert (world.links.guess[MARKS] != before[MARKS]).any()


def mean_reward(links: Links, family: int, eta: float) -> float:
    """In the unit of the rewards."""
    if family == COUNTS:
        return 0.5 * min(math.exp(eta + links.level[LEVEL]), BEYOND * 5.0)
    return float(-1.0 + 0.5 * expit(eta - links.cuts).sum())


@pytest.mark.parametrize("family", [COUNTS, MARKS])
def test_means_follow_the_link(world: World, family: int) -> None:
    eta, out = np.array([[-0.4, 0.9], [1.3, 9.0], [0.2, -2.0]]), np.empty((3, 2))
    plain(kernels.means_at)(world.links, family, eta, out)
    np.testing.assert_allclose(out, [[mean_reward(world.links, family, t) for t in row] for row in eta])


@pytest.mark.parametrize("dead", [-1, COUNTS, MARKS])
def test_moments_are_those_of_a_mixture_of_models(world: World, dead: int) -> None:
    links, weights, f = world.links, np.array([0.2, 0.5, 0.3]), np.append(X, 1.0)
    if dead >= 0:
        links.grid[ALIVE + dead] = weights[1 + dead] = 0.0
        weights /= weights.sum()
    given = np.array([[3.0, 1.0, -0.5], [0.5, 0.1, 0.8]])
    out, many = given.copy(), np.stack([given, given])
    plain(kernels.moments)(links, weights, X, out)
    plain(kernels.moments_many)(links, weights, np.stack([X + 1.0, X]), many)
    np.testing.assert_array_equal(many[1], out)
    assert (many[0] != out).any()
    for arm in range(A):
        first, second = weights[0] * given[0, arm], weights[0] * (given[0, arm] ** 2 + given[1, arm] ** 2)
        for family in range(FAMILIES):
            m, v = predicted(links, arm, family, f)
            means = np.array([mean_reward(links, family, m + math.sqrt(v) * t) for t in NODES])
            first += weights[1 + family] * (WEIGHTS @ means)
            second += weights[1 + family] * (WEIGHTS @ means**2)
        np.testing.assert_allclose(out[:, arm], [first, math.sqrt(second - first**2)], rtol=1e-8)
    certain, alone = np.array([[1.0] * 3, [0.0] * 3]), np.array([1.0, 0.0, 0.0])
    plain(kernels.moments)(links, alone, X, certain)
    np.testing.assert_allclose(certain, [[1.0] * 3, [0.0] * 3])


def test_predictors_are_drawn_for_every_arm(world: World) -> None:
    normals, out = np.linspace(-1, 2, 6), np.empty((2, A))
    plain(kernels.draw_predictors)(world.links, MARKS, X, out, Script(normals))
    for arm in range(A):
        m, v = predicted(world.links, arm, MARKS, np.append(X, 1.0))
        np.testing.assert_allclose(out[:, arm], m + math.sqrt(v) * normals[2 * arm : 2 * arm + 2])


def test_probabilities_are_scipys(world: World) -> None:
    for mu in (0.3, 4.0):
        for k in (0, 1, 5):
            count = plain(kernels.count_probability)
            assert count(mu, 0.0, float(k)) == pytest.approx(stats.poisson.pmf(k, mu))
            assert count(mu, 0.7, float(k)) == pytest.approx(stats.nbinom.pmf(k, 1 / 0.7, 1 / (1 + 0.7 * mu)))
            assert count(mu, 1e-7, float(k)) == pytest.approx(stats.poisson.pmf(k, mu), rel=1e-5)
    edges = np.concatenate([[-np.inf], world.links.cuts, [np.inf]])
    for k in range(-2, 7):
        wanted = expit(0.6 - edges[k]) - expit(0.6 - edges[k + 1]) if 0 <= k <= 3 else 0.0
        assert plain(kernels.mark_probability)(world.links.cuts, 0.6, float(k)) == pytest.approx(wanted)
    crossed = np.array([1.0, 0.5])  # cut points out of order give no negative probability
    assert plain(kernels.mark_probability)(crossed, 0.0, 1.0) == 0.0


@pytest.mark.parametrize("family", [COUNTS, MARKS])
def test_probabilities_in_a_context_are_expected_over_the_line(world: World, family: int) -> None:
    links, at, found = world.links, np.empty(4), np.empty(4)
    exact = np.zeros(4)
    m, v = predicted(links, 1, family, np.append(X, 1.0))
    for t, weight in zip(NODES, WEIGHTS, strict=True):
        eta = m + math.sqrt(v) * t
        plain(kernels.probabilities_at)(links, family, eta, at)
        top = math.log(BEYOND * 5.0) - links.level[LEVEL]
        known = [
            math.exp(log_probability(links, family, min(eta, top) if family == COUNTS else eta, k)) for k in range(4)
        ]
        np.testing.assert_allclose(at, known, rtol=1e-9, atol=1e-15)
        exact += weight * np.array(known)
    plain(kernels.probabilities)(links, family, 1, X, found)
    np.testing.assert_allclose(found, exact, rtol=1e-9)
    plain(kernels.probabilities_at)(links, COUNTS, -1e6, at)
    np.testing.assert_allclose(at, [1.0, 0.0, 0.0, 0.0], atol=1e-9)


@pytest.mark.parametrize("y", [-1.0, 0.0, 0.5, 1.0, 1.5])
@pytest.mark.parametrize("dead", [-1, COUNTS, MARKS])
def test_models_are_judged_by_the_probability_of_a_reward(world: World, y: float, dead: int) -> None:
    links, values = world.links, np.array([0.0, 0.4, 1.1])
    weights, dispersions = np.array([0.2, 0.5, 0.3]), np.array([0.5, 0.2, 0.3])
    if dead >= 0:
        links.grid[ALIVE + dead] = weights[1 + dead] = 0.0
    p, of_values = np.array([0.07, 0.0, 0.0]), np.zeros(3)
    count, mark = round(y / 0.5), round((y + 1.0) / 0.5)
    lines = [predicted(links, 1, family, np.append(X, 1.0)) for family in range(FAMILIES)]
    if dead != MARKS:
        escape = 0.5 / (sum(N_ROWS) + 1.0)
        at = [lines[MARKS][0] + math.sqrt(lines[MARKS][1]) * t for t in NODES]
        known = [math.exp(log_probability(links, MARKS, eta, mark)) if mark <= 3 else 0.0 for eta in at]
        p[2] = (1 - escape) * (WEIGHTS @ known) if mark <= 3 else escape
    if dead != COUNTS and count >= 0:
        at = [lines[COUNTS][0] + math.sqrt(lines[COUNTS][1]) * t + links.level[LEVEL] for t in NODES]
        mu = np.minimum(np.exp(at), BEYOND * 5.0)
        rows = [stats.poisson.pmf(count, mu)] + [stats.nbinom.pmf(count, 1 / r, 1 / (1 + r * mu)) for r in values[1:]]
        of_values = np.array([WEIGHTS @ row for row in rows])
        p[1] = dispersions @ of_values
    wanted, spread = weights.copy(), dispersions.copy()
    plain(kernels.weigh)(wanted, p, SWITCH)
    if dead != COUNTS and count >= 0:
        plain(kernels.weigh)(spread, of_values, NEVER)
    plain(kernels.judge)(links, weights, dispersions, values, 1, X, y, 0.07)
    np.testing.assert_allclose(weights, wanted, rtol=1e-9)
    np.testing.assert_allclose(dispersions, spread, rtol=1e-9)
    told = spread @ values if dead != COUNTS and count >= 0 else 0.3
    assert links.level[DISPERSION] == pytest.approx(told)
