"""Amounts above or below a value: a mixture of gamma distributions beside a mixture of Student-t's."""

from dataclasses import dataclass, replace

import numpy as np

from polyarm import special
from polyarm.models.student import StudentMixture, quantiles
from polyarm.types import Array, Rng


@dataclass(frozen=True, eq=False)
class AmountMixture:
    """A draw of `base` with probability base_weight, of origin + unit t with probability weights[k], t being gamma of
    that shape and mean means[k].

    base_weight and weights sum to one; a unit below 0 makes amounts below the origin.

    >>> import numpy as np
    >>> base = StudentMixture(np.ones(1), np.full(1, np.inf), np.zeros(1), np.ones(1))
    >>> mixture = AmountMixture(base, 0.5, np.array([0.5]), np.array([3.0]), shape=2.0, origin=0.0, unit=10.0)
    >>> mixture.mean()
    15.0
    """

    base: StudentMixture
    base_weight: float
    weights: Array
    means: Array
    shape: float
    origin: float
    unit: float

    def _amounts(self, y: Array) -> Array:
        return np.asarray((y[..., None] - self.origin) / self.unit)

    def pdf(self, y: Array | float) -> Array:
        """Density at y, of the shape of y."""
        points = np.asarray(y, dtype=np.float64)
        each = gamma_density(self._amounts(points), self.means, self.shape) / abs(self.unit)
        return np.asarray(self.base_weight * self.base.pdf(points) + each @ self.weights)

    def cdf(self, y: Array | float) -> Array:
        """Probability of at most y, of the shape of y."""
        points = np.asarray(y, dtype=np.float64)
        t = np.maximum(self._amounts(points), 0.0) * self.shape / self.means
        each = special.gammainc(self.shape, t) if self.unit > 0 else special.gammaincc(self.shape, t)
        return np.asarray(np.clip(self.base_weight * self.base.cdf(points) + each @ self.weights, 0.0, 1.0))

    def shifted(self, by: float) -> "AmountMixture":
        """The distribution of a draw plus a constant."""
        return replace(self, base=self.base.shifted(by), origin=self.origin + by)

    def mean(self) -> float:
        """Expectation."""
        amount = self.weights.sum() * self.origin + self.unit * float(self.weights @ self.means)
        return float(self.base_weight * self.base.mean() + amount)

    def quantile(self, probability: Array | float) -> Array:
        """Values that are exceeded with probability 1 - p, of the shape of p."""
        return quantiles(self, probability)

    def bracket(self, p: Array) -> tuple[Array, Array]:
        """Bounds of the quantiles: a mixture's lies between its components' own."""
        low, high = (self.base.quantile(p) for _ in range(2))
        level = p if self.unit > 0 else 1.0 - p
        for mean in self.means:
            own = self.origin + self.unit * mean / self.shape * special.gammaincinv(self.shape, level)
            low, high = np.minimum(low, own), np.maximum(high, own)
        slack = 1e-9 * (1 + np.maximum(np.abs(low), np.abs(high)))
        return low - slack, high + slack

    def sample(self, n: int, rng: Rng) -> Array:
        """n independent draws."""
        gamma = rng.random(n) >= self.base_weight
        out = self.base.sample(n, rng)
        k = rng.choice(len(self.weights), size=n, p=self.weights / self.weights.sum())
        amounts = self.means[k] / self.shape * rng.standard_gamma(self.shape, n)
        return np.asarray(np.where(gamma, self.origin + self.unit * amounts, out))


def gamma_density(t: Array, mean: Array, shape: float) -> Array:
    """Density of the gamma distribution of that shape and mean at t, none at 0 and below."""
    z = np.maximum(t, 0.0) * shape / mean
    with np.errstate(over="ignore"):
        log_density = special.xlogy(shape - 1.0, z) - z - special.gammaln(shape)
        return np.where(z > 0.0, np.exp(log_density), 0.0) * shape / mean
