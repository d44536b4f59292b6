"""A linear-Gaussian reward."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyarm.errors import require_positive
from polyarm.models.base_measure import NormalInverseGamma
from polyarm.types import Array, Rng


class LinearParams(NamedTuple):
    """Coefficients (dim,) and noise variance of a linear-Gaussian reward."""

    weights: Array
    noise_var: float


@dataclass(frozen=True)
class LinearGaussian:
    """y ~ N(x'w, s2) with (w, s2) from the base measure; `noise_var` fixes s2 where it is known.

    >>> from polyarm import NormalInverseGamma
    >>> base = NormalInverseGamma(dim=2, mean=0.0, covariance=1.0, shape=1.0, scale=1.0)
    >>> LinearGaussian(base, noise_var=0.5).noise_var
    0.5
    """

    base: NormalInverseGamma
    noise_var: float | None = None

    def __post_init__(self) -> None:
        if self.noise_var is not None:
            require_positive(self.noise_var, "noise_var")

    def sample_params(self, rng: Rng) -> LinearParams:
        """Parameters drawn from the prior."""
        if self.noise_var is None:
            weights, variance = self.base.sample(1, rng)
            return LinearParams(weights[0], float(variance[0]))
        factor = np.linalg.cholesky(self.base.covariance_matrix)
        noise = factor @ rng.standard_normal(self.base.dim)
        return LinearParams(self.base.mean_vector + np.sqrt(self.noise_var) * noise, self.noise_var)

    def mean_reward(self, params: LinearParams, context: Array) -> float:
        """x'w."""
        return float(context @ params.weights)

    def sample_reward(self, params: LinearParams, context: Array, rng: Rng) -> float:
        """One reward in this context."""
        return float(rng.normal(context @ params.weights, np.sqrt(params.noise_var)))
