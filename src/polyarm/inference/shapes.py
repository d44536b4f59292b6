"""The shape of a state: its nesting, kinds of numbers and lengths, and which of these the settings fix."""

from collections.abc import Collection
from functools import cache
from typing import Any

import numpy as np

MADE_WITH = "made_with"  # the field that says with what settings a state was made; it is no part of its numbers


def added_to(state: Any, earlier: int) -> tuple[str, ...]:
    """The latest so many fields that states of earlier versions do not have: a state class names all of them, in the
    order in which they came, by a static method `added_fields`.

    A file without them is read as one that has what a fresh state has there.
    """
    names: tuple[str, ...] = getattr(state, "added_fields", tuple)()
    return names[max(len(names) - earlier, 0) :]


def n_added(state: Any) -> int:
    """The largest number of such fields in any part of a state."""
    if not isinstance(state, (tuple, list)):
        return 0
    return max([len(added_to(state, len(state))), *(n_added(value) for value in state)])


@cache
def kind_of(dtype: np.dtype[Any]) -> str:
    """The name of a kind of numbers, float64 say, which NumPy takes microseconds to say."""
    return str(dtype)


def shape_of(state: Any, growing: Collection[int] = (), earlier: int = 0) -> Any:
    """The nesting and the shapes of a state: what must agree between a file and the policy that reads it.

    A state class whose arrays grow with the data names their growing axes by a static method `growing_axes`, as
    {"data": (0,)}; a growing axis is written as None, every other one is fixed by the policy's settings.  With
    `earlier`, the shape that a state had before the latest so many fields were added.
    """
    if isinstance(state, (tuple, list)):
        axes: dict[str, tuple[int, ...]] = getattr(state, "growing_axes", dict)()
        names = getattr(state, "_fields", [""] * len(state))
        left_out = (MADE_WITH, *added_to(state, earlier))
        pairs = [(name, value) for name, value in zip(names, state, strict=True) if name not in left_out]
        return [type(state).__name__, [shape_of(value, axes.get(name, growing), earlier) for name, value in pairs]]
    array = np.asarray(state)
    axes_of = [None if i in growing else n for i, n in enumerate(array.shape)]
    return [type(state).__name__, kind_of(array.dtype), axes_of]
