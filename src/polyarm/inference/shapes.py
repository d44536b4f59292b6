"""The shape of a state: its nesting, kinds of numbers and lengths, and which of these the settings fix."""

from collections.abc import Collection
from functools import cache
from typing import Any

import numpy as np

MADE_WITH = "made_with"  # the field that says with what settings a state was made; it is no part of its numbers
LAYOUT = 7  # of states; every change that added fields made it one more


def added_to(state: Any, earlier: int) -> tuple[str, ...]:
    """Fields that the latest so many layouts brought: a state class names its own, each with the layout that it came
    with, by a static method `added_fields`.

    A file without them is read as one that has what a fresh state has there.
    """
    added: dict[str, int] = getattr(state, "added_fields", dict)()
    return tuple(name for name, layout in added.items() if layout > LAYOUT - earlier)


def n_added(state: Any) -> int:
    """How many layouts ago no part of a state had fields that came later."""
    if not isinstance(state, (tuple, list)):
        return 0
    added: dict[str, int] = getattr(state, "added_fields", dict)()
    return max([0, *(LAYOUT - layout + 1 for layout in added.values()), *(n_added(value) for value in state)])


@cache
def kind_of(dtype: np.dtype[Any]) -> str:
    """The name of a kind of numbers, float64 say, which NumPy takes microseconds to say."""
    return str(dtype)


def shape_of(state: Any, growing: Collection[int] = (), earlier: int = 0) -> Any:
    """The nesting and the shapes of a state: what must agree between a file and the policy that reads it.

    A state class whose arrays grow with the data names their growing axes by a static method `growing_axes`, as
    {"data": (0,)}; a growing axis is written as None, every other one is fixed by the policy's settings.  With
    `earlier`, the shape that a state had so many layouts ago.
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
