"""States with one more arm."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from polyarm.errors import require

Part = TypeVar("Part")
Model = TypeVar("Model")


def with_empty_arm(state: Part, fresh: Part) -> Part:
    """A state with the last arm of a fresh one, made for one more arm, behind its own.

    What holds an entry per arm is longer in the fresh state by one; room that has grown is filled with zeros.
    """
    old: Any = state
    new: Any = fresh
    if isinstance(old, tuple) and hasattr(old, "_fields"):
        grown: Any = type(old)(*(with_empty_arm(mine, other) for mine, other in zip(old, new, strict=True)))
    elif isinstance(old, tuple) and len(new) == len(old) + 1:
        grown = (*old, new[-1])
    elif isinstance(old, np.ndarray) and old.ndim > 0 and len(new) == len(old) + 1:
        row = np.zeros((1, *old.shape[1:]), old.dtype)
        held: list[Any] = [0, *(slice(n) for n in new.shape[1:])]
        row[tuple(held)] = new[-1]
        grown = np.concatenate([old, row])
    else:
        grown = new if isinstance(old, str) and old else old  # the settings that it was made with
    part: Part = grown
    return part


def model_of_all(arms: Sequence[Model]) -> Model:
    """The one model that all arms have, which a new arm gets too."""
    require(all(arm == arms[0] for arm in arms), "arms", "of one model, so that a new arm can have it", arms)
    return arms[0]
