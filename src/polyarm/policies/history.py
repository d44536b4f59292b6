"""Every reward of every arm, for policies that need them all."""

from typing import NamedTuple

import numpy as np

from polyarm.choosing import surely_best_of
from polyarm.errors import require_eligible
from polyarm.inference.state_checks import DATA_LIMIT, require_numbers, require_range
from polyarm.types import Array, Choice, IntArray, Mask

FIRST_CAPACITY = 16  # rewards of an arm there is room for at first; doubled when full


class History(NamedTuple):
    """Rows (contexts, if kept, then the reward) of every arm, (n_arms, capacity, width), and their numbers (n_arms,).

    Memory is that of the most played arm times the number of arms.
    """

    rows: Array
    counts: IntArray

    def require_sound(self) -> None:
        """Raise unless every reward has a row of finite numbers."""
        require_range(self.counts, 0, self.rows.shape[1], "state.counts")
        for arm, n in enumerate(self.counts):
            require_numbers(self.rows[arm, :n], f"state.rows[{arm}]", DATA_LIMIT)

    @staticmethod
    def growing_axes() -> dict[str, tuple[int, ...]]:
        """Axes that double when full: see state_file."""
        return {"rows": (1,)}


def no_history(n_arms: int, context_dim: int = 0) -> History:
    """The history before any reward; a context of length 0 is not kept."""
    return History(np.zeros((n_arms, FIRST_CAPACITY, context_dim + 1)), np.zeros(n_arms, np.int64))


def with_reward(history: History, arm: int, *row: float) -> History:
    """The history after one more row of an arm; it owns the one it is given."""
    rows, counts = history
    n = int(counts[arm])
    if n == rows.shape[1]:
        rows = np.concatenate([rows, np.zeros_like(rows)], axis=1)
    rows[arm, n] = row
    counts[arm] = n + 1
    return History(rows, counts)


def rewards_of(history: History, arm: int) -> Array:
    """Rewards of an arm in the order they came, (n,)."""
    return np.ascontiguousarray(history.rows[arm, : history.counts[arm], -1])


def first_unplayed(counts: IntArray, eligible: Mask | None = None) -> Choice | None:
    """The lowest eligible arm that has no reward yet, if there is one."""
    mask = require_eligible(eligible, len(counts))
    waiting = counts == 0 if mask is None else (counts == 0) & mask
    arm = int(waiting.argmax())
    return surely_best_of(np.eye(len(counts))[arm], eligible) if waiting[arm] else None
