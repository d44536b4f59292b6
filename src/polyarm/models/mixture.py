"""The nonparametric mixture of linear-Gaussian rewards."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyarm.errors import require, require_count, require_number, require_positive
from polyarm.models.base_measure import NormalInverseGamma
from polyarm.types import Array, Rng

STICKS_LEFT = 1e-6  # mass below which a prior draw of the weights is closed
MAX_STICKS = 100_000  # a discount above about 0.6 gets here; what is left is one atom


class MixtureParams(NamedTuple):
    """One draw of the mixing measure: weights (K,), coefficients (K, dim), noise variances (K,)."""

    weights: Array
    coefficients: Array
    noise_var: Array


@dataclass(frozen=True)
class LinearMixture:
    """G ~ PY(discount, concentration, base), (w, s2) ~ G, y ~ N(x'w, s2).

    discount 0 is the Dirichlet process.  `LinearMixture.finite` is the mixture of a known number of components.

    >>> import numpy as np
    >>> from polyarm import NormalInverseGamma
    >>> base = NormalInverseGamma(dim=2, mean=0.0, covariance=1.0, shape=3.0, scale=1.0)
    >>> model = LinearMixture(base, concentration=0.5)
    >>> parameters = model.sample_params(np.random.default_rng(0))
    >>> parameters.coefficients.shape[1], round(float(parameters.weights.sum()), 3)
    (2, 1.0)
    """

    base: NormalInverseGamma
    concentration: float = 1.0
    discount: float = 0.0

    def __post_init__(self) -> None:
        number = require_number(self.discount, "discount", "a number below 1", lambda d: d < 1)
        if number >= 0:
            rule = "a finite number above minus the discount" if number > 0 else "a finite number above 0"
            require_number(self.concentration, "concentration", rule, lambda c: c > -number)
        else:
            m = require_number(self.concentration, "concentration", "finite") / -number
            whole = m > 0.5 and abs(m - round(m)) < 1e-9 * m
            require(
                whole,
                "concentration",
                "a multiple of -discount where the discount is negative",
                self.concentration,
            )

    @classmethod
    def finite(cls, base: NormalInverseGamma, n_components: int, weight_prior: float = 1.0) -> "LinearMixture":
        """The mixture of n_components whose weights are Dirichlet(weight_prior, ..., weight_prior)."""
        require_count(n_components, "n_components")
        alpha = require_positive(weight_prior, "weight_prior")
        return cls(base, concentration=n_components * alpha, discount=-alpha)

    @property
    def n_components(self) -> int | None:
        """Number of components of a finite mixture, None of an infinite one."""
        return round(self.concentration / -self.discount) if self.discount < 0 else None

    def sample_weights(self, rng: Rng) -> Array:
        """Weights of the mixture, by stick-breaking; the last atom takes what is left."""
        if self.n_components is not None:
            return rng.dirichlet(np.full(self.n_components, -self.discount))
        pieces: list[Array] = []
        n, left = 0, 1.0
        while left > STICKS_LEFT and n < MAX_STICKS:
            j = n + np.arange(1, 65 + n)  # twice as many each time
            broken = rng.beta(1 - self.discount, self.concentration + j * self.discount)
            stays = np.cumprod(np.concatenate([[1.0], 1 - broken]))
            pieces.append(left * (stays[:-1] - stays[1:]))
            n, left = n + len(j), left * stays[-1]
        return np.concatenate([*pieces, [left]])

    def sample_params(self, rng: Rng) -> MixtureParams:
        """Parameters drawn from the prior."""
        weights = self.sample_weights(rng)
        coefficients, variance = self.base.sample(len(weights), rng)
        return MixtureParams(weights, coefficients, variance)

    def mean_reward(self, params: MixtureParams, context: Array) -> float:
        """Expected reward in this context."""
        return float(params.weights @ (params.coefficients @ context))

    def sample_reward(self, params: MixtureParams, context: Array, rng: Rng) -> float:
        """One reward in this context."""
        k = int(np.searchsorted(np.cumsum(params.weights), rng.random() * params.weights.sum()))
        return float(rng.normal(params.coefficients[k] @ context, np.sqrt(params.noise_var[k])))
