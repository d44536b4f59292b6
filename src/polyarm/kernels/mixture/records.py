"""What a sampler of mixtures keeps, as kernels take it; the arrays are those of inference.gibbs.GibbsState.

A arms, each with room for C components; d columns.  Labels stay when slots change, so rewards are never relabelled.
"""

from typing import NamedTuple

import numpy as np

from polyarm.kernels._jit import expanded, inlined, kernel
from polyarm.kernels.mixture.component import copy, reset
from polyarm.types import Array, IntArray

# of a size: components in use, rewards that can move, row of the next, rewards ever
K_USED, ROWS, NEXT, EVER = 0, 1, 2, 3


class Books(NamedTuple):
    """The arrays of a state, and the rewards of one arm."""

    tables: Array  # (A, rows, C): component.py
    slots: IntArray  # (A, 2, C): label of the component in each slot, slot of each label
    sizes: IntArray  # (A, 4)
    priors: Array  # (A, rows): column of an empty component
    R0: Array  # (A, B, d+1, d+1): square-root information of the prior and of what each label has absorbed for good;
    # B = 1 while nothing ever is
    processes: Array  # (A, 4): a0, b0, concentration, discount
    data: Array  # (N, d + 2): x, y and the prior's log predictive of each reward
    z: IntArray  # (N,): its label


class Prior(NamedTuple):
    """What an arm's components start from."""

    column: Array  # (rows,): an empty component
    R0: Array  # (d+1, d+1): its square-root information
    process: Array  # (4,)


class Arm(NamedTuple):
    """One arm; the first size[K_USED] slots are in use."""

    components: Array  # (rows, C)
    label: IntArray
    slot: IntArray
    size: IntArray
    prior: Array
    R0: Array
    process: Array
    data: Array
    z: IntArray


class Room(NamedTuple):
    """Room to work in: log weights, s and e of a reward for every slot, and a vector."""

    logw: Array
    s: Array
    e: Array
    v: Array


@expanded
def arm_of(books: Books, arm: int) -> Arm:
    """The arm whose rewards the books hold."""
    T, label, slot, size = books.tables[arm], books.slots[arm, 0], books.slots[arm, 1], books.sizes[arm]
    return Arm(T, label, slot, size, books.priors[arm], books.R0[arm], books.processes[arm], books.data, books.z)


@kernel
def room_for(arm: Arm) -> Room:
    """Room for this arm."""
    C = arm.components.shape[1]
    return Room(np.empty(C), np.empty(C), np.empty(C), np.empty(arm.data.shape[1] - 2))


@inlined
def home(R0: Array, label: int) -> int:
    """Where the square-root information stands that a component of that label starts from."""
    return label if R0.shape[0] > 1 else 0


@inlined
def open_slot(T: Array, label: IntArray, slot: IntArray, size: IntArray, prior: Array) -> int:
    """Take the next slot for a new, empty component."""
    k = size[K_USED]
    reset(T, k, prior)
    slot[label[k]] = k
    size[K_USED] += 1
    return int(k)


@inlined
def close_slot(T: Array, label: IntArray, slot: IntArray, size: IntArray, k: int) -> None:
    """Give up the slot of an empty component: the last component moves there."""
    size[K_USED] -= 1
    last = size[K_USED]
    free = label[k]
    if k != last:
        copy(T, last, k)
        label[k] = label[last]
        slot[label[k]] = k
        label[last] = free
    slot[free] = last
