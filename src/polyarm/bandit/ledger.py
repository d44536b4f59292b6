"""The book of a bandit: one row per decision and per reward of an older table, column by column, in arrays that grow.

ids            (n,) text; empty for a row that `learn_logged` brought
codes          (n, n_columns) the context as bandit.features writes it
eligible       (n, n_arms) whether the arm could be played; false for arms that came later
probabilities  (n, n_arms) of the decision
means          (n, n_arms) the expected rewards at that time; NaN where unknown
arms, rewards  (n,) the arm played, the reward (NaN while open)
states         (n,) OPEN, LEARNT, DROPPED or LOGGED
seen, turns    (n,) rewards learnt when the decision was made, and when its own was learnt (-1 before)
batches        (n,) first row of the batch that the decision was made in; -1 if it was made alone
times          (n,) nanoseconds since 1970
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polyarm.types import Array, IntArray

OPEN, LEARNT, DROPPED, LOGGED = range(4)
FIRST_CAPACITY = 64


class Ledger:
    """Rows of decisions, found by id."""

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "codes",
        "eligible",
        "probabilities",
        "means",
        "arms",
        "rewards",
        "states",
        "seen",
        "turns",
        "batches",
        "times",
    )

    def __init__(self, n_columns: int, n_arms: int) -> None:
        self.ids: list[str] = []
        self.place: dict[str, int] = {}
        self.open: dict[str, int] = {}
        self.n_columns = n_columns
        self._columns: dict[str, NDArray[Any]] = {
            "codes": np.empty((FIRST_CAPACITY, n_columns)),
            "eligible": np.zeros((FIRST_CAPACITY, n_arms), np.bool_),
            "probabilities": np.zeros((FIRST_CAPACITY, n_arms)),
            "means": np.full((FIRST_CAPACITY, n_arms), np.nan),
            "arms": np.zeros(FIRST_CAPACITY, np.int64),
            "rewards": np.full(FIRST_CAPACITY, np.nan),
            "states": np.zeros(FIRST_CAPACITY, np.int8),
            "seen": np.zeros(FIRST_CAPACITY, np.int64),
            "turns": np.full(FIRST_CAPACITY, -1),
            "batches": np.full(FIRST_CAPACITY, -1),
            "times": np.zeros(FIRST_CAPACITY, np.int64),
        }
        self._rename()

    def _rename(self) -> None:
        self._codes: Array = self._columns["codes"]
        self._eligible: NDArray[np.bool_] = self._columns["eligible"]
        self._probabilities: Array = self._columns["probabilities"]
        self._means: Array = self._columns["means"]
        self._arms: IntArray = self._columns["arms"]
        self._rewards: Array = self._columns["rewards"]
        self._states: NDArray[np.int8] = self._columns["states"]
        self._seen: IntArray = self._columns["seen"]
        self._turns: IntArray = self._columns["turns"]
        self._batches: IntArray = self._columns["batches"]
        self._times: IntArray = self._columns["times"]

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> NDArray[Any]:
        """One column of the rows so far."""
        return self._columns[name][: len(self.ids)]

    def columns(self) -> dict[str, NDArray[Any]]:
        """All columns of the rows so far."""
        return {name: self.column(name) for name in self.COLUMNS}

    def add_one(
        self,
        name: str,
        codes: Array,
        eligible: NDArray[np.bool_],
        probabilities: Array,
        means: Array | None,
        arm: int,
        n_learnt: int,
        time: int,
    ) -> None:
        """Write down one decision that waits for its reward."""
        row = len(self.ids)
        if row == len(self._arms):
            self._make_room(row + 1)
        if self.n_columns:
            self._codes[row] = codes
        self._eligible[row] = eligible
        self._probabilities[row] = probabilities
        if means is not None:
            self._means[row] = means
        self._arms[row] = arm
        self._seen[row] = n_learnt
        self._times[row] = time
        self.ids.append(name)
        self.place[name] = self.open[name] = row

    def add_open(
        self,
        ids: Sequence[str],
        codes: Array,
        eligible: NDArray[np.bool_],
        probabilities: Array,
        means: Array | None,
        arms: IntArray | int,
        n_learnt: int,
        time: int,
        batch: bool = False,
    ) -> None:
        """Write down decisions that wait for their rewards; arrays may be those of one decision."""
        first, stop = len(self.ids), len(self.ids) + len(ids)
        self._make_room(stop)
        self._codes[first:stop] = codes
        self._eligible[first:stop] = eligible
        self._probabilities[first:stop] = probabilities
        if means is not None:
            self._means[first:stop] = means
        self._arms[first:stop] = arms
        self._seen[first:stop] = n_learnt
        self._times[first:stop] = time
        if batch:
            self._batches[first:stop] = first
        self.ids.extend(ids)
        for row, name in enumerate(ids, first):
            self.place[name] = self.open[name] = row

    def add_logged(self, codes: Array, arms: IntArray, rewards: Array, first_turn: int, time: int) -> None:
        """Write down rewards of another table, learnt one after the other."""
        first, stop = len(self.ids), len(self.ids) + len(arms)
        self._make_room(stop)
        self._codes[first:stop] = codes
        self._arms[first:stop] = arms
        self._rewards[first:stop] = rewards
        self._states[first:stop] = LOGGED
        self._seen[first:stop] = first_turn
        self._turns[first:stop] = np.arange(first_turn, first_turn + len(arms))
        self._times[first:stop] = time
        self.ids.extend([""] * len(arms))

    def played(self, row: int) -> tuple[Array, int]:
        """Codes of the context and number of the arm in one row."""
        return self._codes[row], int(self._arms[row])

    def rows_of(self, row: int) -> slice:
        """Rows of the batch that a row belongs to; the row itself if it was made alone."""
        first = int(self._batches[row])
        if first < 0:
            return slice(row, row + 1)
        others = np.flatnonzero(self.column("batches")[first:] != first)
        return slice(first, first + int(others[0]) if len(others) else len(self.ids))

    def close(self, name: str, reward: float, turn: int) -> None:
        """Write down that a decision's reward was learnt."""
        row = self.open.pop(name)
        self._rewards[row] = reward
        self._states[row] = LEARNT
        self._turns[row] = turn

    def drop(self, name: str) -> None:
        """Write down that no reward will come."""
        self._states[self.open.pop(name)] = DROPPED

    def add_arm(self) -> None:
        """Make a column for one more arm."""
        capacity = len(self._arms)
        self._columns["eligible"] = np.column_stack([self._eligible, np.zeros(capacity, np.bool_)])
        self._columns["probabilities"] = np.column_stack([self._probabilities, np.zeros(capacity)])
        self._columns["means"] = np.column_stack([self._means, np.full(capacity, np.nan)])
        self._rename()

    def _make_room(self, n: int) -> None:
        capacity = len(self._arms)
        if n <= capacity:
            return
        while capacity < n:
            capacity *= 2
        old = len(self._arms)
        blank: dict[str, float] = {"means": np.nan, "rewards": np.nan, "turns": -1, "batches": -1}
        for name, column in self._columns.items():
            fresh_column = np.full((capacity, *column.shape[1:]), blank.get(name, 0), column.dtype)
            fresh_column[:old] = column
            self._columns[name] = fresh_column
        self._rename()

    @classmethod
    def restored(cls, ids: list[str], columns: dict[str, NDArray[Any]]) -> "Ledger":
        """Ledger with these rows."""
        ledger = cls(columns["codes"].shape[1], columns["probabilities"].shape[1])
        ledger._make_room(len(ids))
        for name in cls.COLUMNS:
            ledger._columns[name][: len(ids)] = columns[name]
        ledger.ids = ids
        ledger.place = {name: row for row, name in enumerate(ids) if name}
        states = columns["states"]
        ledger.open = {ids[row]: int(row) for row in np.flatnonzero(states == OPEN)}
        return ledger
