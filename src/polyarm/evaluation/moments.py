"""Sums that describe any number of rows in constant memory, and that can be merged."""

from dataclasses import dataclass, field

import numpy as np

from polyarm.types import Array, IntArray


@dataclass
class Moments:
    """Count, means (k,) and centred cross products (k, k) of columns (Chan, Golub & LeVeque 1983)."""

    width: int
    n: int = 0
    mean: Array = field(init=False)
    products: Array = field(init=False)

    def __post_init__(self) -> None:
        self.mean, self.products = np.zeros(self.width), np.zeros((self.width, self.width))

    def add(self, columns: Array) -> None:
        """Take in the rows of columns (n, k)."""
        if not len(columns):
            return
        part = Moments(self.width)
        part.n, part.mean = len(columns), columns.mean(axis=0)
        centred = columns - part.mean
        part.products = centred.T @ centred
        self.merge(part)

    def merge(self, other: "Moments") -> None:
        """Take in what another has seen."""
        n = self.n + other.n
        if not other.n:
            return
        shift = other.mean - self.mean
        self.products = self.products + other.products + np.outer(shift, shift) * (self.n * other.n / n)
        self.mean = self.mean + shift * (other.n / n)
        self.n = n

    def covariance(self) -> Array:
        """Unbiased covariance of the columns; zero before two rows."""
        return self.products / max(self.n - 1, 1)


@dataclass
class Blocks:
    """Sums of columns over at most `size` blocks of rows: what a bootstrap resamples.

    Row i goes to block i mod size, so that a log with fewer rows is resampled row by row.
    """

    width: int
    size: int = 500
    sums: Array = field(init=False)
    n_seen: int = 0

    def __post_init__(self) -> None:
        self.sums = np.zeros((self.size, self.width + 1))

    def add(self, columns: Array) -> None:
        """Take in the rows of columns (n, k)."""
        block: IntArray = (self.n_seen + np.arange(len(columns))) % self.size
        self.n_seen += len(columns)
        self.sums[:, -1] += np.bincount(block, minlength=self.size)
        for j in range(self.width):
            self.sums[:, j] += np.bincount(block, columns[:, j], minlength=self.size)

    def used(self) -> Array:
        """Blocks that hold rows, (m, k + 1); the last column counts them."""
        return self.sums[: min(self.n_seen, self.size)]
