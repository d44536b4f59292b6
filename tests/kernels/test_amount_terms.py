"""Every formula of amounts against dense algebra, in a state written down by hand.

Two columns, one of them far from 0, and an intercept; three arms, the last without rewards; amounts below an origin.
Every number has a value of its own, so that no term can be left out, or taken twice, unnoticed.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from polyarm.inference.door import copied
from polyarm.kernels import amounts as kernels
from polyarm.kernels._jit import plain
from polyarm.kernels.amounts import (
    AMOUNT_UNIT,
    BEYOND,
    GAMMA_SHAPE,
    HIGHEST,
    LEAST_MEAN,
    ORIGIN,
    STATUS,
    STEEP,
    STRIDE,
    Amounts,
)
from polyarm.kernels.links import LAM, MEAN, SWITCH, VARIANCE, weigh
from polyarm.kernels.sticks import AT, NEXT, STRIDES, UNIT
from polyarm.types import Array
from tests.kernels.script import Script
from tests.statistics.mutants import mutant

A, D = 3, 3
P = D * (D + 1) // 2
LOWER = np.tril_indices(D)
N_ROWS = (5, 3, 0)  # rewards of every arm
HYPERPRIOR = np.array([3.1, 2.3, 1.7, 0.9, 5.0, 7.0, 40.0, 60.0])
X = np.array([0.4, 8.7])
SHAPE, START, SIZE, LARGEST = 1.7, 4.0, -2.5, 6.0  # c, origin, unit, the largest amount
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


class World(NamedTuple):
    amounts: Amounts
    data: tuple[Array, ...]


def sums_of(rows: Array) -> Array:
    """Sum of 1, of z f and of r f f', from the definition."""
    out = np.zeros(1 + D + P)
    for row in rows:
        f, r, z = row[:D], row[D + 1], row[D + 2]
        out += np.concatenate([[1.0], z * f, r * np.outer(f, f)[LOWER]])
    return out


@pytest.fixture
def world() -> World:
    rng = np.random.default_rng(7)
    data = []
    for n in N_ROWS:
        rows = np.zeros((6, D + 3))
        for row in rows[:n]:
            row[:D] = [rng.standard_normal(), 9.0 + rng.standard_normal(), 1.0]
            row[D], row[D + 1], row[D + 2] = START + SIZE * (0.2 + 3 * rng.random()), 0.2 + rng.random(), rng.normal()
        data.append(rows)
    columns = np.zeros((6, D))
    columns[UNIT], columns[AT] = [0.6, 1.7, 0.0], [0.0, 9.0, 0.0]
    level = np.zeros(5)
    level[[STATUS, GAMMA_SHAPE, ORIGIN, AMOUNT_UNIT, HIGHEST]] = 1.0, SHAPE, START, SIZE, LARGEST
    amounts = Amounts(
        sums=np.stack([sums_of(rows[:n]) for rows, n in zip(data, N_ROWS, strict=True)]),
        kept=np.abs(rng.standard_normal((A, 1 + D + P))),
        fits=np.stack([line(rng) for _ in range(A)]),
        guess=np.vstack([0.3 * rng.standard_normal(D), np.array([[0.5, 0.9, 1.2], [0.8, 0.8, 1.4]])]),
        level=level,
        columns=columns,
        sizes=np.array([[n, n] for n in N_ROWS]),
    )
    return World(amounts, tuple(data))


def line(rng: np.random.Generator) -> Array:
    """Factor of the information about some coefficients, and their centre; above the diagonal is nothing to read."""
    factor = np.tril(rng.standard_normal((D, D)), -1) + np.diag(1.0 + rng.random(D)) + np.triu(np.full((D, D), 99.0), 1)
    return np.column_stack([factor, [0.3 * rng.standard_normal(), 0.05 * rng.standard_normal(), 0.4]])


def normal_of(fit: Array) -> tuple[Array, Array]:
    F = np.tril(fit[:, :D])
    return fit[:, D].copy(), np.asarray(np.linalg.inv(F @ F.T), dtype=np.float64)


def predicted(fit: Array, f: Array) -> tuple[float, float]:
    """Mean and variance of f'beta."""
    U, V = normal_of(fit)
    return float(f @ U), float(f @ V @ f)


def means_at_nodes(amounts: Amounts, arm: int) -> Array:
    m, v = predicted(amounts.fits[arm], np.append(X, 1.0))
    return np.asarray(np.minimum(np.exp(m + math.sqrt(v) * NODES), BEYOND * LARGEST))


def fitted(amounts: Amounts, s: Array) -> tuple[Array, Array]:
    """Information and centre from sums and a prior of slopes and of the height at `at`."""
    guess, at = amounts.guess, np.append(amounts.columns[AT, : D - 1], 1.0)
    q = np.append(1 / (guess[VARIANCE, : D - 1] * amounts.columns[UNIT, : D - 1]), 0.0)
    H = np.zeros((D, D))
    H[LOWER] = SHAPE * s[1 + D :]
    H = H + np.tril(H, -1).T + np.diag(q) + np.outer(at, at) / guess[VARIANCE, -1]
    pull = SHAPE * s[1 : 1 + D] + q * guess[MEAN] + at * guess[MEAN, -1] / guess[VARIANCE, -1]
    return H, np.asarray(np.linalg.solve(H, pull), dtype=np.float64)


def assert_fit(fit: Array, H: Array, U: Array) -> None:
    F = np.tril(fit[:, :D])
    np.testing.assert_allclose(F @ F.T, H, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fit[:, D], U, rtol=1e-8, atol=1e-10)


def test_a_mean_is_cut_off_above_and_far_below(world: World) -> None:
    for eta in (-1.2, 0.0, 1.9, 50.0):
        wanted = min(math.exp(eta), BEYOND * LARGEST)
        assert plain(kernels.mean_at)(world.amounts, eta) == pytest.approx(wanted)
    assert plain(kernels.mean_at)(world.amounts, -1e9) == math.exp(-700.0)


def test_expected_means_are_sums_over_nodes(world: World) -> None:
    out = np.empty(15)
    for arm in range(A):
        plain(kernels.node_means)(world.amounts, arm, X, out)
        np.testing.assert_allclose(out, means_at_nodes(world.amounts, arm))
        found = plain(kernels.expected_mean)(world.amounts, arm, np.append(X, 1.0), np.empty(D))
        assert found == pytest.approx(WEIGHTS @ out)


def test_every_arm_is_fitted_to_its_sums_and_the_prior(world: World) -> None:
    plain(kernels.fit_all)(world.amounts)
    for arm in range(A):
        assert_fit(world.amounts.fits[arm], *fitted(world.amounts, world.amounts.sums[arm]))


def test_sums_are_counted_afresh(world: World) -> None:
    amounts = world.amounts
    before = amounts.sums.copy()
    amounts.sums[0, 1:] = 99.0
    plain(kernels.recount)(amounts, world.data[0], 0)
    assert amounts.sums[0, 0] == before[0, 0]
    np.testing.assert_allclose(amounts.sums[0, 1:], (before + amounts.kept)[0, 1:])
    np.testing.assert_array_equal(amounts.sums[1:], before[1:])


@pytest.mark.parametrize(("n_moves", "start"), [(0, 0), (1, 3), (3, 4), (3, 11), (5, 2), (9, 2)])
@pytest.mark.parametrize("steep", [1.0, 40.0])
def test_a_visit_expands_some_amounts_and_goes_to_the_new_centre(
    world: World, n_moves: int, start: int, steep: float
) -> None:
    amounts, rows, arm, n = world.amounts, world.data[0], 0, N_ROWS[0]
    amounts.sizes[arm, NEXT] = 2  # the latest is in the second row
    amounts.fits[:, :, D] *= steep  # from far away the step is held back
    wanted, s, fits = rows.copy(), amounts.sums.copy(), amounts.fits.copy()
    count = min(n_moves, n)
    visited = [1, *((start + t) % n for t in range(1, count))][:count] if count < n else list(range(n))
    for i in visited:
        m, v = predicted(fits[arm], rows[i, :D])
        t = (rows[i, D] - START) / SIZE
        r = math.exp(min(math.log(t) + 0.5 * v - m, STEEP))
        old = wanted[i].copy()
        wanted[i, D + 1], wanted[i, D + 2] = r, r - 1 + r * m
        s[arm] += sums_of(wanted[i : i + 1]) - sums_of(old[None])
    if count == n:
        s[arm, 1:] = amounts.kept[arm, 1:] + sums_of(wanted[:n])[1:]
    mutant(kernels.visit, {"STRIDES": 1})(amounts, rows, arm, n_moves, start)
    np.testing.assert_allclose(rows, wanted)
    np.testing.assert_allclose(amounts.sums, s, rtol=1e-8, atol=1e-9)
    if count > 0:
        H, U = fitted(amounts, s[arm])
        step = U - fits[arm, :, D]
        far = float(np.abs(rows[visited, :D] @ step).max())
        F, held = np.tril(amounts.fits[arm, :, :D]), fits[arm, :, D] + min(1.0, STRIDE / far) * step
        np.testing.assert_allclose(F @ F.T, H, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(amounts.fits[arm, :, D], held, rtol=1e-5, atol=1e-7)
    else:
        np.testing.assert_array_equal(amounts.fits[arm], fits[arm])
    np.testing.assert_array_equal(amounts.fits[1:], fits[1:])


@pytest.mark.parametrize(("steep", "n_moves", "expected"), [(0.0, 5, 2), (40.0, 5, STRIDES), (40.0, 3, STRIDES)])
def test_a_visit_goes_on_in_strides_until_none_is_held_back(
    world: World, steep: float, n_moves: int, expected: int
) -> None:
    amounts, rows = world.amounts, world.data[0]
    amounts.fits[:, :, D] *= steep
    mine, theirs, taken, far = copied(amounts), rows.copy(), 0, math.inf
    while far > STRIDE * (1 - 1e-9) and taken < STRIDES:
        before = mine.fits[0, :, D].copy()
        mutant(kernels.visit, {"STRIDES": 1})(mine, theirs, 0, n_moves, 4)
        taken, far = taken + 1, float(np.abs(theirs[:5, :D] @ (mine.fits[0, :, D] - before)).max())
    plain(kernels.visit)(amounts, rows, 0, n_moves, 4)
    assert taken == expected
    np.testing.assert_array_equal(rows, theirs)
    np.testing.assert_array_equal(amounts.fits, mine.fits)
    np.testing.assert_array_equal(amounts.sums, mine.sums)


def test_an_amount_far_above_its_mean_is_cut_off(world: World) -> None:
    world.amounts.fits[0, :, D] = [0.0, 0.0, -99.0]
    mutant(kernels.visit, {"STRIDES": 1})(world.amounts, world.data[0], 0, 1, 0)
    r = math.exp(STEEP)
    np.testing.assert_allclose(world.data[0][4, [D + 1, D + 2]], np.array([r, r - 1 - 99 * r]))


@pytest.mark.parametrize(("at", "t"), [(2, 3.0), (5, 8.0)])
def test_an_amount_is_taken_in_and_what_had_its_row_stays_for_good(world: World, at: int, t: float) -> None:
    amounts, rows, y = world.amounts, world.data[0], START + SIZE * t
    amounts.sizes[0, NEXT] = at
    kept, sums, old = amounts.kept.copy(), amounts.sums.copy(), rows.copy()
    plain(kernels.add_reward)(amounts, rows, 0, X, y)
    np.testing.assert_array_equal(rows[at], [*X, 1.0, y, 0.0, 0.0])
    np.testing.assert_array_equal(np.delete(rows, at, 0), np.delete(old, at, 0))
    sums[0, 0] += 1.0
    if at < 5:
        kept[0, 1:] += sums_of(old[at : at + 1])[1:]
    np.testing.assert_allclose(amounts.sums, sums)
    np.testing.assert_allclose(amounts.kept, kept)
    assert amounts.sizes.tolist() == [[max(5, at + 1), at + 1], [3, 3], [0, 0]]
    assert amounts.level[HIGHEST] == max(LARGEST, t)


def test_every_number_that_is_predicted_from_must_be_finite(world: World) -> None:
    amounts, weights, others = world.amounts, np.array([0.4, 0.6]), np.array([0.3, 0.7])
    assert kernels.is_finite(amounts, weights, others)
    for part in (weights, others, amounts.level, amounts.sums, amounts.fits):
        for at in np.ndindex(part.shape):
            was = part[at]
            for wrong in (np.nan, np.inf, -np.inf):
                part[at] = wrong
                assert not kernels.is_finite(amounts, weights, others)
            part[at] = was
    assert kernels.is_finite(amounts, weights, others)


def test_what_arms_share_has_the_updates_of_variational_bayes(world: World) -> None:
    amounts = world.amounts
    lam, fits, at = amounts.guess[LAM].copy(), amounts.fits.copy(), np.append(amounts.columns[AT, : D - 1], 1.0)
    plain(kernels.share)(amounts, HYPERPRIOR)
    rows, means, variances = np.vstack([np.eye(D)[: D - 1], at]), np.empty((2, D)), np.empty((2, D))
    for arm in range(2):
        U, V = normal_of(fits[arm])
        means[arm], variances[arm] = rows @ U, np.diag(rows @ V @ rows.T)
    spread = 1 / (1 / HYPERPRIOR[[4, 4, 5]] + 2 / lam)
    centre = means.sum(axis=0) / lam * spread
    squares = (((means - centre) ** 2 + variances) / np.array([0.6, 1.7, 1.0]) + spread).sum(axis=0)
    slopes = min((HYPERPRIOR[2] + 0.5 * squares[:2].sum()) / (HYPERPRIOR[0] + 2), HYPERPRIOR[6])
    height = min((HYPERPRIOR[3] + 0.5 * squares[2]) / (HYPERPRIOR[1] + 1), HYPERPRIOR[7])
    np.testing.assert_allclose(amounts.guess[MEAN], centre)
    np.testing.assert_allclose(amounts.guess[LAM], [slopes, slopes, height])
    np.testing.assert_allclose(amounts.guess[VARIANCE], spread + np.array([slopes, slopes, height]))
    for arm in range(A):
        assert_fit(amounts.fits[arm], *fitted(amounts, amounts.sums[arm]))


def test_moments_are_those_of_a_mixture_of_models(world: World) -> None:
    amounts, weights = world.amounts, np.array([0.35, 0.65])
    given = np.array([[3.0, 1.0, -0.5], [0.5, 0.1, 0.8]])
    out, many = given.copy(), np.stack([given, given])
    plain(kernels.moments)(amounts, weights, X, out)
    plain(kernels.moments_many)(amounts, weights, np.stack([X + 1.0, X]), many)
    np.testing.assert_array_equal(many[1], out)
    assert (many[0] != out).any()
    for arm in range(A):
        means = START + SIZE * means_at_nodes(amounts, arm)
        first = 0.35 * given[0, arm] + 0.65 * (WEIGHTS @ means)
        second = 0.35 * (given[0, arm] ** 2 + given[1, arm] ** 2) + 0.65 * (WEIGHTS @ means**2)
        np.testing.assert_allclose(out[:, arm], [first, math.sqrt(second - first**2)], rtol=1e-8)
    certain = np.array([[1.0] * 3, [0.0] * 3])
    plain(kernels.moments)(amounts, np.array([1.0, 0.0]), X, certain)
    np.testing.assert_allclose(certain, [[1.0] * 3, [0.0] * 3])


def test_means_are_drawn_for_every_arm(world: World) -> None:
    normals, out = np.linspace(-1, 2, 6), np.empty((2, A))
    plain(kernels.draw_means)(world.amounts, X, out, Script(normals))
    for arm in range(A):
        m, v = predicted(world.amounts.fits[arm], np.append(X, 1.0))
        drawn = np.exp(m + math.sqrt(v) * normals[2 * arm : 2 * arm + 2])
        np.testing.assert_allclose(out[:, arm], np.minimum(drawn, BEYOND * LARGEST))


@pytest.mark.parametrize(("y", "base"), [(-1.0, 2.0), (1.5, -3.0), (-2.0, 9.0), (START + 1e-5 * SIZE, 1.0)])
def test_models_are_judged_by_the_score_of_a_gamma(world: World, y: float, base: float) -> None:
    amounts, found, wanted = world.amounts, np.array([0.3, 0.7]), np.array([0.3, 0.7])
    means = [(base - START) / SIZE, float(WEIGHTS @ means_at_nodes(amounts, 1))]
    t = (y - START) / SIZE
    score = [math.exp(-SHAPE * (math.log(max(m, LEAST_MEAN)) + t / max(m, LEAST_MEAN))) for m in means]
    plain(weigh)(wanted, np.array(score) / max(score), SWITCH)
    for density in (0.0, 0.02, 3.0):
        judged, others, expected = found.copy(), np.array([0.6, 0.4]), np.array([0.6, 0.4])
        plain(kernels.judge)(amounts, judged, others, 1, X, y, base, density)
        np.testing.assert_allclose(judged, wanted, rtol=1e-9)
        gamma = stats.gamma(SHAPE, scale=means_at_nodes(amounts, 1) * abs(SIZE) / SHAPE).pdf(abs(y - START))
        densities = np.array([density, float(WEIGHTS @ gamma)])
        plain(weigh)(expected, densities / densities.max(), SWITCH)
        np.testing.assert_allclose(others, expected, rtol=1e-9)


def test_an_amount_of_nothing_has_a_density_and_one_that_neither_model_expects_says_nothing(world: World) -> None:
    amounts, weights, others = world.amounts, np.array([0.3, 0.7]), np.array([0.6, 0.4])
    plain(kernels.judge)(amounts, weights, others, 1, X, START, 1.0, 0.5)
    assert np.isfinite(others).all()
    assert others[1] != 0.4
    before = others.copy()
    plain(kernels.judge)(amounts, weights, others, 1, X, START + 1e9 * SIZE, 1.0, 0.0)
    np.testing.assert_array_equal(others, before)
