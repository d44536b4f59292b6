"""Every formula of the sticks against dense algebra and enumeration, in a state written down by hand.

Two columns, one of them far from 0, and an intercept; two sticks; three arms, the last without rewards.  Every number
has a value of its own, so that no term can be left out, or taken twice, unnoticed.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from polyarm.inference.door import copied
from polyarm.kernels import stick_shares
from polyarm.kernels import sticks as kernels
from polyarm.kernels._jit import plain
from polyarm.kernels.generalized import NODES, WEIGHTS
from polyarm.kernels.sticks import (
    ARMS,
    AT,
    FIRST,
    HIGH,
    LAM_LOW,
    LATEST,
    NEXT,
    SCALE,
    SEEN,
    SHAPE,
    STEEP,
    STEPS,
    STRIDE,
    STRIDES,
    UNIT,
    WIDE,
    Sticks,
)
from polyarm.types import Array
from tests.kernels.script import Script
from tests.statistics.mutants import mutant

A, M, D = 3, 2, 3
P = D * (D + 1) // 2
KINDS: tuple[list[int], ...] = ([0, 2, 1, 1, 2], [1, 0], [])
LOWER = np.tril_indices(D)
HYPERPRIOR = np.array([3.1, 2.3, 1.7, 0.9, 5.0, 7.0, 40.0, 60.0])  # shape, scale, wide, high: of slopes and height


class World(NamedTuple):
    sticks: Sticks
    data: tuple[Array, ...]


class PolyaGamma:
    """Draws 0.1, 0.2, ... and notes where it was asked."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def draw(self, z: float, rng: Any) -> float:
        self.asked.append(float(z))
        return 0.1 * len(self.asked)


def sums_of(rows: Array, j: int) -> Array:
    """What the rewards of an arm add to the sums of stick j, from the definition."""
    out = np.zeros(1 + 2 * D + 2 * P)
    for row in rows:
        kind = int(row[D + 1])
        if kind < j:
            continue
        f, k, omega, eta = row[:D], float(kind == j), row[D + 2 + j], row[D + 2 + M + j]
        p = expit(eta)
        w = p * (1 - p)
        square = np.outer(f, f)[LOWER]
        out += np.concatenate([[1.0], (k - 0.5) * f, (k - p + w * eta) * f, omega * square, w * square])
    return out


@pytest.fixture
def world() -> World:
    rng = np.random.default_rng(7)
    data = []
    for kinds in KINDS:
        rows = np.zeros((6, D + 2 + 2 * M))
        for row, kind in zip(rows, kinds, strict=False):
            row[:D] = [rng.standard_normal(), 9.0 + rng.standard_normal(), 1.0]
            row[D], row[D + 1] = 5.0 + kind, kind
            row[D + 2 : D + 2 + M], row[D + 2 + M :] = 0.05 + 0.2 * rng.random(M), rng.standard_normal(M)
        data.append(rows)
    columns = np.zeros((6, D))
    columns[UNIT], columns[AT] = [0.6, 1.7, 0.0], [0.0, 9.0, 0.0]
    kept = 0.3 * sums_of(data[0][:3], 0)
    sticks = Sticks(
        sums=np.stack([[sums_of(rows[: len(k)], j) for j in range(M)] for rows, k in zip(data, KINDS, strict=True)]),
        kept=np.stack([[(1 + a + j) * kept for j in range(M)] for a in range(A)]),
        fits=0.1 * rng.standard_normal((A, M, D, D + 2)),
        shared=np.stack([np.stack([0.3 * rng.standard_normal(D), [0.8, 0.8, 1.4]]) for _ in range(M)]),
        guess=np.stack([np.stack([0.3 * rng.standard_normal(D), [0.5, 0.9, 1.2]]) for _ in range(M)]),
        columns=columns,
        sizes=np.array([[5, 5], [2, 2], [0, 0]]),
    )
    return World(sticks, tuple(data))


def information(prior: Array, columns: Array) -> tuple[Array, Array]:
    """Precision matrix of a prior of slopes and of the height at `at`, and times its mean."""
    at = np.append(columns[AT, : D - 1], 1.0)
    q = np.append(1 / (prior[1, : D - 1] * columns[UNIT, : D - 1]), 0.0)
    return np.diag(q) + np.outer(at, at) / prior[1, -1], q * prior[0] + at * prior[0, -1] / prior[1, -1]


def packed(values: Array) -> Array:
    out = np.zeros((D, D))
    out[LOWER] = values
    return np.asarray(out + np.tril(out, -1).T)


def posterior(s: Array, prior: Array, columns: Array, expanded: bool) -> tuple[Array, Array]:
    """Precision and mean of beta, given omegas or from the expanded log likelihood."""
    first = 1 + (2 * D + P if expanded else 2 * D)
    H, g = information(prior, columns)
    H = H + packed(s[first : first + P])
    mean = np.linalg.solve(H, g + (s[1 + D : 1 + 2 * D] if expanded else s[1 : 1 + D]))
    return H, np.asarray(mean, dtype=np.float64)


@pytest.mark.parametrize("z", [-800.0, -30.0, 0.0, 2.0])
def test_the_logistic_function(z: float) -> None:
    assert plain(kernels.sigmoid)(z) == pytest.approx(float(expit(z)) if z > -700 else 0.0, rel=1e-12, abs=0)


@pytest.mark.parametrize("k", [0.0, 1.0])
def test_the_expansion_is_that_of_the_log_likelihood(k: float) -> None:
    """L(t) = k t - log(1 + e^t) has slope k - p and curvature -w at eta: its parabola peaks at g / w."""
    eta, h = 0.7, 1e-4
    w, g = plain(kernels.expand)(eta, k)

    def log_likelihood(t: float) -> float:
        return k * t - math.log1p(math.exp(t))

    slope = (log_likelihood(eta + h) - log_likelihood(eta - h)) / (2 * h)
    bend = (log_likelihood(eta + h) - 2 * log_likelihood(eta) + log_likelihood(eta - h)) / h**2
    assert w == pytest.approx(-bend, abs=1e-6)
    assert g == pytest.approx(slope - bend * eta, abs=1e-6)


def test_counting_in_and_afresh(world: World) -> None:
    sticks, data = world
    s = np.zeros(sticks.sums.shape[2])
    for row in data[0][:5]:
        if row[D + 1] >= 1:
            plain(kernels.count_in)(s, row, D, float(row[D + 1] == 1), row[D + 3], row[D + 3 + M])
    np.testing.assert_allclose(s, sticks.sums[0, 1], rtol=1e-12)
    expected = sticks.kept[0] + sticks.sums[0]
    sticks.sums[0] = -1.0
    plain(kernels.recount)(sticks, data[0], 0)
    np.testing.assert_allclose(sticks.sums[0], expected, rtol=1e-12)


def test_changes_reach_every_sum(world: World) -> None:
    f, s = world.data[0][1], np.arange(1.0 + 2 * D + 2 * P)
    before = s.copy()
    plain(kernels.change)(s, f, D, 0.3, -0.2, 0.7)
    square = np.outer(f[:D], f[:D])[LOWER]
    added = np.concatenate([np.zeros(1 + D), 0.7 * f[:D], 0.3 * square, -0.2 * square])
    np.testing.assert_allclose(s, before + added, rtol=1e-12)


@pytest.mark.parametrize("i", [0, 1, 2])
def test_a_move_draws_omegas_and_expands_at_the_mode(world: World, i: int) -> None:
    sticks, data = world
    sticks.fits[0, 0, :, D] = [8.0, 4.0, 5.0]  # log odds of some 40: cut off
    gamma, row = PolyaGamma(), data[0][i].copy()
    mutant(kernels.move, {"polya_gamma": gamma})(sticks, data[0], 0, i, Script())
    n_sticks = min(KINDS[0][i] + 1, M)
    assert gamma.asked == pytest.approx([row[:D] @ sticks.fits[0, j, :, D + 1] for j in range(n_sticks)])
    for j in range(n_sticks):
        assert data[0][i, D + 2 + j] == pytest.approx(0.1 * (j + 1))
        eta = np.clip(row[:D] @ sticks.fits[0, j, :, D], -STEEP, STEEP)
        assert data[0][i, D + 2 + M + j] == pytest.approx(eta)
    for j in range(M):
        np.testing.assert_allclose(sticks.sums[0, j], sums_of(data[0][:5], j), rtol=1e-9, atol=1e-9)
    assert (data[0][i, D + 2 + n_sticks : D + 2 + M] == row[D + 2 + n_sticks : D + 2 + M]).all()


def test_log_odds_are_cut_off_on_both_sides(world: World) -> None:
    sticks, data = world
    sticks.fits[0, 0, :, D] = [-8.0, -4.0, -5.0]
    mutant(kernels.move, {"polya_gamma": PolyaGamma()})(sticks, data[0], 0, 0, Script())
    assert data[0][0, D + 2 + M] == -STEEP


def test_the_information_of_a_prior(world: World) -> None:
    sticks = world.sticks
    found, v, variance = np.zeros((D, D)), np.full(D, 0.5), np.empty(D)
    plain(kernels.add_prior)(sticks.shared[1], sticks.columns, found, v, variance)
    H, g = information(sticks.shared[1], sticks.columns)
    np.testing.assert_allclose(found, np.tril(H), rtol=1e-12)
    np.testing.assert_allclose(v, g + 0.5, rtol=1e-12)
    np.testing.assert_allclose(variance, np.diag(np.linalg.inv(H)), rtol=1e-9)


def test_the_mode_of_the_expanded_posterior(world: World) -> None:
    sticks = world.sticks
    work, before = np.zeros((2, D)), sticks.fits[0, 1, :, D].copy()
    plain(kernels.fit_mode)(sticks, 0, 1, work)
    H, mode = posterior(sticks.sums[0, 1], sticks.guess[1], sticks.columns, expanded=True)
    np.testing.assert_allclose(sticks.fits[0, 1, :, D], mode, rtol=1e-9)
    np.testing.assert_allclose(work[0], mode - before, rtol=1e-9)
    L = np.tril(sticks.fits[0, 1, :, :D])
    np.testing.assert_allclose(L @ L.T, H, rtol=1e-9)


def test_a_draw_of_beta_is_mean_and_spread(world: World) -> None:
    sticks = world.sticks
    z = [0.4, -1.2, 0.9]
    plain(kernels.draw_beta)(sticks, 0, 1, np.empty((D, D)), np.empty((2, D)), Script(normals=z))
    H, mean = posterior(sticks.sums[0, 1], sticks.shared[1], sticks.columns, expanded=False)
    expected = mean + np.linalg.solve(np.linalg.cholesky(H).T, z)
    np.testing.assert_allclose(sticks.fits[0, 1, :, D + 1], expected, rtol=1e-9)


def expected_shared(sticks: Sticks, j: int, z: Array, gammas: Array) -> tuple[Array, Array, list[float]]:
    """Draws of beta_0 and lam and the guess that follows, from the conditionals; and the gammas' shapes."""
    shared, guess = sticks.shared[j].copy(), sticks.guess[j].copy()
    there = sticks.sums[:, j, 0] > 0
    own = sticks.fits[there, j, :, D + 1].copy()
    own[:, -1] += own[:, : D - 1] @ sticks.columns[AT, : D - 1]
    n = sticks.sums[:, j, 0].sum()
    few = max(1.0, (ARMS - 1) / (len(there) - 1))
    rate, var_rate = (1 / (times * FIRST + min(n, LATEST)) if n >= STEPS else 0.0 for times in (1.0, few))
    units, group = np.append(sticks.columns[UNIT, : D - 1], 1.0), np.array([0, 0, 1])
    spread = 1 / (1 / HYPERPRIOR[WIDE + group] + there.sum() / shared[1])
    mean = own.sum(axis=0) / shared[1] * spread
    away = (mean - guess[0]) ** 2 / units
    shared[0] = mean + np.sqrt(spread * units) * z
    squares = ((own - shared[0]) ** 2 / units).sum(axis=0)
    per_group = np.array([squares[:-1].sum(), squares[-1]])
    shape = HYPERPRIOR[SHAPE : SHAPE + 2] + 0.5 * there.sum() * np.array([D - 1, 1])
    scale = HYPERPRIOR[SCALE : SCALE + 2] + 0.5 * per_group
    lam, high = scale / gammas, HYPERPRIOR[HIGH : HIGH + 2]
    shared[1] = np.where((lam > LAM_LOW) & (lam < high), lam, shared[1, [0, -1]])[group]
    typical = np.minimum(scale / shape, high)[group]
    guess[1] = (1 - var_rate) * guess[1] + var_rate * (spread + typical + (1 - rate) * away)
    guess[0] += rate * (mean - guess[0])
    return shared, guess, list(shape)


@pytest.mark.parametrize("gammas", [(1.3, 0.7), (1e-9, 0.7), (1.3, 1e-9), (1e9, 1e9)])
@pytest.mark.parametrize("n", [1.0, 20.0, 1000.0])
def test_what_the_arms_share_has_its_conditionals(world: World, gammas: tuple[float, float], n: float) -> None:
    sticks = world.sticks
    sticks.sums[:, 1, 0] *= n  # beyond LATEST rewards the guess follows no faster
    z, script = np.array([0.4, -1.2, 0.9]), Script(normals=[0.4, -1.2, 0.9], gammas=gammas)
    shared, guess, shapes = expected_shared(sticks, 1, z, np.array(gammas))
    plain(kernels.draw_shared)(sticks, 1, HYPERPRIOR, script)
    np.testing.assert_allclose(sticks.shared[1], shared, rtol=1e-9)
    np.testing.assert_allclose(sticks.guess[1], guess, rtol=1e-9)
    assert [shape for (shape,) in script.asked] == pytest.approx(shapes)


def test_the_guess_of_a_wide_spread_stays_below_the_largest(world: World) -> None:
    sticks = world.sticks
    sticks.fits[0, 0, :, D + 1] = [50.0, -60.0, 30.0]
    _, guess, _ = expected_shared(sticks, 0, np.zeros(D), np.ones(2))
    plain(kernels.draw_shared)(sticks, 0, HYPERPRIOR, Script())
    np.testing.assert_allclose(sticks.guess[0], guess, rtol=1e-9)


def test_a_stick_that_nobody_reached_is_drawn_from_its_prior(world: World) -> None:
    sticks = world.sticks
    sticks.sums[:] = 0.0
    shared, guess, shapes = expected_shared(sticks, 0, np.zeros(D), np.ones(2))
    script = Script()
    plain(kernels.draw_shared)(sticks, 0, HYPERPRIOR, script)
    np.testing.assert_allclose(sticks.shared[0], shared, rtol=1e-9)
    np.testing.assert_allclose(sticks.guess[0], guess, rtol=1e-9)
    assert [shape for (shape,) in script.asked] == pytest.approx(shapes)


@pytest.mark.parametrize(("arm", "other"), [(0, 1), (1, 1)])
def test_a_round_draws_two_arms_then_what_they_share_then_every_mode(world: World, arm: int, other: int) -> None:
    sticks = world.sticks
    mine = copied(sticks)
    z = list(np.linspace(-1.0, 1.3, 24))
    plain(kernels.redraw_shared)(sticks, arm, other, HYPERPRIOR, Script(normals=z))
    script, room, work = Script(normals=z), np.empty((D, D)), np.empty((2, D))
    for j in range(M):
        for a in dict.fromkeys([arm, other]):
            plain(kernels.draw_beta)(mine, a, j, room, work, script)
        plain(kernels.draw_shared)(mine, j, HYPERPRIOR, script)
    for a in range(A):
        for j in range(M):
            plain(kernels.fit_mode)(mine, a, j, work)
    for found, expected in zip(sticks, mine, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("at", "n_moves"), [(0.0, 1), (0.3, 3), (0.9, 4)])
@pytest.mark.parametrize("far", [False, True])
def test_a_visit_moves_the_latest_and_a_run_of_neighbours(world: World, at: float, n_moves: int, far: bool) -> None:
    sticks, data = world
    sticks.sizes[0, NEXT] = 3  # row 2 came last
    if far:
        sticks.fits[0, :, :, D] = [3.0, -1.0, 0.4]
    mine, rows = copied(sticks), data[0].copy()
    mutant(kernels.visit, {"polya_gamma": PolyaGamma()})(
        sticks, data[0], 0, n_moves, np.empty((2, D)), Script(uniforms=[at])
    )
    first, gamma, work = int(at * 5), PolyaGamma(), np.empty((2, D))
    moved = [2, *((first + turn) % 5 for turn in range(1, n_moves))]
    for i in moved:
        mutant(kernels.move, {"polya_gamma": gamma})(mine, rows, 0, i, Script())
    limited = []
    for j in range(M):
        for strides in range(STRIDES):
            for i in moved if strides else []:
                expanded_at_the_mode(mine, rows[i], j)
            before = mine.fits[0, j, :, D].copy()
            plain(kernels.fit_mode)(mine, 0, j, work)
            step = mine.fits[0, j, :, D] - before
            stride = np.abs(rows[moved, :D] @ step).max()
            mine.fits[0, j, :, D] = before + step * min(1.0, STRIDE / stride)
            limited.append(stride > STRIDE)
            if not limited[-1]:
                break
    assert any(limited) == far
    np.testing.assert_allclose(sticks.fits[0], mine.fits[0], rtol=1e-9)
    np.testing.assert_allclose(sticks.sums[0], mine.sums[0], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(data[0], rows, rtol=1e-12)


def expanded_at_the_mode(sticks: Sticks, row: Array, j: int) -> None:
    """Expand a reward of arm 0 at the mode of stick j, if it reaches that stick, and correct the sums."""
    if row[D + 1] < j:
        return
    eta = float(np.clip(row[:D] @ sticks.fits[0, j, :, D], -STEEP, STEEP))
    was, now, k = expit(row[D + 2 + M + j]), expit(eta), float(row[D + 1] == j)
    w_was, w_now = was * (1 - was), now * (1 - now)
    g_was, g_now = k - was + w_was * row[D + 2 + M + j], k - now + w_now * eta
    sticks.sums[0, j, 1 + D : 1 + 2 * D] += (g_now - g_was) * row[:D]
    sticks.sums[0, j, 1 + 2 * D + P :] += (w_now - w_was) * np.outer(row[:D], row[:D])[LOWER]
    row[D + 2 + M + j] = eta


def test_visits_go_round_no_more_rewards_than_there_are(world: World) -> None:
    sticks, data = world
    gamma = PolyaGamma()
    mutant(kernels.visits, {"polya_gamma": gamma})(sticks, data[1], 1, 9, 3, Script())
    assert len(gamma.asked) == 3 * sum(min(kind + 1, M) for kind in KINDS[1])
    before = sticks.fits.copy()
    mutant(kernels.visits, {"polya_gamma": gamma})(sticks, data[2], 2, 9, 3, Script())
    np.testing.assert_array_equal(sticks.fits, before)


@pytest.mark.parametrize(("at", "kind"), [(5, 1), (2, 0), (1, 2)])
def test_a_reward_is_taken_in_and_what_had_its_row_stays_for_good(world: World, at: int, kind: int) -> None:
    sticks, data = world
    sticks.sizes[0, NEXT] = at
    sticks.fits[0, 1, :, D] = [30.0, 2.0, 8.0]
    sums, kept, old = sticks.sums[0].copy(), sticks.kept[0].copy(), data[0][at].copy()
    gamma = PolyaGamma()
    add_reward = mutant(kernels.add_reward, {"polya_gamma": gamma})
    add_reward(sticks, data[0], 0, np.array([1.5, 8.0]), 3.25, kind, Script())
    row, n_sticks = data[0][at], min(kind + 1, M)
    np.testing.assert_array_equal(row[: D + 2], [1.5, 8.0, 1.0, 3.25, kind])
    assert gamma.asked == pytest.approx([row[:D] @ sticks.fits[0, j, :, D + 1] for j in range(n_sticks)])
    for j in range(n_sticks):
        assert row[D + 2 + j] == pytest.approx(0.1 * (j + 1))
        assert row[D + 2 + M + j] == pytest.approx(np.clip(row[:D] @ sticks.fits[0, j, :, D], -STEEP, STEEP))
    for j in range(M):
        np.testing.assert_allclose(sticks.sums[0, j], sums[j] + sums_of(row[None], j), rtol=1e-12)
        stays = sums_of(old[None], j) if at < 5 else 0.0
        np.testing.assert_allclose(sticks.kept[0, j], kept[j] + stays, rtol=1e-12)
    assert tuple(sticks.sizes[0]) == (max(5, at + 1), at + 1)


def test_a_new_rewards_log_odds_are_cut_off(world: World) -> None:
    sticks, data = world
    sticks.fits[0, 0, :, D] = [0.0, -9.0, 0.0]
    add_reward = mutant(kernels.add_reward, {"polya_gamma": PolyaGamma()})
    add_reward(sticks, data[0], 0, np.array([1.0, 9.0]), 1.0, 0, Script())
    assert data[0][5, D + 2 + M] == -STEEP


def test_units_and_centres_of_columns() -> None:
    """Around 0, sparse, far from 0, constant: at every step up to 64, then at powers of two."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((140, 5)) * [1.0, 3.0, 0.5, 0.0, 0.01] + [0.5, 0.0, 4.0, 2.5, 1000.0]
    X[rng.random(140) < 0.4, 1] = 0.0
    columns = np.zeros((6, 6))
    for n in range(1, 141):
        plain(kernels.observe)(columns, X[n - 1])
        assert columns[SEEN, 0] == n
        last = n if n <= 64 else 2 ** int(np.log2(n))
        seen = X[:last]
        for i in range(5):
            some = seen[seen[:, i] != 0, i]
            if not len(some):
                continue
            square, mean, spread = (some**2).mean(), some.mean(), some.var()
            far = 16 <= len(some) == last and spread > 1e-9 * square and 9.0 * spread < mean**2
            assert columns[AT, i] == pytest.approx(mean if far else 0.0, rel=1e-6, abs=1e-12)
            assert columns[UNIT, i] == pytest.approx(1 / (spread if far else square), rel=1e-6)
    assert columns[AT, 2] != 0.0
    assert columns[AT, [0, 1, 3, 4]].tolist() == [0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("usual", [0.0, -0.05])
def test_a_column_that_wakes_late_is_measured_at_once(usual: float) -> None:
    """After 100 contexts, between powers of two; an entry of eight units is no reason."""
    columns = np.ones((6, 2))
    columns[1:] = 0.0
    for _ in range(100):
        plain(kernels.observe)(columns, np.array([usual]))
    before = columns[[UNIT, AT]].copy()
    plain(kernels.observe)(columns, np.array([usual + 7.9 / np.sqrt(before[0, 0])]))
    np.testing.assert_array_equal(columns[[UNIT, AT]], before)
    plain(kernels.observe)(columns, np.array([20.0]))
    n_nonzero = 102 if usual else 2
    assert columns[UNIT, 0] == pytest.approx(n_nonzero / columns[kernels.SQUARES, 0])
    assert 400 * columns[UNIT, 0] <= n_nonzero


@pytest.fixture
def fitted(world: World) -> Sticks:
    sticks = world.sticks
    for a in range(A):
        for j in range(M):
            plain(kernels.fit_mode)(sticks, a, j, np.empty((2, D)))
    return sticks


def test_log_odds_have_the_posteriors_mean_and_spread(fitted: Sticks) -> None:
    f = np.array([0.7, 8.5, 1.0])
    mean, sd = plain(stick_shares.log_odds)(fitted, 1, 0, f, np.empty(D))
    H, mode = posterior(fitted.sums[1, 0], fitted.guess[0], fitted.columns, expanded=True)
    assert mean == pytest.approx(f @ mode, rel=1e-9)
    assert sd == pytest.approx(math.sqrt(f @ np.linalg.solve(H, f)), rel=1e-9)


def test_moments_of_a_sticks_share_are_those_of_quadrature() -> None:
    first, second = plain(stick_shares.stick_moments)(0.6, 1.1)

    def integrand(t: float, power: int) -> float:
        return float(expit(0.6 + 1.1 * t) ** power * math.exp(-t * t / 2) / math.sqrt(2 * math.pi))

    for power, found in ((1, first), (2, second)):
        assert found == pytest.approx(quad(integrand, -10, 10, args=(power,))[0], rel=1e-6)


def shares_at(sticks: Sticks, arm: int, f: Array) -> list[Array]:
    """Share of each stick at the quadrature's nodes."""
    odds = [plain(stick_shares.log_odds)(sticks, arm, j, f, np.empty(D)) for j in range(M)]
    return [expit(mean + sd * NODES) for mean, sd in odds]


def test_moments_of_all_kinds_by_enumeration_of_the_nodes(fitted: Sticks) -> None:
    x, values = np.array([0.7, 8.5]), np.array([5.0, -2.0])
    rest = np.array([[1.0, 2.0, 3.0], [0.5, 0.7, 0.9]])
    out = rest.copy()
    plain(stick_shares.moments)(fitted, x, values, out)
    many = rest[None].copy()
    plain(stick_shares.moments_many)(fitted, x[None], values, many)
    np.testing.assert_array_equal(many[0], out)
    for arm in range(A):
        p, q = shares_at(fitted, arm, np.append(x, 1.0))
        w = WEIGHTS[:, None] * WEIGHTS
        fixed, free = p[:, None] * values[0] + (1 - p[:, None]) * q * values[1], (1 - p[:, None]) * (1 - q)
        mean = (w * (fixed + free * rest[0, arm])).sum()
        square = (w * ((fixed + free * rest[0, arm]) ** 2 + free**2 * rest[1, arm] ** 2)).sum()
        assert out[0, arm] == pytest.approx(mean, rel=1e-9)
        assert out[1, arm] == pytest.approx(math.sqrt(square - mean**2), rel=1e-7)


def test_drawn_and_expected_shares(fitted: Sticks) -> None:
    x = np.array([0.7, 8.5])
    f, z = np.append(x, 1.0), np.array([0.3, -1.1, 0.8, 2.0])
    out = np.empty((2, M + 1))
    plain(stick_shares.draw_shares)(fitted, x, 1, out, Script(normals=z))
    odds = [plain(stick_shares.log_odds)(fitted, 1, j, f, np.empty(D)) for j in range(M)]
    p, q = (expit(mean + sd * z[2 * j : 2 * j + 2]) for j, (mean, sd) in enumerate(odds))
    np.testing.assert_allclose(out, np.column_stack([p, (1 - p) * q, (1 - p) * (1 - q)]), rtol=1e-9)
    expected = np.empty(M + 1)
    plain(stick_shares.expected_shares)(fitted, x, 1, expected)
    p, q = (WEIGHTS @ share for share in shares_at(fitted, 1, f))
    np.testing.assert_allclose(expected, [p, (1 - p) * q, (1 - p) * (1 - q)], rtol=1e-9)


def test_certain_rewards_have_no_spread_however_they_round(fitted: Sticks) -> None:
    """Log odds that are known exactly, and a rest without spread: square minus squared mean rounds below zero."""
    fitted.fits[:, :, :, :D] *= 1e9
    for value in np.linspace(0.1, 7.3, 60):
        out = np.stack([np.full(A, value), np.zeros(A)])
        plain(stick_shares.moments)(fitted, np.array([0.7, 8.5]), np.array([1.9, -0.4]), out)
        assert np.isfinite(out).all()
        assert (out[1] < 1e-6).all()
