"""Posterior draws from the franchise: one menu for all arms, and every arm's weights over it.

atom, noise  (Q,)  x'w and noise variance of each dish drawn: those in use, then unseen ones
share        (Q,)  what it and those before it have of the menu
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm.kernels._jit import RngHandle, inlined, kernel, no_refcount, rng_from
from polyarm.kernels.franchise.books import REWARDS, SEEN, TABLES, Dishes, Franchise, n_tables_of_all
from polyarm.kernels.mixture.component import COUNT, NOISE, SCALE, SHAPE
from polyarm.kernels.mixture.means import MAX_STICKS, TAIL, add_normal, draw_stick, locate
from polyarm.kernels.mixture.records import K_USED
from polyarm.types import Array, Rng


class Seen(NamedTuple):
    """Mean m and relative variance q of x'w under every dish in use and, last, under a new one."""

    m: Array
    q: Array


class Menu(NamedTuple):
    """A draw of the menu."""

    atom: Array
    noise: Array
    share: Array


@kernel
def predict_dishes(dishes: Dishes, x: Array) -> Seen:
    """What the dishes say in this context."""
    K = dishes.size[K_USED]
    m, q = np.empty(K + 1), np.empty(K + 1)
    locate(dishes.components, K, x, m, q)
    locate(dishes.prior.reshape(-1, 1), 1, x, m[K:], q[K:])
    return Seen(m, q)


@kernel
def blank_menu(dishes: Dishes) -> Menu:
    """Room for a draw."""
    room = dishes.size[K_USED] + MAX_STICKS + 1
    return Menu(np.empty(room), np.empty(room), np.empty(room))


@inlined
def draw_dish(m: float, q: float, a: float, b: float, k: int, menu: Menu, rng: Rng) -> None:
    """Write one draw of a dish: its noise variance and x'w."""
    menu.noise[k] = b / rng.standard_gamma(a)
    menu.atom[k] = m + math.sqrt(menu.noise[k] * q) * rng.standard_normal()


@no_refcount
def draw_menu(franchise: Franchise, seen: Seen, menu: Menu, rng: Rng) -> int:
    """Write a posterior draw of the menu: dishes in use, then unseen ones; return how many."""
    dishes, rules = franchise.dishes, franchise.rules
    T, K, process = dishes.components, dishes.size[K_USED], dishes.process
    new = rules.shared_concentration + K * rules.shared_discount
    total = 0.0
    for k in range(K):
        draw_dish(seen.m[k], seen.q[k], process[SHAPE] + 0.5 * T[COUNT, k], T[SCALE, k], k, menu, rng)
        total += rng.standard_gamma(franchise.tables.menu[dishes.labels[0, k]] - rules.shared_discount)
        menu.share[k] = total
    left = rng.standard_gamma(new) if K > 0 else 1.0
    total += left
    for k in range(K):
        menu.share[k] /= total
    left /= total
    Q = K
    for j in range(1, MAX_STICKS):
        if left < TAIL:
            break
        left -= left * draw_stick(new, j, rules.shared_discount, rng)
        draw_dish(seen.m[K], seen.q[K], process[SHAPE], process[NOISE], Q, menu, rng)
        menu.share[Q] = 1.0 - left
        Q += 1
    draw_dish(seen.m[K], seen.q[K], process[SHAPE], process[NOISE], Q, menu, rng)
    menu.share[Q] = 1.0
    return Q + 1


@inlined
def ordered(share: Array, u: float) -> int:
    """The dish that a table orders: the first whose share of the menu, with those before it, exceeds u."""
    low, high = 0, share.shape[0]
    while low < high:
        middle = (low + high) // 2
        if share[middle] <= u:
            low = middle + 1
        else:
            high = middle
    return low


@no_refcount
def draw_arm(franchise: Franchise, a: int, share: Array, weight: Array, rng: Rng) -> None:
    """Write the weight of each of the menu's dishes in an arm: of its tables, and of a tail ordered from the menu."""
    tables, rules = franchise.tables, franchise.rules
    for k in range(weight.shape[0]):
        weight[k] = 0.0
    total = 0.0
    for t in range(tables.arms[a, SEEN]):
        if tables.guests[a, t] > 0:
            g = rng.standard_gamma(tables.guests[a, t] - rules.discount)
            total += g
            weight[franchise.dishes.labels[1, tables.dish[a, t]]] += g
    new = rules.concentration + rules.discount * tables.arms[a, TABLES]
    left = rng.standard_gamma(new) if total > 0.0 else 1.0
    total += left
    for k in range(weight.shape[0]):
        weight[k] /= total
    left /= total
    for j in range(1, MAX_STICKS):
        if left < TAIL:
            break
        part = left * draw_stick(new, j, rules.discount, rng)
        weight[ordered(share, rng.random())] += part
        left -= part
    weight[ordered(share, rng.random())] += left


@inlined
def weighted_mean(weight: Array, atom: Array) -> float:
    """Sum of weight times atom."""
    value = 0.0
    for k in range(weight.shape[0]):
        value += weight[k] * atom[k]
    return value


@kernel
def draw_means(franchise: Franchise, x: Array, out: Array, handle: RngHandle) -> None:
    """Fill out (n_draws, n_arms) with joint draws of the arms' means: one menu for all arms in every draw."""
    rng = rng_from(handle)
    seen, menu = predict_dishes(franchise.dishes, x), blank_menu(franchise.dishes)
    weight = np.empty(menu.atom.shape[0])
    for draw in range(out.shape[0]):
        Q = draw_menu(franchise, seen, menu, rng)
        for a in range(out.shape[1]):
            draw_arm(franchise, a, menu.share[:Q], weight[:Q], rng)
            out[draw, a] = weighted_mean(weight[:Q], menu.atom)


@kernel
def draw_densities(franchise: Franchise, x: Array, a: int, grid: Array, out: Array, handle: RngHandle) -> None:
    """Fill out (n_draws, len(grid)), zeros before, with posterior draws of the density of an arm's reward."""
    rng = rng_from(handle)
    seen, menu = predict_dishes(franchise.dishes, x), blank_menu(franchise.dishes)
    weight = np.empty(menu.atom.shape[0])
    for draw in range(out.shape[0]):
        Q = draw_menu(franchise, seen, menu, rng)
        draw_arm(franchise, a, menu.share[:Q], weight[:Q], rng)
        for k in range(Q):
            add_normal(out[draw], grid, weight[k], menu.atom[k], menu.noise[k])


@kernel
def expected_means(franchise: Franchise, x: Array, out: Array) -> None:
    """Fill out (n_arms,) with the posterior expectation of every arm's mean given the seating."""
    dishes, tables, rules = franchise.dishes, franchise.tables, franchise.rules
    K, m = dishes.size[K_USED], predict_dishes(dishes, x).m
    ordered = (rules.shared_concentration + K * rules.shared_discount) * m[K]
    for k in range(K):
        ordered += (tables.menu[dishes.labels[0, k]] - rules.shared_discount) * m[k]
    ordered /= n_tables_of_all(tables) + rules.shared_concentration
    for a in range(out.shape[0]):
        total = (rules.concentration + rules.discount * tables.arms[a, TABLES]) * ordered
        for t in range(tables.arms[a, SEEN]):
            if tables.guests[a, t] > 0:
                total += (tables.guests[a, t] - rules.discount) * m[dishes.labels[1, tables.dish[a, t]]]
        out[a] = total / (tables.arms[a, REWARDS] + rules.concentration)
