"""A confidence sequence by betting: bounds that hold at all times at once, however often one looks.

Z_t >= 0      observed one by one, with E[Z_t | past] = m
lambda_t      stake, chosen before Z_t is seen, from 0 to c / m
K_t(m)        prod_s (1 + lambda_s (Z_s - m)): capital of one who bets that the mean is above m

If the mean is m, K_t(m) is a martingale that never is negative, so it ever reaches 1 / alpha with probability at most
alpha (Ville): every m that is ever so rich is ruled out, for good.  Weights need no upper bound, since a lower bound of
E[w (r - low)] bounds the value from below, and a lower bound of E[w (high - r)] bounds it from above.

Waudby-Smith & Ramdas 2024 (the stakes: equations 26 and 27); Waudby-Smith, Wu, Ramdas, Karampatziakis & Mineiro 2024.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from polyarm.evaluation.intervals import Interval
from polyarm.types import Array

SHARE = 0.5  # largest share c of the capital that can be lost in one bet
BLOCK = 64  # rows whose bets are settled together; few, so that candidates are ruled out early
FINEST = 1e-5  # smallest distance of a candidate from an end of the range, as a share of the range


def candidates() -> Array:
    """Means on [0, 1] that are tested, dense near both ends: click rates are small."""
    near = np.geomspace(FINEST, 0.5, 600)
    return np.unique(np.concatenate([[0.0], near, 1 - near, np.linspace(0, 1, 401)[1:-1], [1.0]]))


@dataclass
class LowerBound:
    """Anytime-valid lower bound of a mean on [0, 1] from values Z + offset >= 0."""

    alpha: float
    offset: float = 0.0
    grid: Array = field(default_factory=candidates)
    wealth: Array = field(init=False)
    bound: float = 0.0
    n: int = 0
    total: float = 0.0
    spread: float = 0.25  # sum of squares about running means, started as if one value lay 1/2 away

    def __post_init__(self) -> None:
        self.wealth = np.zeros(len(self.grid))

    def add(self, z: Array) -> None:
        """Take in a few values in the order in which they were seen."""
        t = self.n + np.arange(1, len(z) + 1)
        sums = self.total + np.cumsum(z)
        means = (0.5 + sums) / (t + 1)
        squares = self.spread + np.cumsum((z - means) ** 2)
        before = np.concatenate([[self.spread / (self.n + 1)], (squares / (t + 1))[:-1]])
        stake = np.sqrt(2 * math.log(1 / self.alpha) / (before * t * np.log(1 + t)))
        self.n, self.total, self.spread = int(t[-1]), float(sums[-1]), float(squares[-1])
        m = self.grid + self.offset
        with np.errstate(divide="ignore"):
            stakes = np.minimum(stake[:, None], SHARE / m)
        gains = np.cumsum(np.log1p(stakes * (z[:, None] + self.offset - m)), axis=0) + self.wealth
        self.wealth = gains[-1]
        rich = np.flatnonzero((gains >= math.log(1 / self.alpha)).any(axis=0))
        if len(rich):  # capital falls in m, so all that lies below is ruled out too
            self.bound = float(self.grid[rich[-1]])
            self.grid, self.wealth = self.grid[rich[-1] + 1 :], self.wealth[rich[-1] + 1 :]

    def forget_above(self, limit: float) -> None:
        """Test no more the means above a limit that something else rules out."""
        n_kept = int(np.searchsorted(self.grid, limit, side="right")) + 1
        self.grid, self.wealth = self.grid[:n_kept], self.wealth[:n_kept]


@dataclass
class ConfidenceSequence:
    """Bounds of a value in a range, from rows seen one after another."""

    limits: Interval
    level: float
    slack: float = 0.0  # how far below 0 and above 1 the rescaled values may lie
    lower: LowerBound = field(init=False)
    upper: LowerBound = field(init=False)

    def __post_init__(self) -> None:
        alpha = 0.5 * (1 - self.level)
        self.lower, self.upper = LowerBound(alpha, self.slack), LowerBound(alpha, self.slack)

    @property
    def width(self) -> float:
        """Length of the range."""
        return self.limits.high - self.limits.low

    def add_weighted(self, weights: Array, rewards: Array) -> None:
        """Take in weights and rewards; the value is the mean of w r."""
        above, below = rewards - self.limits.low, self.limits.high - rewards
        self._add(weights * above / self.width, weights * below / self.width)

    def add_values(self, values: Array) -> None:
        """Take in values whose mean is sought, at most `slack` ranges outside the range."""
        self._add((values - self.limits.low) / self.width, (self.limits.high - values) / self.width)

    def add_pair(self, least: Array, most: Array) -> None:
        """Take in values from -1 to 1 for a range from -1 to 1, one for the lower bound and one for the upper."""
        self._add((1 + least) / 2, (1 - most) / 2)

    def _add(self, above: Array, below: Array) -> None:
        for start in range(0, len(above), BLOCK):
            self.lower.add(above[start : start + BLOCK])
            self.upper.add(below[start : start + BLOCK])
            self.lower.forget_above(1 - self.upper.bound)
            self.upper.forget_above(1 - self.lower.bound)

    def interval(self) -> Interval | None:
        """The bounds so far; they never widen.  None where every value is ruled out: weights that do not average 1."""
        if self.lower.bound > 1 - self.upper.bound:
            return None
        return Interval(
            self.limits.low + self.lower.bound * self.width, self.limits.high - self.upper.bound * self.width
        )
