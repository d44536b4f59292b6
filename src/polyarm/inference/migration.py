"""Changing how many rewards of an arm can still move: `memory` from one engine to another.

An arm's rows are a ring once its memory is full: NEXT is the oldest row.  Fewer rows: the oldest rewards are frozen
into their components, as the engine does when a row comes round again.  More rows: the ring is cut open, oldest first.
"""

from collections.abc import Callable

import numpy as np

from polyarm.kernels.mixture.records import NEXT, ROWS
from polyarm.types import Array, IntArray


def memory_fits(seats: IntArray, size: IntArray, memory: int | None) -> bool:
    """Whether an arm's rows are laid out as an engine with that memory would have them."""
    if memory is not None and len(seats) > memory:
        return False
    return bool(size[NEXT] == size[ROWS] or (size[ROWS] == len(seats) == memory))


def fit_memory(
    data: tuple[Array, ...],
    seats: tuple[IntArray, ...],
    sizes: IntArray,
    memory: int | None,
    freeze: Callable[[int, int], None],
) -> tuple[tuple[Array, ...], tuple[IntArray, ...]]:
    """Rows and seats of every arm for that memory; sizes are changed in place, older rewards frozen by (arm, row)."""
    rows, labels = list(data), list(seats)
    for arm, size in enumerate(sizes):
        if memory_fits(seats[arm], size, memory):
            continue
        n = int(size[ROWS])
        order = np.roll(np.arange(n), -int(size[NEXT]))
        kept = n if memory is None else min(n, memory)
        for row in order[: n - kept]:
            freeze(arm, int(row))
        room = max(kept, min(len(seats[arm]), memory or len(seats[arm])))
        rows[arm] = np.zeros((room, data[arm].shape[1]))
        labels[arm] = np.zeros(room, np.int64)
        rows[arm][:kept], labels[arm][:kept] = data[arm][order[n - kept :]], seats[arm][order[n - kept :]]
        size[ROWS] = size[NEXT] = kept
    return tuple(rows), tuple(labels)
