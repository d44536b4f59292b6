"""What a study found, as arrays by policy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polyarm.experiments.running.records import last_tenth
from polyarm.types import Array, IntArray


@dataclass(frozen=True, eq=False)
class Results:
    """Tidy rows (see `records`), sorted by policy, realisation and step; all runs share their checkpoints."""

    table: pa.Table
    settings: dict[str, Any]

    @property
    def labels(self) -> list[str]:
        """Labels of the policies, in the order they were asked for."""
        return list(self.settings["policies"])

    @property
    def horizon(self) -> int:
        """Number of steps of a realisation."""
        return int(self.settings["horizon"])

    @property
    def realizations(self) -> IntArray:
        """Numbers of the realisations, ascending (of the first policy: a slow one may have fewer)."""
        return np.unique(self._rows(self.labels[0])["realization"].to_numpy()).astype(np.int64)

    @property
    def steps(self) -> IntArray:
        """Checkpoints of every run."""
        return np.unique(self._rows(self.labels[0])["step"].to_numpy()).astype(np.int64)

    def _rows(self, label: str) -> pa.Table:
        return self.table.filter(pc.field("policy") == label)

    def curves(self, label: str, column: str = "regret") -> Array:
        """A column of one policy, (realisations, checkpoints), and for plays one axis more, the arms."""
        values = self._rows(label)[column]
        array = np.array(values.to_pylist() if column == "plays" else values.to_numpy(), dtype=np.float64)
        return array.reshape(-1, len(self.steps), *array.shape[1:])

    def final(self, label: str, column: str = "regret") -> Array:
        """A column of one policy at the last step, one value per realisation."""
        return self.curves(label, column)[:, -1]

    def optimal_share(self, label: str) -> Array:
        """Share of steps so far at which the best arm was played, (realisations, checkpoints)."""
        return self.curves(label, "optimal_plays") / self.steps

    def locked_in(self, label: str) -> Array:
        """Whether the last tenth of each run plays the best arm less than half of the time."""
        plays = self.curves(label, "optimal_plays")
        start = last_tenth(self.horizon)
        before = plays[:, self.steps == start].sum(axis=1)  # no such checkpoint where the run has a single step
        return np.asarray((plays[:, -1] - before) / (self.horizon - start) < 0.5, dtype=np.float64)
