"""The restaurant franchise: arms are restaurants whose tables order from one menu of dishes (Teh et al. 2006).

T, label, place, size, prior, root, law   the dishes: components shared by all arms, in the layout of gibbs.py
data (N, d + 2), z (N,)                   every reward and the label of its dish
arm_of, seat  (N,)   arm and table of every reward
menu          (C,)   tables c_k at which the dish of each label is eaten
dish, guests  (A, L) label of each table's dish, and its rewards n_at; a table without guests is free
arms          (A, 3) tables in use L_a, tables that were ever in use, rewards n_a
rules         (4,)   concentration g and discount d of the arms, g0 and d0 of the menu;  c = sum_a L_a, K dishes

reward of arm a at a table in use    n_at - d
             at a new one            g + d L_a,   whose dish is   k: (c_k - d0)/(c + g0)   new: (g0 + d0 K)/(c + g0)
each times the predictive density of the dish.
"""

import math

import numpy as np

from polyarm.kernels._jit import Stream, generator, kernel, step
from polyarm.kernels.component import (
    COEF,
    COUNT,
    SCALE,
    log_evidence,
    log_mass,
    log_predictive,
    prior_log_predictive,
    reset,
    residuals,
)
from polyarm.kernels.gibbs import EVER, NEXT, ROWS, add, close_place, has_room, open_place, remove
from polyarm.kernels.means import MAX_STICKS, TAIL, add_normal, draw_stick, locate
from polyarm.kernels.seating import draw_index
from polyarm.types import Array, IntArray, Rng

TABLES, SEEN, REWARDS = 0, 1, 2


@kernel
def new_table_mass(rules: Array, n_tables: int, n_dishes: int) -> float:
    """Mass of a new table in an arm with n_tables; the first one is certain.

    The paper's appendix prints the number of dishes here, which is wrong.
    """
    return rules[0] + rules[1] * n_tables if n_tables > 0 else 1.0


@kernel
def new_dish_mass(rules: Array, n_dishes: int) -> float:
    """Mass of a new dish beside n_dishes; the first one is certain."""
    return rules[2] + rules[3] * n_dishes if n_dishes > 0 else 1.0


@step
def fits(T: Array, size: IntArray, dish: IntArray, arms: IntArray) -> bool:
    """Whether there is room for another dish, and for another table in every arm."""
    for a in range(arms.shape[0]):
        if arms[a, SEEN] == dish.shape[1]:
            return False
    return has_room(T, size)


@kernel
def leave(
    T: Array,
    label: IntArray,
    place: IntArray,
    size: IntArray,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    z: IntArray,
    arm_of: IntArray,
    seat: IntArray,
    menu: IntArray,
    dish: IntArray,
    guests: IntArray,
    arms: IntArray,
    i: int,
) -> None:
    """Let reward i leave its table; an empty table is cleared, a dish that nobody eats leaves the menu."""
    a, t, k = arm_of[i], seat[i], z[i]
    z[i] = -1
    guests[a, t] -= 1
    arms[a, REWARDS] -= 1
    if guests[a, t] == 0:
        clear_table(menu, dish, guests, arms, a, t)
    if menu[k] == 0:
        close_place(T, label, place, size, place[k])
    else:
        remove(T, place[k], prior, root, law, data, z, size[ROWS], i, k, np.empty(data.shape[1] - 2))


@kernel
def clear_table(menu: IntArray, dish: IntArray, guests: IntArray, arms: IntArray, a: int, t: int) -> None:
    """Take a table out of use."""
    guests[a, t] = 0
    menu[dish[a, t]] -= 1
    arms[a, TABLES] -= 1
    while arms[a, SEEN] > 0 and guests[a, arms[a, SEEN] - 1] == 0:
        arms[a, SEEN] -= 1


@kernel
def lay_table(menu: IntArray, dish: IntArray, guests: IntArray, arms: IntArray, a: int, k: int) -> int:
    """Put the first free table of an arm to use, with the dish of label k and no guests yet."""
    t = 0
    while t < arms[a, SEEN] and guests[a, t] > 0:
        t += 1
    dish[a, t] = k
    menu[k] += 1
    arms[a, TABLES] += 1
    arms[a, SEEN] = max(arms[a, SEEN], t + 1)
    return t


@kernel
def log_dishes(T: Array, K: int, law: Array, data: Array, i: int, fit: Array) -> None:
    """Write the log predictive density of reward i under every dish."""
    s, e = np.empty(T.shape[1]), np.empty(T.shape[1])
    residuals(T, K, data, i, s, e)
    for k in range(K):
        n = T[COUNT, k]
        fit[k] = log_predictive(T[COEF, k] - math.log(n), law[0] + 0.5 * n, T[SCALE, k], s[k], e[k])


@kernel
def weigh(
    label: IntArray,
    place: IntArray,
    K: int,
    menu: IntArray,
    dish: IntArray,
    guests: IntArray,
    arms: IntArray,
    a: int,
    rules: Array,
    fit: Array,
    new: float,
    logw: Array,
) -> None:
    """Write the log weights: tables of arm a, then a new table with each dish, then one with a new dish."""
    seen = arms[a, SEEN]
    for t in range(seen):
        free = guests[a, t] == 0
        logw[t] = -math.inf if free else math.log(guests[a, t] - rules[1]) + fit[place[dish[a, t]]]
    c = arms[:, TABLES].sum()
    table = log_mass(new_table_mass(rules, arms[a, TABLES], K)) - (math.log(c + rules[2]) if c > 0 else 0.0)
    for k in range(K):
        logw[seen + k] = table + log_mass(menu[label[k]] - rules[3]) + fit[k]
    logw[seen + K] = table + log_mass(new_dish_mass(rules, K)) + new


@kernel
def sit(
    T: Array,
    label: IntArray,
    place: IntArray,
    size: IntArray,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    z: IntArray,
    arm_of: IntArray,
    seat: IntArray,
    menu: IntArray,
    dish: IntArray,
    guests: IntArray,
    arms: IntArray,
    rules: Array,
    i: int,
    rng: Rng,
) -> None:
    """Draw table and dish of reward i, which sits nowhere."""
    a, K = arm_of[i], size[0]
    fit, logw = np.empty(K), np.empty(arms[a, SEEN] + K + 1)
    log_dishes(T, K, law, data, i, fit)
    weigh(label, place, K, menu, dish, guests, arms, a, rules, fit, data[i, data.shape[1] - 1], logw)
    choice = draw_index(logw, logw.shape[0], rng)
    t = choice
    if choice >= arms[a, SEEN]:
        k = choice - arms[a, SEEN]
        if k == K:
            open_place(T, label, place, size, prior)
            menu[label[K]] = 0
        t = lay_table(menu, dish, guests, arms, a, label[k])
    guests[a, t] += 1
    arms[a, REWARDS] += 1
    seat[i] = t
    z[i] = dish[a, t]
    add(T, place[z[i]], prior, root, law, data, z, size[ROWS], i, z[i], np.empty(data.shape[1] - 2))


@kernel
def log_block(
    T: Array,
    k: int,
    label: int,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    z: IntArray,
    n: int,
    block: IntArray,
    M: int,
) -> float:
    """Log density of the first M rewards of `block` given those that eat the dish at place k, or under the prior."""
    H = np.empty((T.shape[0], 4))
    mark = np.zeros(n, np.int64)
    if k >= 0:
        H[:, 0] = T[:, k]
        for i in range(n):
            mark[i] = 1 if z[i] == label else 0
    else:
        reset(H, 0, prior)
    before = log_evidence(H, 0, prior, law[0])
    v = np.empty(data.shape[1] - 2)
    for m in range(M):
        mark[block[m]] = 1
        add(H, 0, prior, root, law, data, mark, n, block[m], 1, v)
    return log_evidence(H, 0, prior, law[0]) - before


@kernel
def change_dish(
    T: Array,
    label: IntArray,
    place: IntArray,
    size: IntArray,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    z: IntArray,
    arm_of: IntArray,
    seat: IntArray,
    menu: IntArray,
    dish: IntArray,
    guests: IntArray,
    arms: IntArray,
    rules: Array,
    a: int,
    t: int,
    rng: Rng,
) -> None:
    """Draw the dish of a table again, given everything else."""
    n = size[ROWS]
    block = np.empty(guests[a, t], np.int64)
    M = 0
    old = dish[a, t]
    v = np.empty(data.shape[1] - 2)
    for i in range(n):
        if arm_of[i] == a and seat[i] == t:
            block[M] = i
            M += 1
            z[i] = -1
            if menu[old] > 1:
                remove(T, place[old], prior, root, law, data, z, n, i, old, v)
    menu[old] -= 1
    if menu[old] == 0:
        close_place(T, label, place, size, place[old])
    K = size[0]
    logw = np.empty(K + 1)
    for k in range(K):
        fit = log_block(T, k, label[k], prior, root, law, data, z, n, block, M)
        logw[k] = log_mass(menu[label[k]] - rules[3]) + fit
    logw[K] = log_mass(new_dish_mass(rules, K)) + log_block(T, -1, -1, prior, root, law, data, z, n, block, M)
    k = draw_index(logw, K + 1, rng)
    if k == K:
        open_place(T, label, place, size, prior)
        menu[label[K]] = 0
    dish[a, t] = label[k]
    menu[label[k]] += 1
    for m in range(M):
        z[block[m]] = label[k]
        add(T, k, prior, root, law, data, z, n, block[m], label[k], v)


@kernel
def move_rewards(
    T: Array,
    labels: IntArray,
    size: IntArray,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    z: IntArray,
    arm_of: IntArray,
    seat: IntArray,
    menu: IntArray,
    dish: IntArray,
    guests: IntArray,
    arms: IntArray,
    rules: Array,
    n_moves: int,
    source: Stream,
) -> int:
    """Draw table and dish of uniformly drawn rewards again; return how many are left when there was no room."""
    rng = generator(source)
    label, place = labels[0], labels[1]
    for left in range(n_moves, 0, -1):
        if not fits(T, size, dish, arms):
            return left
        i = int(rng.random() * size[ROWS])
        leave(T, label, place, size, prior, root, law, data, z, arm_of, seat, menu, dish, guests, arms, i)
        sit(T, label, place, size, prior, root, law, data, z, arm_of, seat, menu, dish, guests, arms, rules, i, rng)
    return 0


@kernel
def move_tables(
    T: Array,
    labels: IntArray,
    size: IntArray,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    z: IntArray,
    arm_of: IntArray,
    seat: IntArray,
    menu: IntArray,
    dish: IntArray,
    guests: IntArray,
    arms: IntArray,
    rules: Array,
    n_moves: int,
    source: Stream,
) -> int:
    """Draw the dish of tables again, drawn by their guests; return how many are left when there was no room."""
    rng = generator(source)
    label, place = labels[0], labels[1]
    for left in range(n_moves, 0, -1):
        if not fits(T, size, dish, arms):
            return left
        i = int(rng.random() * size[ROWS])
        a, t = arm_of[i], seat[i]
        change_dish(
            T, label, place, size, prior, root, law, data, z, arm_of, seat, menu, dish, guests, arms, rules, a, t, rng
        )
    return 0


@kernel
def learn(
    T: Array,
    labels: IntArray,
    size: IntArray,
    prior: Array,
    root: Array,
    law: Array,
    data: Array,
    z: IntArray,
    arm_of: IntArray,
    seat: IntArray,
    menu: IntArray,
    dish: IntArray,
    guests: IntArray,
    arms: IntArray,
    rules: Array,
    arm: int,
    x: Array,
    y: float,
    source: Stream,
) -> None:
    """Append a reward and draw its table and dish given the others; there must be room."""
    d = x.shape[0]
    i = size[ROWS]
    data[i, :d] = x
    data[i, d] = y
    data[i, d + 1] = prior_log_predictive(prior, law[0], data, i)
    arm_of[i] = arm
    z[i] = -1
    size[ROWS] = size[NEXT] = size[EVER] = i + 1
    sit(
        T,
        labels[0],
        labels[1],
        size,
        prior,
        root,
        law,
        data,
        z,
        arm_of,
        seat,
        menu,
        dish,
        guests,
        arms,
        rules,
        i,
        generator(source),
    )


@kernel
def draw_dish(m: float, q: float, a: float, b: float, k: int, atom: Array, noise: Array, rng: Rng) -> None:
    """Write one draw of a dish: its noise variance and x'w."""
    noise[k] = b / rng.standard_gamma(a)
    atom[k] = m + math.sqrt(noise[k] * q) * rng.standard_normal()


@kernel
def draw_menu(
    T: Array,
    label: IntArray,
    K: int,
    law: Array,
    menu: IntArray,
    rules: Array,
    m: Array,
    q: Array,
    m0: float,
    q0: float,
    atom: Array,
    noise: Array,
    share: Array,
    rng: Rng,
) -> int:
    """Write a posterior draw of the menu: dishes, then unseen ones; return how many.

    atom is x'w of each, noise its variance, share what it and those before it have of the menu.
    """
    new = rules[2] + K * rules[3]
    total = 0.0
    for k in range(K):
        draw_dish(m[k], q[k], law[0] + 0.5 * T[COUNT, k], T[SCALE, k], k, atom, noise, rng)
        total += rng.standard_gamma(menu[label[k]] - rules[3])
        share[k] = total
    left = rng.standard_gamma(new) if K > 0 else 1.0
    total += left
    for k in range(K):
        share[k] /= total
    left /= total
    Q = K
    for j in range(1, MAX_STICKS):
        if left < TAIL:
            break
        left -= left * draw_stick(new, j, rules[3], rng)
        draw_dish(m0, q0, law[0], law[1], Q, atom, noise, rng)
        share[Q] = 1.0 - left
        Q += 1
    draw_dish(m0, q0, law[0], law[1], Q, atom, noise, rng)
    share[Q] = 1.0
    return Q + 1


@kernel
def draw_arm(
    place: IntArray,
    dish: IntArray,
    guests: IntArray,
    arms: IntArray,
    a: int,
    rules: Array,
    share: Array,
    Q: int,
    weight: Array,
    rng: Rng,
) -> None:
    """Write the weight of each of the menu's Q dishes in an arm: of its tables, and of a tail ordered from the menu."""
    weight[:Q] = 0.0
    total = 0.0
    for t in range(arms[a, SEEN]):
        if guests[a, t] > 0:
            g = rng.standard_gamma(guests[a, t] - rules[1])
            total += g
            weight[place[dish[a, t]]] += g
    new = rules[0] + rules[1] * arms[a, TABLES]
    left = rng.standard_gamma(new) if total > 0.0 else 1.0
    total += left
    for k in range(Q):
        weight[k] /= total
    left /= total
    for j in range(1, MAX_STICKS):
        if left < TAIL:
            break
        part = left * draw_stick(new, j, rules[1], rng)
        weight[np.searchsorted(share[:Q], rng.random(), side="right")] += part
        left -= part
    weight[np.searchsorted(share[:Q], rng.random(), side="right")] += left


@kernel
def draw_means(
    T: Array,
    labels: IntArray,
    size: IntArray,
    prior: Array,
    law: Array,
    menu: IntArray,
    dish: IntArray,
    guests: IntArray,
    arms: IntArray,
    rules: Array,
    x: Array,
    out: Array,
    source: Stream,
) -> None:
    """Fill out (n_draws, n_arms) with joint draws of the arms' means: one menu for all arms in every draw."""
    rng = generator(source)
    K = size[0]
    m, q, m0, q0 = np.empty(K), np.empty(K), np.empty(1), np.empty(1)
    locate(T, K, x, m, q)
    locate(prior.reshape(-1, 1), 1, x, m0, q0)
    room = K + MAX_STICKS + 1
    atom, noise, share, weight = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
    for draw in range(out.shape[0]):
        Q = draw_menu(T, labels[0], K, law, menu, rules, m, q, m0[0], q0[0], atom, noise, share, rng)
        for a in range(out.shape[1]):
            draw_arm(labels[1], dish, guests, arms, a, rules, share, Q, weight, rng)
            out[draw, a] = weighted_mean(weight, atom, Q)


@kernel
def weighted_mean(weight: Array, atom: Array, Q: int) -> float:
    """Sum of weight times atom."""
    value = 0.0
    for k in range(Q):
        value += weight[k] * atom[k]
    return value


@kernel
def draw_densities(
    T: Array,
    labels: IntArray,
    size: IntArray,
    prior: Array,
    law: Array,
    menu: IntArray,
    dish: IntArray,
    guests: IntArray,
    arms: IntArray,
    rules: Array,
    x: Array,
    a: int,
    grid: Array,
    out: Array,
    source: Stream,
) -> None:
    """Fill out (n_draws, len(grid)), zeros before, with posterior draws of the density of an arm's reward."""
    rng = generator(source)
    K = size[0]
    m, q, m0, q0 = np.empty(K), np.empty(K), np.empty(1), np.empty(1)
    locate(T, K, x, m, q)
    locate(prior.reshape(-1, 1), 1, x, m0, q0)
    room = K + MAX_STICKS + 1
    atom, noise, share, weight = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
    for draw in range(out.shape[0]):
        Q = draw_menu(T, labels[0], K, law, menu, rules, m, q, m0[0], q0[0], atom, noise, share, rng)
        draw_arm(labels[1], dish, guests, arms, a, rules, share, Q, weight, rng)
        for k in range(Q):
            add_normal(out[draw], grid, weight[k], atom[k], noise[k])


@kernel
def expected_means(
    T: Array,
    labels: IntArray,
    size: IntArray,
    prior: Array,
    menu: IntArray,
    dish: IntArray,
    guests: IntArray,
    arms: IntArray,
    rules: Array,
    x: Array,
    out: Array,
) -> None:
    """Fill out (n_arms,) with the posterior expectation of every arm's mean given the seating."""
    K = size[0]
    m, q, m0, q0 = np.empty(K), np.empty(K), np.empty(1), np.empty(1)
    locate(T, K, x, m, q)
    locate(prior.reshape(-1, 1), 1, x, m0, q0)
    ordered = (rules[2] + K * rules[3]) * m0[0]
    for k in range(K):
        ordered += (menu[labels[0, k]] - rules[3]) * m[k]
    ordered /= arms[:, TABLES].sum() + rules[2]
    for a in range(out.shape[0]):
        total = (rules[0] + rules[1] * arms[a, TABLES]) * ordered
        for t in range(arms[a, SEEN]):
            if guests[a, t] > 0:
                total += (guests[a, t] - rules[1]) * m[labels[1, dish[a, t]]]
        out[a] = total / (arms[a, REWARDS] + rules[0])
