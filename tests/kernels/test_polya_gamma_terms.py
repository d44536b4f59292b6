"""The parts of a Pólya-Gamma draw: terms of the series, shares of the proposals, and a draw number by number."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from polyarm.kernels import polya_gamma
from polyarm.kernels._jit import plain
from polyarm.kernels.polya_gamma import CUT
from tests.kernels.script import Script
from tests.statistics.mutants import mutant


def left(n: int, x: float) -> float:
    """Devroye 2009: the form that falls fast where x is small."""
    k = n + 0.5
    return float(math.pi * k * (2 / (math.pi * x)) ** 1.5 * math.exp(-2 * k**2 / x))


def right(n: int, x: float) -> float:
    k = n + 0.5
    return math.pi * k * math.exp(-0.5 * k**2 * math.pi**2 * x)


@pytest.mark.parametrize("x", [0.2, 0.5, CUT, 0.7, 1.2])
def test_terms_have_the_form_of_their_side_and_both_sum_to_one_density(x: float) -> None:
    found = [plain(polya_gamma.term)(n, x) for n in range(40)]
    form, other = (right, left) if x > CUT else (left, right)
    np.testing.assert_allclose(found, [form(n, x) for n in range(40)])
    signs = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    assert signs @ found == pytest.approx(signs @ [other(n, x) for n in range(40)])


@pytest.mark.parametrize("c", [0.0, 0.4, 1.5, 1.7, 6.0])
def test_the_share_beyond_the_cut_is_that_of_the_first_term(c: float) -> None:
    def tilted(x: float) -> float:
        return (right if x > CUT else left)(0, x) * math.exp(-0.5 * c * c * x)

    beyond, _ = quad(tilted, CUT, np.inf)
    at = min(1.0 / c, CUT) if c > 0 else CUT / 2
    before = quad(tilted, 0, at)[0] + quad(tilted, at, CUT)[0]
    assert plain(polya_gamma.share_beyond)(c) == pytest.approx(beyond / (beyond + before), rel=1e-7, abs=1e-300)


def test_an_inverse_normal_with_a_large_mean_is_proposed_and_thinned() -> None:
    """x = CUT / (1 + CUT e)^2 where e^2 <= 2 e' / CUT, kept with probability exp(-c^2 x / 2)."""
    c, e = 0.9, [1.5, 0.2, 0.3, 0.9, 0.1, 1.1]
    assert e[0] ** 2 > 2 * e[1] / CUT
    assert e[2] ** 2 <= 2 * e[3] / CUT
    first, second = (CUT / (1 + CUT * v) ** 2 for v in (e[2], e[4]))
    keep = math.exp(-0.5 * c * c * first)
    for u, wanted in ((keep - 1e-9, first), (keep + 1e-9, second)):
        script = Script(uniforms=[u, 0.0], exponentials=e)
        assert plain(polya_gamma.draw_inverse_normal)(c, script) == pytest.approx(wanted)


def test_an_inverse_normal_with_a_small_mean_is_drawn_until_it_is_below_the_cut() -> None:
    """Michael, Schucany & Haas 1976: the smaller root, or mean^2 over it with probability x / (mean + x)."""
    c = 2.0
    mean = 1.0 / c

    def root(y: float) -> float:
        return mean + 0.5 * mean**2 * y**2 - 0.5 * mean * math.sqrt(4 * mean * y**2 + mean**2 * y**4)

    for y in (0.4, 1.9):
        x = root(y)
        edge = mean / (mean + x)
        for u, wanted in ((edge - 1e-9, x), (edge + 1e-9, mean**2 / x)):
            found = plain(polya_gamma.draw_inverse_normal)(c, Script([y, 0.3], uniforms=[u, 0.0]))
            assert found == pytest.approx(wanted if wanted <= CUT else root(0.3))


@pytest.mark.parametrize("z", [0.6, -0.6, 9.0])
def test_a_draw_is_a_quarter_of_what_the_partial_sums_accept(z: float) -> None:
    c = abs(z) / 2
    beyond = plain(polya_gamma.share_beyond)(c)
    far = CUT + 0.8 / (math.pi**2 / 8 + c * c / 2)
    ratios = [1.0]  # partial sums over the first term, at the proposal
    for n in range(1, 5):
        ratios.append(ratios[-1] + (-1) ** n * right(n, far) / right(0, far))
    accept = 0.5 * (ratios[3] + ratios[4])
    for u, wanted in ((accept - 0.4, far), (ratios[1], far), (accept + 0.5 * (1 - accept), None)):
        if wanted is None and ratios[2] >= u:
            continue
        again = CUT + 1.9 / (math.pi**2 / 8 + c * c / 2)
        script = Script(uniforms=[beyond - 1e-12, u, 0.0, 0.0], exponentials=[0.8, 1.9])
        found = plain(polya_gamma.draw)(z, script)
        assert found == pytest.approx(0.25 * (wanted if wanted is not None else again))
    low = Script(uniforms=[beyond + 1e-9, 0.0, 0.0], exponentials=[0.3, 0.9], normals=[0.4])
    same = Script(uniforms=[0.0], exponentials=[0.3, 0.9], normals=[0.4])
    assert plain(polya_gamma.draw)(z, low) == pytest.approx(0.25 * plain(polya_gamma.draw_inverse_normal)(c, same))


def test_later_terms_decide_between_the_bounds() -> None:
    """At the cut the third term is 3e-8 of the first: a level between the second and the third sum needs a fourth."""
    x = CUT + 1e-12
    s = [right(0, x)]
    for n in range(1, 6):
        s.append(s[-1] + (-1) ** n * right(n, x))
    beyond, rate = plain(polya_gamma.share_beyond)(0.0), math.pi**2 / 8
    exact = s[5] / s[0]
    for u, accepted in ((exact - 1e-9, True), (exact + 1e-9, False), ((s[1] - 1e-9) / s[0], True)):
        script = Script(uniforms=[beyond / 2, u, beyond / 2, 0.0], exponentials=[1e-12 * rate, 0.7])
        other = CUT + 0.7 / rate
        assert plain(polya_gamma.draw)(0.0, script) == pytest.approx(0.25 * (x if accepted else other), rel=1e-9)


@pytest.mark.parametrize("z", [1e39, 1e41, -1e160, 1e300, math.inf, -math.inf, math.nan])
def test_a_draw_ends_however_far_z_is(z: float) -> None:
    """Its mean is 1 / (2 |z|) and its relative spread sqrt(2 / |z|)."""
    terms: list[int] = []

    def term(n: int, x: float) -> float:
        terms.append(n)
        assert len(terms) < 100, "the series never ends"
        with np.errstate(all="ignore"):
            return float(plain(polya_gamma.term)(n, np.float64(x)))

    found = mutant(polya_gamma.draw, {"term": term, "share_beyond": lambda c: 0.0})(z, Script(normals=[0.3]))
    if math.isnan(z):
        assert math.isnan(found)
    else:
        assert found == pytest.approx(0.5 / abs(z), rel=1e-9, abs=0.0)


def test_every_z_has_its_own_draw() -> None:
    z, out = np.array([0.3, -2.0, 7.0]), np.empty(3)
    plain(polya_gamma.fill)(z, out, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(out, [plain(polya_gamma.draw)(value, rng) for value in z])
