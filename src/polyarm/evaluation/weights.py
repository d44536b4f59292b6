"""How much a log says about a target: its weights, in constant memory."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from polyarm.types import Array, IntArray

EDGES = 10.0 ** np.linspace(-4, 6, 101)  # bins of the histogram, ten to a decade
SHOWN = 5


class LargeWeight(NamedTuple):
    """A weight and the row that has it."""

    weight: float
    row: int


@dataclass
class Weights:
    """Running record of a target's weights."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    n_zero: int = 0
    outside: float = 0.0  # probability that the target gives to arms which the log cannot have played
    unknown: int = 0  # rows in which that cannot be said
    counts: IntArray = field(default_factory=lambda: np.zeros(len(EDGES) + 1, np.int64))
    sums: Array = field(default_factory=lambda: np.zeros(len(EDGES) + 1))
    largest: list[LargeWeight] = field(default_factory=list)
    signal: float = 0.0
    signal_squares: float = 0.0

    def add(self, weights: Array, rewards: Array, numbers: IntArray) -> None:
        """Take in rows."""
        self.n += len(weights)
        self.total += float(weights.sum())
        self.squares += float((weights**2).sum())
        self.n_zero += int((weights == 0).sum())
        gains = weights * rewards
        self.signal += float(np.abs(gains).sum())
        self.signal_squares += float((gains**2).sum())
        bins = np.searchsorted(EDGES, weights, side="right")
        self.counts += np.bincount(bins, minlength=len(EDGES) + 1)
        self.sums += np.bincount(bins, weights, minlength=len(EDGES) + 1)
        top = np.argsort(weights)[::-1][:SHOWN]
        both = [*self.largest, *(LargeWeight(float(weights[i]), int(numbers[i])) for i in top)]
        self.largest = sorted(both, key=lambda large: (-large.weight, large.row))[:SHOWN]

    @property
    def effective(self) -> float:
        """Rows of the target's own that the log is worth: (sum w)^2 / sum w^2 (Kish 1965)."""
        return self.total**2 / self.squares if self.squares > 0 else 0.0

    @property
    def effective_signal(self) -> float:
        """The same for the rewards that count: (sum |w r|)^2 / sum (w r)^2."""
        return self.signal**2 / self.signal_squares if self.signal_squares > 0 else 0.0

    @property
    def mean(self) -> float:
        """Mean weight: 1 where the log tries all that the target would do."""
        return self.total / self.n if self.n else 0.0

    @property
    def mean_se(self) -> float:
        """Standard error of the mean weight."""
        return float(np.sqrt(max(self.squares / self.n - self.mean**2, 0.0) / self.n)) if self.n else 0.0

    @property
    def share_of_largest(self) -> float:
        """Share of all weight that the largest one has."""
        return self.largest[0].weight / self.total if self.largest and self.total > 0 else 0.0

    def share_of_top(self, share: float = 0.01) -> float:
        """Share of all weight in the rows with the largest weights, to the width of a bin."""
        counts, sums = self.counts[::-1], self.sums[::-1]
        if self.total <= 0:
            return 0.0
        reached = np.cumsum(counts)
        k = int(np.searchsorted(reached, share * self.n))
        before = sums[:k].sum()
        inside = (share * self.n - (reached[k - 1] if k else 0)) / max(counts[k], 1) * sums[k]
        return float((before + inside) / self.total)
