"""The shape of a state: its nesting, kinds of numbers and lengths, and which of these the settings fix."""

from collections.abc import Collection
from typing import Any

import numpy as np

MADE_WITH = "made_with"  # the field that says with what settings a state was made; it is no part of its numbers


def shape_of(state: Any, growing: Collection[int] = ()) -> Any:
    """The nesting and the shapes of a state: what must agree between a file and the policy that reads it.

    A state class whose arrays grow with the data names their growing axes by a static method `growing_axes`, as
    {"data": (0,)}; a growing axis is written as None, every other one is fixed by the policy's settings.
    """
    if isinstance(state, (tuple, list)):
        axes: dict[str, tuple[int, ...]] = getattr(state, "growing_axes", dict)()
        names = getattr(state, "_fields", [""] * len(state))
        pairs = [(name, value) for name, value in zip(names, state, strict=True) if name != MADE_WITH]
        return [type(state).__name__, [shape_of(value, axes.get(name, growing)) for name, value in pairs]]
    array = np.asarray(state)
    return [type(state).__name__, str(array.dtype), [None if i in growing else n for i, n in enumerate(array.shape)]]
