"""The shape of a state: its nesting, kinds of numbers and lengths, and which of these the settings fix."""

from collections.abc import Collection
from typing import Any

import numpy as np

MADE_WITH = "made_with"  # the field that says with what settings a state was made; it is no part of its numbers


def added_to(state: Any) -> tuple[str, ...]:
    """Fields that states of earlier versions do not have: a state class names them by a static method `added_fields`.

    A file without them is read as one that has what a fresh state has there.
    """
    names: tuple[str, ...] = getattr(state, "added_fields", tuple)()
    return names


def shape_of(state: Any, growing: Collection[int] = (), earlier: bool = False) -> Any:
    """The nesting and the shapes of a state: what must agree between a file and the policy that reads it.

    A state class whose arrays grow with the data names their growing axes by a static method `growing_axes`, as
    {"data": (0,)}; a growing axis is written as None, every other one is fixed by the policy's settings.  With
    `earlier`, the shape that a state of an earlier version had.
    """
    if isinstance(state, (tuple, list)):
        axes: dict[str, tuple[int, ...]] = getattr(state, "growing_axes", dict)()
        names = getattr(state, "_fields", [""] * len(state))
        left_out = (MADE_WITH, *(added_to(state) if earlier else ()))
        pairs = [(name, value) for name, value in zip(names, state, strict=True) if name not in left_out]
        return [type(state).__name__, [shape_of(value, axes.get(name, growing), earlier) for name, value in pairs]]
    array = np.asarray(state)
    return [type(state).__name__, str(array.dtype), [None if i in growing else n for i, n in enumerate(array.shape)]]
