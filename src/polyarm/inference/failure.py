"""What becomes of an update whose numbers fail: the state is mended from its rewards, or stays as it was.

An update changes arrays in place.  Rewards that may overflow products of sums of squares are few, so for these the
arrays are copied first and put back if need be; any other failure is mended from the rewards that are kept.
"""

import math
from typing import Any, NoReturn

import numpy as np

from polyarm.errors import NumericalFailure
from polyarm.inference.door import copied
from polyarm.types import Array

LARGE = 1e30  # below this, eighth powers of rewards are far from overflow


def backup_of(state: Any, reward: float) -> Any:
    """A copy of the state where the reward is so large that it may not be learnt, else nothing."""
    return None if -LARGE < reward < LARGE else copied(state)


def all_finite(*arrays: Array) -> bool:
    """Whether every number is finite: a sum keeps what is none."""
    with np.errstate(invalid="ignore", over="ignore"):  # of infinities of both signs, which are told by the answer
        return all(math.isfinite(float(np.add.reduce(array, axis=None))) for array in arrays)


def put_back(state: Any, backup: Any) -> None:
    """Give every array of a state the content of its copy."""
    if isinstance(state, tuple):
        for part, copy in zip(state, backup, strict=True):
            put_back(part, copy)
    elif isinstance(state, np.ndarray):
        state[...] = backup


def give_up(state: Any, backup: Any, reward: float) -> NoReturn:
    """Put the state back and say that the reward cannot be learnt.

    Without a copy the state is left to its engine's door, which refuses it from now on if it is not finite.
    """
    if backup is not None:
        put_back(state, backup)
    raise NumericalFailure(
        f"reward must be one whose sums are finite, got {reward:g}; rescale rewards and contexts towards 1"
    )
