"""What a franchise keeps, as kernels take it; the arrays are those of inference.franchise.FranchiseState.

n_at, n_a   rewards of arm a at table t, and of the whole arm
c_k, c      tables at which dish k is eaten, and all tables
L_a, K      tables in use in arm a, and dishes
"""

import math
from typing import NamedTuple

import numpy as np

from polyarm.kernels._jit import inlined, kernel
from polyarm.kernels.lanes import whole
from polyarm.kernels.mixture.records import K_USED
from polyarm.types import Array, IntArray

TABLES, SEEN, REWARDS = 0, 1, 2


class Dishes(NamedTuple):
    """The components that all arms share, in the layout of mixture/records.py, and what a new one starts from."""

    components: Array  # (rows, C)
    labels: IntArray  # (2, C): label of each place, place of each label
    size: IntArray  # (4,)
    prior: Array
    R0: Array
    process: Array


class Guests(NamedTuple):
    """Every reward, the label of its dish, its arm and its table."""

    data: Array  # (N, d + 2)
    z: IntArray
    arm_of: IntArray
    table_of: IntArray


class Tables(NamedTuple):
    """Tables of the arms; one without guests is free."""

    menu: IntArray  # (C,): c_k by label
    dish: IntArray  # (A, L): label of each table's dish
    guests: IntArray  # (A, L): n_at
    arms: IntArray  # (A, 3): L_a, tables that were ever in use, n_a


class Rules(NamedTuple):
    """Concentrations and discounts of the arms' seating and of the menu."""

    concentration: float
    discount: float
    shared_concentration: float
    shared_discount: float


class Room(NamedTuple):
    """Room to work in: what moves would else allocate, and so count references of every array at every step."""

    logw: Array  # (L + C + 1,), and more up to whole lanes
    fit: Array  # (C,), as the next two
    s: Array
    e: Array
    v: Array  # (d,)


class Franchise(NamedTuple):
    """All books together."""

    dishes: Dishes
    rewards: Guests
    tables: Tables
    rules: Rules


@kernel
def room_for(franchise: Franchise) -> Room:
    """Room enough until a kernel must stop because there is none for another dish or table."""
    C, L = franchise.dishes.components.shape[1], franchise.tables.dish.shape[1]
    d = franchise.rewards.data.shape[1] - 2
    return Room(np.empty(whole(L + C + 1)), np.empty(C), np.empty(C), np.empty(C), np.empty(d))


@inlined
def new_table_mass(rules: Rules, n_tables: int, n_dishes: int) -> float:
    """Mass of a new table in an arm with n_tables; the first one is certain.

    The paper's appendix prints the number of dishes here, which is wrong.
    """
    return rules.concentration + rules.discount * n_tables if n_tables > 0 else 1.0


@inlined
def new_dish_mass(rules: Rules, n_dishes: int) -> float:
    """Mass of a new dish beside n_dishes; the first one is certain."""
    return rules.shared_concentration + rules.shared_discount * n_dishes if n_dishes > 0 else 1.0


@inlined
def n_tables_of_all(tables: Tables) -> int:
    """c."""
    total = 0
    for a in range(tables.arms.shape[0]):
        total += tables.arms[a, TABLES]
    return total


@inlined
def log_all_tables(franchise: Franchise) -> float:
    """log(c + g0), or 0 before the first table."""
    c = n_tables_of_all(franchise.tables)
    return math.log(c + franchise.rules.shared_concentration) if c > 0 else 0.0


@inlined
def fits(franchise: Franchise) -> bool:
    """Whether there is room for another dish, and for another table in every arm."""
    tables = franchise.tables
    for a in range(tables.arms.shape[0]):
        if tables.arms[a, SEEN] == tables.dish.shape[1]:
            return False
    return bool(franchise.dishes.size[K_USED] + 2 <= franchise.dishes.components.shape[1])


@inlined
def clear_table(tables: Tables, a: int, t: int) -> None:
    """Take a table out of use."""
    tables.guests[a, t] = 0
    tables.menu[tables.dish[a, t]] -= 1
    tables.arms[a, TABLES] -= 1
    while tables.arms[a, SEEN] > 0 and tables.guests[a, tables.arms[a, SEEN] - 1] == 0:
        tables.arms[a, SEEN] -= 1


@inlined
def lay_table(tables: Tables, a: int, k: int) -> int:
    """Put the first free table of an arm to use, with the dish of label k and no guests yet."""
    t = 0
    while t < tables.arms[a, SEEN] and tables.guests[a, t] > 0:
        t += 1
    tables.dish[a, t] = k
    tables.menu[k] += 1
    tables.arms[a, TABLES] += 1
    tables.arms[a, SEEN] = max(tables.arms[a, SEEN], t + 1)
    return t
