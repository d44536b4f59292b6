"""The normal-inverse-gamma base measure G0 of the paper."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from polyarm.errors import (
    InvalidArgument,
    require_array,
    require_count,
    require_covariance,
    require_finite,
    require_positive,
)
from polyarm.types import Array, Rng


@dataclass(frozen=True, eq=False)
class NormalInverseGamma:
    """Prior of a component: w ~ N(mean, s2 covariance), s2 ~ IG(shape, scale).

    A number for `mean` stands for every coefficient, a number for `covariance` for a multiple of the identity.

    >>> NormalInverseGamma(dim=2, mean=0.0, covariance=1.0, shape=1.0, scale=1.0).covariance.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    dim: int
    mean: ArrayLike = 0.0
    covariance: ArrayLike = 1.0
    shape: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        require_count(self.dim, "dim")
        mean = require_array(self.mean, "prior_mean")
        if mean.ndim > 1 or (mean.ndim == 1 and mean.shape != (self.dim,)):
            raise InvalidArgument(f"prior_mean must be a number or a vector of {self.dim}, got shape {mean.shape}")
        require_finite(mean, "prior_mean")
        object.__setattr__(self, "mean", np.broadcast_to(mean, (self.dim,)).copy())
        covariance = require_covariance(self.covariance, self.dim, "prior_covariance")
        object.__setattr__(self, "covariance", covariance.copy())
        object.__setattr__(self, "shape", require_positive(self.shape, "prior_shape"))
        object.__setattr__(self, "scale", require_positive(self.scale, "prior_scale"))

    @property
    def mean_vector(self) -> Array:
        """The prior mean, (dim,)."""
        return np.asarray(self.mean)

    @property
    def covariance_matrix(self) -> Array:
        """The prior covariance in units of the noise variance, (dim, dim)."""
        return np.asarray(self.covariance)

    @property
    def sqrt_information(self) -> Array:
        """Square-root information of the prior, (dim + 1, dim + 1): see kernels.linalg.sqrt_information."""
        factor = np.linalg.cholesky(np.linalg.inv(self.covariance_matrix)).T
        sqrt_information = np.zeros((self.dim + 1, self.dim + 1))
        sqrt_information[:-1, :-1] = factor
        sqrt_information[:-1, -1] = factor @ self.mean_vector
        return sqrt_information

    def sample(self, n: int, rng: Rng) -> tuple[Array, Array]:
        """n draws of the coefficients (n, dim) and the noise variance (n,)."""
        variance = self.scale / rng.standard_gamma(self.shape, n)
        factor = np.linalg.cholesky(self.covariance_matrix)
        noise = rng.standard_normal((n, self.dim)) @ factor.T
        return self.mean_vector + np.sqrt(variance)[:, None] * noise, variance
