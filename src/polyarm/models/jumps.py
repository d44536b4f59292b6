"""Distributions with jumps: single values that have a probability of their own, and a continuous rest."""

from dataclasses import dataclass, replace

import numpy as np

from polyarm.models.amounts import AmountMixture
from polyarm.models.student import StudentMixture
from polyarm.types import Array, Rng


@dataclass(frozen=True, eq=False)
class JumpMixture:
    """values[j] with probability weights[j], else a draw of the rest; without a rest the weights sum to one."""

    values: Array
    weights: Array
    rest: StudentMixture | AmountMixture | None = None

    @property
    def continuous_weight(self) -> float:
        """Probability of the rest."""
        return 0.0 if self.rest is None else max(1.0 - float(self.weights.sum()), 0.0)

    def probability(self, value: float) -> float:
        """Probability of exactly this value."""
        return float(self.weights[self.values == value].sum())

    def pdf(self, y: Array | float) -> Array:
        """Density of the continuous part at y, of the shape of y; it integrates to the rest's probability."""
        points = np.asarray(y, dtype=np.float64)
        return np.zeros(points.shape) if self.rest is None else self.continuous_weight * self.rest.pdf(points)

    def spread_pdf(self, y: Array | float) -> Array:
        """Density at y with every single value spread evenly over all that is nearest to it: how counts are drawn."""
        points, order = np.asarray(y, dtype=np.float64), np.argsort(self.values)
        values, weights = self.values[order], self.weights[order]
        if len(values) < 2:
            return self.pdf(points)
        width = np.gradient(values)
        at = np.searchsorted(0.5 * (values[1:] + values[:-1]), points)
        inside = (points >= values[0] - 0.5 * width[0]) & (points <= values[-1] + 0.5 * width[-1])
        return np.asarray(self.pdf(points) + np.where(inside, weights[at] / width[at], 0.0))

    def cdf(self, y: Array | float) -> Array:
        """Probability of at most y, of the shape of y."""
        points = np.asarray(y, dtype=np.float64)
        jumps = (points[..., None] >= self.values) @ self.weights
        smooth = 0.0 if self.rest is None else self.continuous_weight * self.rest.cdf(points)
        return np.asarray(np.clip(jumps + smooth, 0.0, 1.0))

    def shifted(self, by: float) -> "JumpMixture":
        """The distribution of a draw plus a constant."""
        rest = None if self.rest is None else self.rest.shifted(by)
        return replace(self, values=self.values + by, rest=rest)

    def mean(self) -> float:
        """Expectation."""
        smooth = 0.0 if self.rest is None else self.continuous_weight * self.rest.mean()
        return float(self.weights @ self.values) + smooth

    def quantile(self, probability: Array | float) -> Array:
        """Smallest values that are not exceeded with probability p, of the shape of p."""
        p = np.asarray(probability, dtype=np.float64)
        order = np.argsort(self.values)
        values, weights = self.values[order], self.weights[order]
        top = np.minimum(self.cdf(values), 1.0)  # probability of at most each value, and of less
        below = np.maximum(top - weights, 0.0)
        if self.rest is None:
            at = np.minimum(np.searchsorted(top, np.minimum(p, top[-1])), len(values) - 1)
            return np.where(np.isnan(p) | (p < 0) | (p > 1), np.nan, values[at])
        # take the jumps out of p: what is left is a probability of the rest
        taken = (weights * np.clip((p[..., None] - below) / np.maximum(weights, 1e-300), 0.0, 1.0)).sum(axis=-1)
        share = self.continuous_weight
        with np.errstate(invalid="ignore", divide="ignore"):
            smooth = self.rest.quantile(np.where((p >= 0) & (p <= 1), np.clip((p - taken) / share, 0.0, 1.0), np.nan))
        out = np.asarray(smooth)
        for value, low, high in zip(values, below, top, strict=True):
            out = np.where((p > low) & (p <= high), value, out)
        return out

    def sample(self, n: int, rng: Rng) -> Array:
        """n independent draws."""
        weights = np.append(self.weights, self.continuous_weight)
        kind = rng.choice(len(weights), size=n, p=weights / weights.sum())
        out = np.append(self.values, 0.0)[kind]
        if self.rest is not None:
            smooth = kind == len(self.values)
            out[smooth] = self.rest.sample(int(smooth.sum()), rng)
        return out
