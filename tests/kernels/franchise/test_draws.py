"""Draws from the franchise, number by number: the menu, every arm's weights over it, means, densities, expectations."""

import math

import numpy as np
import pytest
from scipy import stats

from polyarm.kernels._jit import plain
from polyarm.kernels.franchise import draws
from polyarm.kernels.franchise.books import Franchise, Rules
from polyarm.kernels.franchise.draws import Menu, Seen
from polyarm.kernels.mixture.means import MAX_STICKS, TAIL
from polyarm.types import Array
from tests import reference
from tests.kernels.franchise.chain import BASE, Chain, N
from tests.kernels.script import Script

RULES = Rules(0.6, 0.3, 0.9, 0.2)
X = np.array([0.7, -1.3])


def franchise() -> Chain:
    chain = Chain(RULES)
    for i in range(N):
        chain.learn(i)
    assert chain.n_dishes > 1
    return chain


def numbers() -> tuple[list[float], list[float], list[float], list[float]]:
    """Normals, gammas, uniforms and betas to draw, all different."""
    rng = np.random.default_rng(8)
    scripted = rng.standard_normal(200), rng.uniform(0.2, 3.0, 200), rng.random(200), rng.uniform(0.6, 0.95, 200)
    normals, gammas, uniforms, betas = (part.tolist() for part in scripted)
    return normals, gammas, uniforms, betas


def exact_dishes(chain: Chain) -> tuple[Array, Array, Array, Array]:
    """x'U, x'Vx, shape and scale of the dishes on the menu and, last, of a new one."""
    rows = []
    for label in chain.dishes:
        eaters = chain.eaters(label)
        fresh = reference.fresh_component(BASE, chain.X[eaters], chain.y[eaters])
        V = np.asarray(fresh["covariance"])
        rows.append((X @ np.asarray(fresh["mean"]), X @ V @ X, BASE.shape + len(eaters) / 2, fresh["scale"]))
    rows.append((X @ BASE.mean_vector, X @ BASE.covariance_matrix @ X, BASE.shape, BASE.scale))
    m, q, a, b = np.array(rows, dtype=float).T
    return m, q, a, b


def test_dishes_are_seen_in_a_context() -> None:
    chain = franchise()
    seen = plain(draws.predict_dishes)(chain.books.dishes, X)
    m, q, _, _ = exact_dishes(chain)
    np.testing.assert_allclose(seen.m, m, rtol=1e-6)
    np.testing.assert_allclose(seen.q, q, rtol=1e-6)
    menu = plain(draws.blank_menu)(chain.books.dishes)
    assert {len(part) for part in menu} == {chain.n_dishes + MAX_STICKS + 1}


def drawn_menu(books: Franchise, script: Script) -> tuple[Menu, int]:
    menu = plain(draws.blank_menu)(books.dishes)
    seen = plain(draws.predict_dishes)(books.dishes, X)
    return menu, plain(draws.draw_menu)(books, seen, menu, script)


def test_a_menu_is_written_from_what_is_drawn() -> None:
    chain = franchise()
    normals, gammas, _, betas = numbers()
    script = Script(normals, gammas, betas=betas)
    menu, Q = drawn_menu(chain.books, script)
    m, q, a, b = exact_dishes(chain)
    K, new = chain.n_dishes, RULES.shared_concentration + chain.n_dishes * RULES.shared_discount
    asked: list[tuple[float, ...]] = []
    for k, label in enumerate(chain.dishes):
        asked += [(a[k],), (chain.n_tables(label) - RULES.shared_discount,)]
    noise, masses = gammas[0 : 2 * K : 2], gammas[1 : 2 * K : 2]
    left = gammas[2 * K] / (sum(masses) + gammas[2 * K])
    asked.append((new,))
    ends, j = list(np.cumsum(masses) / (sum(masses) + gammas[2 * K])), 0
    while left >= TAIL:
        asked += [(1 - RULES.shared_discount, new + (j + 1) * RULES.shared_discount), (BASE.shape,)]
        left *= 1 - betas[j]
        ends.append(1 - left)
        j += 1
    asked.append((BASE.shape,))
    ends.append(1.0)
    np.testing.assert_allclose([x for pair in script.asked for x in pair], [x for pair in asked for x in pair])
    assert Q == len(ends) == K + j + 1
    np.testing.assert_allclose(menu.share[:Q], ends)
    at = [*range(K), *[K] * (j + 1)]
    variance = b[at] / np.array([*noise, *gammas[2 * K + 1 : 2 * K + 2 + j]])
    np.testing.assert_allclose(menu.noise[:Q], variance, rtol=1e-6)
    np.testing.assert_allclose(menu.atom[:Q], m[at] + np.sqrt(variance * q[at]) * normals[:Q], rtol=1e-6)


def test_a_menu_of_nothing_is_all_sticks() -> None:
    books = Chain(RULES).books
    menu, Q = drawn_menu(books, Script(betas=[0.5, 0.9999]))
    assert Q == 3
    np.testing.assert_allclose(menu.share[:Q], [0.5, 0.5 + 0.5 * 0.9999, 1.0])
    menu, Q = drawn_menu(books, Script(betas=[1e-9] * 2000))
    assert Q == MAX_STICKS


def test_a_dish_is_ordered_by_its_share_of_the_menu() -> None:
    share = np.array([0.2, 0.2, 0.7, 0.9, 1.0])
    for u in (0.0, 0.1, 0.2, 0.5, 0.69, 0.7, 0.8, 0.95):
        assert plain(draws.ordered)(share, u) == np.searchsorted(share, u, side="right")


@pytest.mark.parametrize("a", [0, 1, 2])
def test_weights_of_an_arm_are_those_of_its_tables_and_of_a_tail_ordered_from_the_menu(a: int) -> None:
    chain = franchise()
    _, gammas, uniforms, betas = numbers()
    share = np.cumsum(np.random.default_rng(1).dirichlet(np.ones(chain.n_dishes + 3)))
    share[-1] = 1.0
    weight, script = np.full(len(share), np.nan), Script([], gammas, uniforms, betas)
    plain(draws.draw_arm)(chain.books, a, share, weight, script)
    tables = [(label, len(guests)) for label, guests in chain.tables[a] if guests]
    expected, new = np.zeros(len(share)), RULES.concentration + len(tables) * RULES.discount
    for g, (label, _) in zip(gammas, tables, strict=False):
        expected[chain.order.index(label)] += g
    asked: list[tuple[float, ...]] = [(n - RULES.discount,) for _, n in tables]
    left = 1.0
    if tables:
        asked.append((new,))
        left = gammas[len(tables)]
    total = expected.sum() + left
    expected, left = expected / total, left / total
    j = 0
    while left >= TAIL:
        asked.append((1 - RULES.discount, new + (j + 1) * RULES.discount))
        expected[np.searchsorted(share, uniforms[j], side="right")] += left * betas[j]
        left *= 1 - betas[j]
        j += 1
    expected[np.searchsorted(share, uniforms[j], side="right")] += left
    np.testing.assert_allclose([x for pair in script.asked for x in pair], [x for pair in asked for x in pair])
    np.testing.assert_allclose(weight, expected, atol=1e-12)
    assert weight.sum() == pytest.approx(1.0)


def test_sticks_of_an_arm_end() -> None:
    weight, share = np.empty(2), np.array([0.5, 1.0])
    script = Script(uniforms=[0.7] * 3000, betas=[1e-9] * 3000)
    plain(draws.draw_arm)(Chain(RULES).books, 0, share, weight, script)
    assert len(script.asked) == MAX_STICKS - 1
    np.testing.assert_allclose(weight, [0.0, 1.0])


def test_means_and_densities_are_those_of_the_drawn_weights() -> None:
    chain, grid = franchise(), np.array([-2.0, 0.5, 3.0])
    means, density = np.empty((2, 3)), np.zeros((2, 3))
    plain(draws.draw_means)(chain.books, X, means, Script(*numbers()))
    plain(draws.draw_densities)(chain.books, X, 2, grid, density, one := Script(*numbers()))
    script = Script(*numbers())
    for draw in range(2):
        menu, Q = drawn_menu(chain.books, script)
        for a in range(3):
            weight = np.empty(Q)
            plain(draws.draw_arm)(chain.books, a, menu.share[:Q], weight, script)
            assert means[draw, a] == pytest.approx(weight @ menu.atom[:Q])
    script = Script(*numbers())
    for draw in range(2):
        menu, Q = drawn_menu(chain.books, script)
        weight = np.empty(Q)
        plain(draws.draw_arm)(chain.books, 2, menu.share[:Q], weight, script)
        parts = zip(weight, menu.atom, menu.noise, strict=False)
        np.testing.assert_allclose(density[draw], sum(w * stats.norm.pdf(grid, m, math.sqrt(v)) for w, m, v in parts))
    assert one.asked == script.asked


def test_expectations_weigh_tables_and_the_menu_by_their_masses() -> None:
    chain, out = franchise(), np.empty(3)
    plain(draws.expected_means)(chain.books, X, out)
    m, _, _, _ = exact_dishes(chain)
    place = {label: k for k, label in enumerate(chain.dishes)}
    menu = [(chain.n_tables(k) - RULES.shared_discount) * m[place[k]] for k in chain.dishes]
    new = RULES.shared_concentration + chain.n_dishes * RULES.shared_discount
    ordered = (sum(menu) + new * m[-1]) / (sum(map(chain.n_tables, chain.dishes)) + RULES.shared_concentration)
    for a, arm in enumerate(chain.tables):
        tables = [(label, len(guests)) for label, guests in arm if guests]
        seen = sum((n - RULES.discount) * m[place[label]] for label, n in tables)
        fresh = (RULES.concentration + RULES.discount * len(tables)) * ordered
        assert out[a] == pytest.approx((seen + fresh) / (sum(n for _, n in tables) + RULES.concentration), rel=1e-6)
    assert out[1] == pytest.approx(ordered, rel=1e-6)


def test_a_dish_is_a_normal_inverse_gamma_draw() -> None:
    menu = Menu(np.zeros(3), np.zeros(3), np.zeros(3))
    script = Script([0.5], [0.8])
    plain(draws.draw_dish)(1.5, 0.3, 2.5, 1.7, 1, menu, script)
    assert script.asked == [(2.5,)]
    assert menu.noise.tolist() == [0.0, 1.7 / 0.8, 0.0]
    assert menu.atom[1] == pytest.approx(1.5 + math.sqrt(1.7 / 0.8 * 0.3) * 0.5)
    assert isinstance(plain(draws.predict_dishes)(franchise().books.dishes, X), Seen)
