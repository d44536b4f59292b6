"""Mixtures of Student-t distributions: what a reward's posterior predictive distribution is."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from polyarm.types import Array, Rng


@dataclass(frozen=True, eq=False)
class StudentMixture:
    """sum_k weights[k] t(dof[k], location[k], scale[k])."""

    weights: Array
    dof: Array
    location: Array
    scale: Array

    def pdf(self, y: Array | float) -> Array:
        """Density at y, of the shape of y."""
        z = np.asarray(y, dtype=np.float64)[..., None]
        return np.asarray(stats.t.pdf(z, self.dof, self.location, self.scale) @ self.weights)

    def cdf(self, y: Array | float) -> Array:
        """Probability of at most y, of the shape of y."""
        z = np.asarray(y, dtype=np.float64)[..., None]
        return np.asarray(stats.t.cdf(z, self.dof, self.location, self.scale) @ self.weights)

    def mean(self) -> float:
        """Expectation."""
        return float(self.weights @ self.location)

    def quantile(self, probability: Array | float) -> Array:
        """Values that are exceeded with probability 1 - p, by bisection on the distribution function."""
        p = np.asarray(probability, dtype=np.float64)
        each = stats.t.ppf(p[..., None], self.dof, self.location, self.scale)
        low, high = each.min(-1), each.max(-1)  # the mixture's quantile lies between its components'
        for _ in range(200):
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
            if np.all(high - low <= 1e-13 * (1 + np.abs(middle))):
                break
        return np.asarray(0.5 * (low + high))

    def sample(self, n: int, rng: Rng) -> Array:
        """N independent draws."""
        k = rng.choice(len(self.weights), size=n, p=self.weights)
        return np.asarray(self.location[k] + self.scale[k] * rng.standard_t(self.dof[k]))
