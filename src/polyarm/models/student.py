"""Mixtures of Student-t distributions: what a reward's posterior predictive distribution is."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from polyarm import special
from polyarm.kernels.student import mixture_density
from polyarm.types import Array, Rng

CELLS = 1 << 20  # (point, component) pairs held in memory at once
MAX_STEPS = 200  # of the search for a quantile; bisection alone needs about 60
SETTLED = 1e-14  # relative error of the probability at which that search stops


@dataclass(frozen=True, eq=False)
class StudentMixture:
    """sum_k weights[k] t(dof[k], location[k], scale[k]); infinite degrees of freedom make a component normal.

    >>> import numpy as np
    >>> mixture = StudentMixture(np.array([0.5, 0.5]), np.full(2, np.inf), np.array([-1.0, 1.0]), np.ones(2))
    >>> float(mixture.mean()), round(float(mixture.cdf(0.0)), 6)
    (0.0, 0.5)
    """

    weights: Array
    dof: Array
    location: Array
    scale: Array

    def pdf(self, y: Array | float) -> Array:
        """Density at y, of the shape of y."""
        points = np.asarray(y, dtype=np.float64)
        flat = np.ascontiguousarray(points).ravel()
        out = np.empty_like(flat)
        mixture_density(self.weights, self.dof, self.location, self.scale, flat, out)
        return out.reshape(points.shape)

    def cdf(self, y: Array | float) -> Array:
        """Probability of at most y, of the shape of y."""
        points = np.asarray(y, dtype=np.float64)
        rows = max(1, CELLS // len(self.weights))
        flat = points.ravel()
        parts = [self._cdf_rows(flat[i : i + rows]) for i in range(0, len(flat), rows)]
        return np.concatenate([np.empty(0), *parts]).reshape(points.shape)

    def _cdf_rows(self, y: Array) -> Array:
        each = special.stdtr(self.dof, (y[:, None] - self.location) / self.scale)
        return np.asarray(np.clip(each @ self.weights, 0.0, 1.0))

    def shifted(self, by: float) -> "StudentMixture":
        """The distribution of a draw plus a constant."""
        return replace(self, location=self.location + by)

    def mean(self) -> float:
        """Expectation."""
        return float(self.weights @ self.location)

    def quantile(self, probability: Array | float) -> Array:
        """Values that are exceeded with probability 1 - p, of the shape of p."""
        return quantiles(self, probability)

    def bracket(self, p: Array) -> tuple[Array, Array]:
        """Bounds of the quantiles: a mixture's lies between its components' own."""
        low, high = np.empty_like(p), np.empty_like(p)
        used = self.weights > 0
        for i, level in enumerate(p):
            each = self.location[used] + self.scale[used] * special.stdtrit(self.dof[used], level)
            low[i], high[i] = each.min(), each.max()
        slack = 1e-12 * (1 + np.maximum(np.abs(low), np.abs(high)))  # stdtrit is good to about 1e-14
        return low - slack, high + slack

    def sample(self, n: int, rng: Rng) -> Array:
        """n independent draws."""
        k = rng.choice(len(self.weights), size=n, p=self.weights)
        dof = self.dof[k]
        wild = np.isfinite(dof)
        noise = np.where(wild, rng.standard_t(np.where(wild, dof, 1.0)), rng.standard_normal(n))
        return np.asarray(self.location[k] + self.scale[k] * noise)


class Distribution(Protocol):
    """What a search for quantiles asks."""

    def pdf(self, y: Array | float) -> Array:
        """Density at y."""

    def cdf(self, y: Array | float) -> Array:
        """Probability of at most y."""

    def bracket(self, p: Array) -> tuple[Array, Array]:
        """Bounds of the quantiles."""


def quantiles(of: Distribution, probability: Array | float) -> Array:
    """Values that are exceeded with probability 1 - p, of the shape of p."""
    p = np.asarray(probability, dtype=np.float64)
    inside = (p > 0) & (p < 1)
    values = np.where(inside, 0.0, np.where(p == 0, -np.inf, np.where(p == 1, np.inf, np.nan)))
    values[inside] = search(of, p[inside], *of.bracket(p[inside]))
    return np.asarray(values)


def search(of: Distribution, p: Array, low: Array, high: Array) -> Array:
    """Roots of cdf - p between low and high, which are changed, by Newton's steps, halving the bracket where a step
    would leave it or gain too little.
    """
    y = 0.5 * (low + high)
    active = np.arange(len(p))
    for step in range(MAX_STEPS):
        at = y[active]
        excess = of.cdf(at) - p[active]
        low[active] = np.where(excess <= 0, at, low[active])
        high[active] = np.where(excess >= 0, at, high[active])
        still = (np.abs(excess) > SETTLED * p[active]) & (high[active] - low[active] > np.spacing(np.abs(at)))
        active, at, excess = active[still], at[still], excess[still]
        if len(active) == 0:
            break
        y[active] = next_guess(at, excess, of.pdf(at), low[active], high[active], step)
    return y


def next_guess(y: Array, excess: Array, slope: Array, low: Array, high: Array, step: int) -> Array:
    """Newton's step where it stays inside the bracket, else the middle; every fourth step is the middle."""
    middle = 0.5 * (low + high)
    if step % 4 == 3:
        return middle
    newton = y - excess / np.maximum(slope, np.finfo(float).tiny)
    return np.where((newton > low) & (newton < high), newton, middle)
