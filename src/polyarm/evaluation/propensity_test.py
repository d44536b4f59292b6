"""Are the logged propensities those that were played by?

If they are, then for every arm a that could be played in every row, and every function f of the context or the time,
    E[(1[a_t = a] / p_t - 1) f(x_t)] = 0;
where the log has all probabilities, the sum goes over the rows in which the arm was possible.
With f = 1 this compares plays with propensities; with f a context entry or the time it finds propensities that are
right on average and wrong where it matters.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from polyarm import special
from polyarm.evaluation.log import Rows
from polyarm.types import Array

REJECTED = 1e-4  # of all tests of a log together (Bonferroni)
ENOUGH_PLAYS = 50  # an arm played less often where a function is not small is not tested: its sums are far from normal


class PropensityVerdict(NamedTuple):
    """The p-value of all tests together, and the worst of them in words."""

    p_value: float
    worst: str
    n_tests: int

    @property
    def rejected(self) -> bool:
        """Whether the propensities are wrong beyond doubt."""
        return self.p_value < REJECTED


@dataclass
class PropensityTest:
    """Sums over rows for every arm and function: (A, k), k functions named `names`."""

    n_arms: int
    names: tuple[str, ...]
    n_rows: int
    weighted: Array = field(init=False)
    weighted_squares: Array = field(init=False)
    crossed: Array = field(init=False)
    plain: Array = field(init=False)
    squares: Array = field(init=False)
    fourths: Array = field(init=False)
    inverses: Array = field(init=False)
    plays: Array = field(init=False)
    n: int = 0

    def __post_init__(self) -> None:
        shape = (self.n_arms, len(self.names))
        self.weighted, self.weighted_squares, self.crossed = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.plain, self.squares, self.fourths = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.inverses, self.plays = np.zeros(self.n_arms), np.zeros(self.n_arms)

    def add(self, rows: Rows, functions: Array) -> None:
        """Take in rows; `functions` are their values (n, k) of the functions."""
        self.n += len(rows)
        self.plays += np.bincount(rows.arms, minlength=self.n_arms)
        for sums, power in ((self.plain, 1), (self.squares, 2), (self.fourths, 4)):
            if rows.probabilities is None:
                sums += (functions**power).sum(axis=0)
            else:  # rows in which an arm was not possible say nothing about it
                sums += (rows.probabilities > 0).T @ functions**power
        inverse = 1 / rows.propensities
        self.inverses += np.bincount(rows.arms, inverse, minlength=self.n_arms)
        for j, f in enumerate(functions.T):
            for sums, values in (
                (self.weighted, f * inverse),
                (self.weighted_squares, (f * inverse) ** 2),
                (self.crossed, f * f * inverse),
            ):
                sums[:, j] += np.bincount(rows.arms, values, minlength=self.n_arms)

    def verdict(self, arms: tuple[str, ...]) -> PropensityVerdict:
        """All tests together."""
        tested = self._tested()
        if not tested.any():
            return PropensityVerdict(1.0, "no arm was played often enough to test its propensities", 0)
        excess = self.weighted - self.plain
        variance = self._variance(excess)
        with np.errstate(invalid="ignore", divide="ignore"):
            z = np.where(variance > 1e-9 * self.squares, excess / np.sqrt(np.maximum(variance, 0)), 0.0)
            exact = (variance <= 1e-9 * self.squares) & (np.abs(excess) > 1e-6 * (np.abs(self.plain) + self.squares))
        z[exact] = np.sign(excess[exact]) * np.inf  # nothing varies and yet the sums differ
        z[~tested] = 0.0
        n_tests = int(tested.sum())
        a, j = np.unravel_index(int(np.abs(z).argmax()), z.shape)
        p_value = min(1.0, n_tests * float(2 * special.ndtr(-abs(z[a, j]))))
        return PropensityVerdict(p_value, self._words(int(a), int(j), arms), n_tests)

    def _tested(self) -> np.ndarray:
        """Arms and functions (A, k) with enough plays where the function is not small."""
        rows = np.divide(self.squares**2, self.fourths, out=np.zeros_like(self.squares), where=self.fourths > 0)
        possible = np.maximum(self.squares[:, :1], 1.0)  # the first function is 1
        return np.asarray(self.plays[:, None] * rows / possible >= ENOUGH_PLAYS)

    def _variance(self, excess: Array) -> Array:
        """Variance of the sums (A, k): as seen, or as an arm's mean inverse propensity makes it, whichever is larger.

        The first alone is too small just when an arm is played too seldom.
        """
        seen = self.weighted_squares - 2 * self.crossed + self.squares - excess**2 / max(self.n, 1)
        inverse = np.divide(self.inverses, self.plays, out=np.ones(self.n_arms), where=self.plays > 0)
        return np.asarray(np.maximum(seen, (inverse - 1)[:, None] * self.squares))

    def _words(self, arm: int, function: int, arms: tuple[str, ...]) -> str:
        level = self.weighted[arm, 0] / max(self.plain[arm, 0], 1.0)
        if function == 0:
            return f"{arms[arm]} was played {level:.3g} times as often as its propensities say"
        return f"the plays of {arms[arm]} depend on {self.names[function]} in a way that its propensities do not"
