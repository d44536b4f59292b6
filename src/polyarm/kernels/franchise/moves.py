"""Gibbs moves in the franchise: rewards change their table, tables change their dish.

reward of arm a at a table in use    n_at - d
             at a new one            g + d L_a,   whose dish is   k: (c_k - d0)/(c + g0)   new: (g0 + d0 K)/(c + g0)
each times the predictive density of the dish; g and d are the arms' concentration and discount, g0 and d0 the menu's.
"""

import math

import numpy as np

from polyarm.kernels._jit import RngHandle, inlined, kernel, no_refcount, rng_from
from polyarm.kernels.copying import copy_row
from polyarm.kernels.franchise.books import (
    REWARDS,
    SEEN,
    TABLES,
    Dishes,
    Franchise,
    Room,
    clear_table,
    fits,
    lay_table,
    log_all_tables,
    new_dish_mass,
    new_table_mass,
    room_for,
)
from polyarm.kernels.lanes import whole
from polyarm.kernels.mixture.component import (
    COEF,
    COUNT,
    SCALE,
    SHAPE,
    log_evidence,
    log_mass,
    log_predictive,
    prior_log_predictive,
    reset,
    residuals,
)
from polyarm.kernels.mixture.gibbs import add, remove
from polyarm.kernels.mixture.records import EVER, K_USED, NEXT, ROWS, Arm, close_slot, open_slot
from polyarm.kernels.mixture.seating import draw_index
from polyarm.types import Array, IntArray, Rng


@inlined
def serve(franchise: Franchise, i: int, k: int, v: Array) -> None:
    """Let reward i eat the dish of label k."""
    dishes, rewards = franchise.dishes, franchise.rewards
    rewards.z[i] = k
    T, label, slot, size = dishes.components, dishes.labels[0], dishes.labels[1], dishes.size
    all_arms = Arm(T, label, slot, size, dishes.prior, dishes.R0, dishes.process, rewards.data, rewards.z)
    add(all_arms, slot[k], i, k, v)


@inlined
def take_away(franchise: Franchise, i: int, k: int, v: Array) -> None:
    """Let reward i, which no longer carries label k, count no more in its dish."""
    dishes, rewards = franchise.dishes, franchise.rewards
    T, label, slot, size = dishes.components, dishes.labels[0], dishes.labels[1], dishes.size
    all_arms = Arm(T, label, slot, size, dishes.prior, dishes.R0, dishes.process, rewards.data, rewards.z)
    remove(all_arms, slot[k], i, k, v)


@inlined
def strike_off(dishes: Dishes, k: int) -> None:
    """Give up the dish of label k, which nobody eats."""
    close_slot(dishes.components, dishes.labels[0], dishes.labels[1], dishes.size, dishes.labels[1, k])


@inlined
def create_dish(franchise: Franchise) -> None:
    """Put a new dish on the menu, at the next place and at no table yet."""
    dishes = franchise.dishes
    K = dishes.size[K_USED]
    open_slot(dishes.components, dishes.labels[0], dishes.labels[1], dishes.size, dishes.prior)
    franchise.tables.menu[dishes.labels[0, K]] = 0


@no_refcount
def leave(franchise: Franchise, i: int, room: Room) -> None:
    """Let reward i leave its table; an empty table is cleared, a dish that nobody eats leaves the menu."""
    rewards, tables = franchise.rewards, franchise.tables
    a, t, k = rewards.arm_of[i], rewards.table_of[i], rewards.z[i]
    rewards.z[i] = -1
    tables.guests[a, t] -= 1
    tables.arms[a, REWARDS] -= 1
    if tables.guests[a, t] == 0:
        clear_table(tables, a, t)
    if tables.menu[k] == 0:
        strike_off(franchise.dishes, k)
    else:
        take_away(franchise, i, k, room.v)


@inlined
def log_dishes(dishes: Dishes, data: Array, i: int, room: Room) -> None:
    """Write the log predictive density of reward i under every dish."""
    T, K = dishes.components, dishes.size[K_USED]
    s, e = room.s, room.e
    residuals(T, K, data, i, s, e)
    for k in range(K):
        n = T[COUNT, k]
        room.fit[k] = log_predictive(T[COEF, k] - math.log(n), dishes.process[SHAPE] + 0.5 * n, T[SCALE, k], s[k], e[k])


@no_refcount
def weigh(franchise: Franchise, a: int, fit: Array, new: float, logw: Array) -> None:
    """Write the log weights: tables of arm a, then a new table with each dish, then one with a new dish."""
    label, place, K = franchise.dishes.labels[0], franchise.dishes.labels[1], franchise.dishes.size[K_USED]
    tables, rules = franchise.tables, franchise.rules
    seen = tables.arms[a, SEEN]
    for t in range(seen):
        free = tables.guests[a, t] == 0
        logw[t] = -math.inf if free else math.log(tables.guests[a, t] - rules.discount) + fit[place[tables.dish[a, t]]]
    table = log_mass(new_table_mass(rules, tables.arms[a, TABLES], K)) - log_all_tables(franchise)
    for k in range(K):
        logw[seen + k] = table + log_mass(tables.menu[label[k]] - rules.shared_discount) + fit[k]
    logw[seen + K] = table + log_mass(new_dish_mass(rules, K)) + new


@no_refcount
def sit(franchise: Franchise, i: int, room: Room, rng: Rng) -> None:
    """Draw table and dish of reward i, which sits nowhere."""
    dishes, rewards, tables = franchise.dishes, franchise.rewards, franchise.tables
    a, K = rewards.arm_of[i], dishes.size[K_USED]
    seen = tables.arms[a, SEEN]
    log_dishes(dishes, rewards.data, i, room)
    weigh(franchise, a, room.fit, rewards.data[i, rewards.data.shape[1] - 1], room.logw)
    t = draw_index(room.logw, seen + K + 1, rng)
    if t >= seen:
        k = t - seen
        if k == K:
            create_dish(franchise)
        t = lay_table(tables, a, dishes.labels[0, k])
    tables.guests[a, t] += 1
    tables.arms[a, REWARDS] += 1
    rewards.table_of[i] = t
    serve(franchise, i, tables.dish[a, t], room.v)


@kernel
def log_block(franchise: Franchise, k: int, block: IntArray) -> float:
    """Log density of the rewards of `block` given those that eat the dish at place k, or under the prior if k < 0."""
    dishes, rewards = franchise.dishes, franchise.rewards
    n, prior, a0 = dishes.size[ROWS], dishes.prior, dishes.process[SHAPE]
    H = np.empty((dishes.components.shape[0], 4))
    mark = np.zeros(n, np.int64)
    if k >= 0:
        for row in range(H.shape[0]):
            H[row, 0] = dishes.components[row, k]
        for i in range(n):
            mark[i] = 1 if rewards.z[i] == dishes.labels[0, k] else 0
    else:
        reset(H, 0, prior)
    before = log_evidence(H, 0, prior, a0)
    v = np.empty(rewards.data.shape[1] - 2)
    label, slot, size = dishes.labels[0], dishes.labels[1], dishes.size
    alone = Arm(H, label, slot, size, prior, dishes.R0, dishes.process, rewards.data, mark)
    for i in block:
        mark[i] = 1
        add(alone, 0, i, 1, v)
    return log_evidence(H, 0, prior, a0) - before


@kernel
def send_back(franchise: Franchise, a: int, t: int, v: Array) -> IntArray:
    """Take its dish from a table, and return the rewards that sit there."""
    rewards, tables = franchise.rewards, franchise.tables
    block, M = np.empty(tables.guests[a, t], np.int64), 0
    old = tables.dish[a, t]
    for i in range(franchise.dishes.size[ROWS]):
        if rewards.arm_of[i] == a and rewards.table_of[i] == t:
            block[M] = i
            M += 1
            rewards.z[i] = -1
            if tables.menu[old] > 1:
                take_away(franchise, i, old, v)
    tables.menu[old] -= 1
    if tables.menu[old] == 0:
        strike_off(franchise.dishes, old)
    return block


@kernel
def change_dish(franchise: Franchise, a: int, t: int, rng: Rng) -> None:
    """Draw the dish of a table again, given everything else."""
    tables, rules, label = franchise.tables, franchise.rules, franchise.dishes.labels[0]
    v = np.empty(franchise.rewards.data.shape[1] - 2)
    block = send_back(franchise, a, t, v)
    K = franchise.dishes.size[K_USED]
    logw = np.empty(whole(K + 1))
    for k in range(K):
        logw[k] = log_mass(tables.menu[label[k]] - rules.shared_discount) + log_block(franchise, k, block)
    logw[K] = log_mass(new_dish_mass(rules, K)) + log_block(franchise, -1, block)
    k = draw_index(logw, K + 1, rng)
    if k == K:
        create_dish(franchise)
    tables.dish[a, t] = label[k]
    tables.menu[label[k]] += 1
    for i in block:
        serve(franchise, i, label[k], v)


@kernel
def move_rewards(franchise: Franchise, n_moves: int, handle: RngHandle) -> int:
    """Draw table and dish of uniformly drawn rewards again; return how many are left when there was no room."""
    return move_some(franchise, n_moves, room_for(franchise), rng_from(handle))


@no_refcount
def move_some(franchise: Franchise, n_moves: int, room: Room, rng: Rng) -> int:
    """The moves themselves."""
    for left in range(n_moves, 0, -1):
        if not fits(franchise):
            return left
        i = int(rng.random() * franchise.dishes.size[ROWS])
        leave(franchise, i, room)
        sit(franchise, i, room, rng)
    return 0


@kernel
def move_tables(franchise: Franchise, n_moves: int, handle: RngHandle) -> int:
    """Draw the dish of tables again, drawn by their guests; return how many are left when there was no room."""
    rng = rng_from(handle)
    for left in range(n_moves, 0, -1):
        if not fits(franchise):
            return left
        i = int(rng.random() * franchise.dishes.size[ROWS])
        change_dish(franchise, franchise.rewards.arm_of[i], franchise.rewards.table_of[i], rng)
    return 0


@kernel
def learn(franchise: Franchise, arm: int, x: Array, y: float, handle: RngHandle) -> None:
    """Append a reward and draw its table and dish given the others; there must be room."""
    dishes, rewards = franchise.dishes, franchise.rewards
    d, size, data = x.shape[0], dishes.size, rewards.data
    i = size[ROWS]
    copy_row(x, data[i])
    data[i, d] = y
    data[i, d + 1] = prior_log_predictive(dishes.prior, dishes.process[SHAPE], data, i)
    rewards.arm_of[i] = arm
    rewards.z[i] = -1
    size[ROWS] = size[NEXT] = size[EVER] = i + 1
    sit(franchise, i, room_for(franchise), rng_from(handle))
