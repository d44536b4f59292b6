"""Draws of a mixture's mean and of its whole distribution, from what was drawn, in two columns."""

import math

import numpy as np
import pytest
from scipy import stats

from polyarm.kernels._jit import plain
from polyarm.kernels.mixture import means
from polyarm.kernels.mixture.component import COUNT, MEAN, NOTHING, SCALE, n_rows
from polyarm.kernels.mixture.means import MAX_STICKS, ONE_ATOM, PAPER, TAIL, WHOLE, Located
from polyarm.kernels.objectives import EXPECTATION, Functional
from polyarm.types import Array
from tests.kernels.script import Script

x = np.array([0.7, -1.3])
PROCESS = np.array([2.1, 0.9, 0.8, 0.25])  # a0, b0, concentration, discount
A0, B0 = 2.1, 0.9
COUNTS, SCALES = np.array([3.0, 5.0]), np.array([1.7, 0.6])
M0, Q0 = 2.5, 1.9
AT2, AT0 = Located(np.array([1.5, -0.4, M0]), np.array([0.3, 0.8, Q0])), Located(np.array([M0]), np.array([Q0]))


def column(count: float, scale: float, U: Array, factor: Array) -> Array:
    """A component with V = root root', root upper triangular."""
    out = np.zeros(plain(n_rows)(2))
    out[COUNT], out[SCALE], out[MEAN : MEAN + 2] = count, scale, U
    out[MEAN + 2 :] = factor[0, 0], factor[0, 1], factor[1, 1]
    return out


ROOTS = [np.array([[0.5, 0.2], [0.0, 0.9]]), np.array([[1.1, -0.3], [0.0, 0.4]]), np.array([[1.3, 0.1], [0.0, 0.7]])]
SLOPES = [np.array([1.0, 0.5]), np.array([-0.6, 0.2]), np.array([0.4, -0.9])]
TABLE = np.column_stack([column(n, b, U, R) for n, b, U, R in zip(COUNTS, SCALES, SLOPES[:2], ROOTS[:2], strict=True)])
EMPTY = column(0.0, PROCESS[1], SLOPES[2], ROOTS[2])


def atom(m: float, q: float, b: float, gamma: float, normal: float) -> float:
    return m + math.sqrt(b / gamma * q) * normal


def table() -> Array:
    T = np.zeros((plain(n_rows)(2), 4))
    T[COUNT, :2], T[SCALE, :2] = COUNTS, SCALES
    return T


def test_components_are_located_in_a_context() -> None:
    m, q = np.empty(2), np.empty(2)
    plain(means.locate)(TABLE, 2, x, m, q)
    np.testing.assert_allclose(m, [x @ U for U in SLOPES[:2]])
    np.testing.assert_allclose(q, [x @ R @ R.T @ x for R in ROOTS[:2]])
    at = plain(means.located)(TABLE, 2, EMPTY, x)
    np.testing.assert_allclose(at.m, [x @ U for U in SLOPES])
    np.testing.assert_allclose(at.q, [x @ R @ R.T @ x for R in ROOTS])


def test_an_atom_and_a_stick() -> None:
    script = Script(normals=[-1.2], gammas=[0.7], betas=[0.35])
    assert plain(means.draw_atom)(1.5, 0.3, 4.0, 2.0, script) == pytest.approx(atom(1.5, 0.3, 2.0, 0.7, -1.2))
    assert plain(means.draw_stick)(0.8, 3, 0.25, script) == 0.35
    assert script.asked == [(4.0,), (0.75, 0.8 + 3 * 0.25)]
    assert plain(means.draw_stick)(0.75 + NOTHING / 2, 3, -0.25, script) == 1.0


def test_a_tail_is_broken_until_little_is_left() -> None:
    normals, gammas, betas = [0.5, -1.0, 2.0, 0.1], [1.1, 0.6, 2.0, 0.9], [0.9, 0.99, 0.9999]
    script = Script(normals, gammas, betas=betas)
    found = plain(means.draw_tail)(0.4, 1.3, 0.25, M0, Q0, A0, B0, script)
    left, expected, n = 0.4, 0.0, 0
    atoms = [atom(M0, Q0, PROCESS[1], g, z) for g, z in zip(gammas, normals, strict=True)]
    while left >= TAIL:
        expected += left * betas[n] * atoms[n]
        left *= 1 - betas[n]
        n += 1
    assert 2 <= n <= 3
    assert found == pytest.approx(expected + left * atoms[n])
    asked = [(0.75, 1.3 + j * 0.25) for j in range(1, n + 1)]
    np.testing.assert_allclose([pair for pair in script.asked if len(pair) == 2], asked)
    assert all(pair == (PROCESS[0],) for pair in script.asked if len(pair) == 1)
    many = Script(betas=[1e-12] * 9999)
    plain(means.draw_tail)(1.0, 1.3, 0.0, M0, Q0, A0, B0, many)
    assert len([pair for pair in many.asked if len(pair) == 2]) == MAX_STICKS - 1


def test_an_exact_draw_uses_every_part_once() -> None:
    """Weights gamma(n - d), and gamma(c + K d) for the unseen, as one atom or as a whole process."""
    normals, gammas = [0.5, -1.0, 2.0], [1.4, 0.8, 0.3, 1.2, 0.9, 0.7]  # weight and noise in turn, tail, its noise
    new = PROCESS[2] + 2 * PROCESS[3]
    one = Script(normals, gammas)
    found = plain(means.draw_exact)(table(), 2, PROCESS, AT2, False, one)
    assert one.asked == [(2.75,), (PROCESS[0] + 1.5,), (4.75,), (PROCESS[0] + 2.5,), (new,), (PROCESS[0],)]
    first, second = atom(1.5, 0.3, 1.7, 0.8, 0.5), atom(-0.4, 0.8, 0.6, 1.2, -1.0)
    last = atom(M0, Q0, PROCESS[1], 0.7, 2.0)
    total = 1.4 + 0.3 + 0.9
    assert found == pytest.approx((1.4 * first + 0.3 * second + 0.9 * last) / total)
    whole = Script(normals, gammas, betas=[1.0])
    found = plain(means.draw_exact)(table(), 2, PROCESS, AT2, True, whole)
    tail = plain(means.draw_tail)(0.9 / total, new, PROCESS[3], M0, Q0, A0, B0, Script([2.0], [0.7], betas=[1.0]))
    assert found == pytest.approx((1.4 * first + 0.3 * second) / total + tail)
    finite = PROCESS.copy()
    finite[2:] = 1.0, -0.5  # two components of two: nothing is unseen
    found = plain(means.draw_exact)(table(), 2, finite, AT2, True, Script(normals, gammas))
    assert found == pytest.approx((1.4 * first + 0.3 * second) / 1.7)


def test_an_arm_without_rewards_is_all_tail() -> None:
    one = plain(means.draw_exact)(table(), 0, PROCESS, AT0, False, Script([0.5], [0.8]))
    assert one == pytest.approx(atom(M0, Q0, PROCESS[1], 0.8, 0.5))
    script = Script([0.5, 1.5], [0.8, 1.1], betas=[0.6, 1.0])
    whole = plain(means.draw_exact)(table(), 0, PROCESS, AT0, True, script)
    parts = [atom(M0, Q0, PROCESS[1], 0.8, 0.5), atom(M0, Q0, PROCESS[1], 1.1, 1.5)]
    assert whole == pytest.approx(0.6 * parts[0] + 0.4 * parts[1])
    assert script.asked[0] == pytest.approx((0.75, PROCESS[2] + PROCESS[3]))


@pytest.mark.parametrize("n_parts", [0, 4])
def test_the_papers_draw_has_expected_weights(n_parts: int) -> None:
    process = PROCESS.copy()
    if n_parts:
        process[2:] = 2.0, -0.5  # a mixture of four components: two are left to draw
    normals, gammas = [0.5, -1.0, 2.0, 0.3], [0.8, 1.2, 0.7, 1.6]
    found = plain(means.draw_paper)(table(), 2, process, AT2, Script(normals, gammas))
    new = process[2] + 2 * process[3]
    fresh = [atom(M0, Q0, process[1], 0.7, 2.0), atom(M0, Q0, process[1], 1.6, 0.3)][: 2 if n_parts else 1]
    seen = (3 - process[3]) * atom(1.5, 0.3, 1.7, 0.8, 0.5) + (5 - process[3]) * atom(-0.4, 0.8, 0.6, 1.2, -1.0)
    assert found == pytest.approx((seen + new * float(np.mean(fresh))) / (8.0 + process[2]))


@pytest.mark.parametrize("way", [PAPER, WHOLE, ONE_ATOM])
def test_every_arm_is_drawn_in_its_own_components(way: int) -> None:
    tables, sizes = np.zeros((2, len(EMPTY), 3)), np.array([[2, 8], [0, 0]])
    tables[0, :, :2] = TABLE
    priors, processes = np.stack([EMPTY, EMPTY + 0.0]), np.stack([PROCESS, PROCESS + 0.1])
    out, betas = np.empty((2, 2)), [0.999] * 40
    normals, gammas = np.linspace(-1, 2, 60), np.linspace(0.4, 2.1, 60)
    plain(means.draw_means)(tables, sizes, priors, processes, x, way, out, Script(normals, gammas, betas=betas))
    script = Script(normals, gammas, betas=betas)
    at = plain(means.located)(TABLE, 2, EMPTY, x)
    for arm, K in enumerate((2, 0)):
        for draw in range(2):
            given = (tables[arm], K, processes[arm], Located(at.m[2 - K :], at.q[2 - K :]))
            if way == PAPER:
                expected = plain(means.draw_paper)(*given, script)
            else:
                expected = plain(means.draw_exact)(*given, way == WHOLE, script)
            assert out[draw, arm] == pytest.approx(expected)


def test_the_expectation_weighs_components_by_their_masses() -> None:
    tables, sizes = np.zeros((2, len(EMPTY), 3)), np.array([[2, 8], [0, 0]])
    tables[0, :, :2] = TABLE
    out = np.empty(2)
    plain(means.expected_means)(tables, sizes, np.stack([EMPTY] * 2), np.stack([PROCESS] * 2), x, out)
    m = [float(x @ U) for U in SLOPES]
    new = PROCESS[2] + 2 * PROCESS[3]
    assert out[0] == pytest.approx((2.75 * m[0] + 4.75 * m[1] + new * m[2]) / (8 + PROCESS[2]))
    assert out[1] == pytest.approx(m[2])


def test_a_drawn_mixture_is_written_from_what_is_drawn() -> None:
    at = Located(np.array([1.5, -0.4, M0]), np.array([0.3, 0.8, Q0]))
    normals, gammas = [0.5, -1.0, 2.0, 0.3, 1.1], [1.4, 0.3, 0.9, 0.8, 1.2, 0.7, 1.6, 2.2]
    script = Script(normals, gammas, betas=[0.9, 0.99999])
    parts = plain(means.room_for)(2 + MAX_STICKS)
    n = plain(means.draw_mixture)(table(), 2, PROCESS, at, parts, script)
    new = PROCESS[2] + 2 * PROCESS[3]
    assert script.asked[:5] == [(2.75,), (4.75,), (new,), (PROCESS[0] + 1.5,), (PROCESS[0] + 2.5,)]
    noise = np.array([1.7 / 0.8, 0.6 / 1.2, *(PROCESS[1] / g for g in (0.7, 1.6, 2.2))])[:n]
    left = 0.9 / 2.6
    weights = np.array([1.4 / 2.6, 0.3 / 2.6, 0.9 * left, 0.1 * left * 0.99999, 0.1 * left * 1e-5])
    assert n == 5
    np.testing.assert_allclose(parts.weight[:n], weights, rtol=1e-6)
    np.testing.assert_allclose(parts.variance[:n], noise)
    m, q = at.m[[0, 1, 2, 2, 2]], at.q[[0, 1, 2, 2, 2]]
    np.testing.assert_allclose(parts.mean[:n], m + np.sqrt(noise * q) * normals)
    betas = [pair for pair in script.asked if len(pair) == 2]
    np.testing.assert_allclose(betas, [(0.75, new + PROCESS[3]), (0.75, new + 2 * PROCESS[3])])
    empty = plain(means.room_for)(MAX_STICKS)
    alone, few = Located(at.m[2:], at.q[2:]), Script(betas=[1e-9] * 999)
    assert plain(means.draw_mixture)(table(), 0, PROCESS, alone, empty, few) == MAX_STICKS
    assert empty.weight.sum() == pytest.approx(1.0)


def test_densities_and_worths_are_those_of_the_drawn_mixtures() -> None:
    normals, gammas, betas = np.linspace(-1, 1.5, 40), np.linspace(0.5, 2, 40), [0.99999] * 40
    grid, density, worth = np.array([-1.0, 0.5, 2.0]), np.zeros((1, 3)), np.empty(1)
    plain(means.draw_density)(TABLE, 2, PROCESS, EMPTY, x, grid, density, Script(normals, gammas, betas=betas))
    functional = Functional(EXPECTATION, 0.0, 0.0)
    plain(means.draw_worths)(TABLE, 2, PROCESS, EMPTY, x, functional, worth, Script(normals, gammas, betas=betas))
    parts = plain(means.room_for)(2 + MAX_STICKS)
    at = plain(means.located)(TABLE, 2, EMPTY, x)
    n = plain(means.draw_mixture)(TABLE, 2, PROCESS, at, parts, Script(normals, gammas, betas=betas))
    w, m, v = (part[:n] for part in parts)
    expected = sum(a * stats.norm.pdf(grid, b, math.sqrt(c)) for a, b, c in zip(w, m, v, strict=True))
    np.testing.assert_allclose(density[0], expected)
    assert worth[0] == pytest.approx(w @ m / w.sum())
    nothing = np.zeros(3)
    plain(means.add_normal)(nothing, grid, 0.0, 1.0, 0.0)
    assert not nothing.any()


def test_there_is_room_for_components_and_every_stick() -> None:
    grid, density, worth, few = np.array([0.5]), np.zeros((1, 1)), np.empty(1), [1e-9] * MAX_STICKS
    plain(means.draw_density)(TABLE, 2, PROCESS, EMPTY, x, grid, density, Script(betas=few))
    functional = Functional(EXPECTATION, 0.0, 0.0)
    plain(means.draw_worths)(TABLE, 2, PROCESS, EMPTY, x, functional, worth, Script(betas=few))
    located = [float(x @ U) for U in SLOPES]  # no normal is drawn: components are where they are expected
    assert worth[0] == pytest.approx(np.mean(located))
    noise = [1.7, 0.6, PROCESS[1]]  # gammas are 1: weights of a third each, and variances at their scales
    exact = np.mean([stats.norm.pdf(0.5, m, math.sqrt(b)) for m, b in zip(located, noise, strict=True)])
    assert density[0, 0] == pytest.approx(exact)
