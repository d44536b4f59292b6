"""Changing how many rewards of an arm can still move: `memory` from one engine to another.

An arm's rows are a ring once its memory is full: NEXT is the oldest row.  Fewer rows: the oldest rewards are frozen
into their components, as the engine does when a row comes round again.  More rows: the ring is cut open, oldest first.
"""

from collections.abc import Callable
from typing import Any

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


def rows_fit(data: tuple[Array, ...], sizes: IntArray, memory: int | None) -> bool:
    """Whether the rows of every arm are laid out as with that memory; sizes (A, 2) are rows that can move, next row."""
    pairs = zip(data, with_components(sizes), strict=True)
    return all(memory_fits(np.empty(len(rows), np.int64), size, memory) for rows, size in pairs)


def fit_sums(
    books: Any, data: tuple[Array, ...], memory: int | None, recount: Callable[[Any, Array, int], None]
) -> tuple[Any, tuple[Array, ...]]:
    """Books of sums and rows for that memory, all their own; rewards beyond the memory stay in the sums for good.

    books    a record with sums, kept (the part of rewards that can move no more) and sizes
    recount  computes the sums of an arm afresh from kept and rows
    """
    sizes = with_components(books.sizes)
    seats = tuple(np.zeros(len(rows), np.int64) for rows in data)
    fitted, _ = fit_memory(data, seats, sizes, memory, lambda arm, row: None)
    left = books._replace(
        sums=books.sums.copy(), kept=np.zeros_like(books.kept), sizes=np.ascontiguousarray(sizes[:, 1:])
    )
    for arm, rows in enumerate(fitted):
        recount(left, rows, arm)
    return left._replace(sums=books.sums.copy(), kept=books.sums - left.sums), fitted


def forget_sums(books: Any, share: float) -> None:
    """Let only a share of such books' past remain, for good: no reward in them can move any more; in place."""
    books.sums[:] *= share
    books.kept[:] = books.sums
    books.sizes[:] = 0


def with_components(sizes: IntArray) -> IntArray:
    """Sizes of arms without components in the layout of kernels.mixture: none, rows that can move, next row."""
    return np.column_stack([np.zeros(len(sizes), np.int64), sizes])
