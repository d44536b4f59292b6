"""The rows that could not be used: how many, which, and why."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from polyarm.types import IntArray

SHOWN = 5  # row numbers kept for every reason


@dataclass
class Ledger:
    """Counts of rows by reason, with the first row numbers of each; rows are numbered from 0 as they lie in the log."""

    n_rows: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[int]] = field(default_factory=dict)

    @property
    def n_set_aside(self) -> int:
        """Rows that were not used."""
        return sum(self.reasons.values())

    def add(self, reason: str, numbers: IntArray) -> None:
        """Set rows aside for a reason."""
        if not len(numbers):
            return
        self.reasons[reason] = self.reasons.get(reason, 0) + len(numbers)
        kept = self.examples.setdefault(reason, [])
        kept.extend(int(number) for number in numbers[: SHOWN - len(kept)])

    def add_lines(self, count: int) -> None:
        """Set lines of a text file aside that do not have as many values as the header."""
        if count:
            self.n_rows += count
            self.reasons["another number of values than the header"] = count

    def lines(self) -> Iterable[str]:
        """Every reason with its count and examples, most frequent first."""
        for reason, count in sorted(self.reasons.items(), key=lambda item: -item[1]):
            rows = ", ".join(str(number) for number in self.examples.get(reason, []))
            more = ", ..." if count > SHOWN else ""
            yield f"{count} {'row' if count == 1 else 'rows'}: {reason}" + (f" (row {rows}{more})" if rows else "")


class Sieve:
    """Sorts the rows of one batch into those to use and those set aside; the first reason counts."""

    def __init__(self, ledger: Ledger, numbers: IntArray) -> None:
        self.ledger, self.numbers = ledger, numbers
        self.good = np.ones(len(numbers), bool)

    def require(self, holds: np.ndarray, reason: str) -> None:
        """Set aside the rows for which this does not hold."""
        bad = self.good & ~holds
        if bad.any():
            self.ledger.add(reason, self.numbers[bad])
            self.good &= holds
