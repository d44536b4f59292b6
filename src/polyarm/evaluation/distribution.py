"""The distribution of the reward under a target: weighted, in constant memory.

Every bin of neighbouring rewards keeps six sums over its rows: w, w r, w^2, w^2 r, w^2 r^2 and their number.  While
there are at most `SIZE` different rewards each has its own bin and all is exact; beyond that a bin holds about a share
1 / SIZE of the weight.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from polyarm.evaluation.intervals import Interval, normal_quantile, reach_of_bernstein
from polyarm.types import Array, IntArray

SIZE = 8192
WEIGHT, WEIGHTED, SQUARE, SQUARE_R, SQUARE_RR, COUNT = range(6)


@dataclass
class WeightedRewards:
    """Sorted bins (7, m): the reward of each and its six sums."""

    rewards: Array = field(default_factory=lambda: np.empty(0))
    sums: Array = field(default_factory=lambda: np.empty((6, 0)))
    n: int = 0

    def add(self, weights: Array, rewards: Array) -> None:
        """Take in rows; those without weight only count."""
        self.n += len(weights)
        used = weights > 0
        w, r = weights[used], rewards[used]
        squares = w * w
        sums = np.stack([w, w * r, squares, squares * r, squares * r * r, np.ones(len(w))])
        self._gather(np.concatenate([self.rewards, r]), np.concatenate([self.sums, sums], axis=1))

    def _gather(self, rewards: Array, sums: Array) -> None:
        order = np.argsort(rewards, kind="stable")
        rewards, sums = rewards[order], sums[:, order]
        if not len(rewards):
            return
        starts: IntArray = np.flatnonzero(np.concatenate([[True], rewards[1:] != rewards[:-1]]))
        if len(starts) > SIZE:
            share = np.cumsum(sums[WEIGHT]) / sums[WEIGHT].sum()
            label = np.minimum((share * SIZE).astype(np.int64), SIZE - 1)
            starts = np.flatnonzero(np.concatenate([[True], label[1:] != label[:-1]]))
        self.sums = np.add.reduceat(sums, starts, axis=1)
        ends = np.append(starts[1:], len(rewards)) - 1
        same = rewards[starts] == rewards[ends]
        self.rewards = np.where(same, rewards[starts], self.sums[WEIGHTED] / self.sums[WEIGHT])

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.sums[WEIGHT].sum())

    def quantile(self, p: float) -> float:
        """Smallest reward at which the weighted distribution function reaches p."""
        if self.total <= 0:
            return math.nan
        cdf = np.cumsum(self.sums[WEIGHT]) / self.total
        return float(self.rewards[min(int(np.searchsorted(cdf, p - 1e-12)), len(cdf) - 1)])

    def shortfall(self, p: float) -> float:
        """Mean of the worst share p of the rewards: q - E[(q - r)+] / p, which splits a reward at the border."""
        q = self.quantile(p)
        if not math.isfinite(q):
            return math.nan
        below = self.rewards <= q
        lacking = q * self.sums[WEIGHT][below] - self.sums[WEIGHTED][below]
        return q - float(np.maximum(lacking, 0.0).sum()) / self.total / p

    def quantile_normal(self, p: float, level: float) -> Interval:
        """Rewards between which the distribution function is p +- z s (Woodruff 1952), s by linearising the share."""
        q = self.quantile(p)
        if not math.isfinite(q):
            return Interval(-math.inf, math.inf)
        below = self.rewards <= q
        squares = float(((below - p) ** 2 * self.sums[SQUARE]).sum())
        reach = normal_quantile(level) * math.sqrt(squares) / self.total
        return self._between(p - reach, p + reach)

    def quantile_bernstein(self, p: float, largest_weight: float, level: float) -> Interval:
        """Rewards that two empirical Bernstein tests leave: E[w [r <= y]] is not below p, E[w [r < y]] not above it."""
        if self.total <= 0:
            return Interval(-math.inf, math.inf)
        share = np.concatenate([[0.0], np.cumsum(self.sums[WEIGHT])])
        squares = np.concatenate([[0.0], np.cumsum(self.sums[SQUARE])])
        means = (share - p * self.total) / self.n
        variances = ((1 - 2 * p) * squares + p * p * squares[-1]) / self.n - means**2
        reach = np.array([reach_of_bernstein(max(v, 0.0), self.n, largest_weight, level) for v in variances])
        first, last = int(np.argmax(means >= -reach)), len(means) - 1 - int(np.argmax((means <= reach)[::-1]))
        low = -math.inf if first == 0 else float(self.rewards[first - 1])
        return Interval(low, math.inf if last == len(self.rewards) else float(self.rewards[last]))

    def _between(self, low: float, high: float) -> Interval:
        return Interval(self.quantile(low) if low > 0 else -math.inf, self.quantile(high) if high < 1 else math.inf)

    def shortfall_normal(self, p: float, level: float) -> Interval:
        """The shortfall with the standard error of its influence function, w (q - (q - r)+ / p - shortfall)."""
        q, value = self.quantile(p), self.shortfall(p)
        if not math.isfinite(value):
            return Interval(-math.inf, math.inf)
        below = self.rewards <= q
        w2, w2r, w2rr = self.sums[SQUARE], self.sums[SQUARE_R], self.sums[SQUARE_RR]
        # on rows below q the influence is (q - value) - (q - r) / p = a + b r, above it is q - value
        a, b = (q - value) - q / p, 1 / p
        inner = a * a * w2[below] + 2 * a * b * w2r[below] + b * b * w2rr[below]
        variance = float(inner.sum() + (q - value) ** 2 * w2[~below].sum())
        reach = normal_quantile(level) * math.sqrt(max(variance, 0.0)) / self.total
        return Interval(value - reach, value + reach)
