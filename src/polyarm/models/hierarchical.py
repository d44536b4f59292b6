"""The hierarchical mixture of linear-Gaussian rewards: arms that share their components."""

from dataclasses import dataclass

import numpy as np

from polyarm.errors import require_count, require_number
from polyarm.models.base_measure import NormalInverseGamma
from polyarm.models.mixture import LinearMixture, MixtureParams
from polyarm.types import Rng


@dataclass(frozen=True)
class HierarchicalMixture:
    """G0 ~ PY(shared_discount, shared_concentration, base), and for every arm G_a ~ PY(discount, concentration, G0).

    Discounts of 0 make it the hierarchical Dirichlet process (the paper's appendix A; Teh et al. 2006).

    >>> from polyarm import NormalInverseGamma
    >>> base = NormalInverseGamma(dim=2, mean=0.0, covariance=1.0, shape=1.0, scale=1.0)
    >>> HierarchicalMixture(base, shared_concentration=2.0).concentration
    1.0
    """

    base: NormalInverseGamma
    concentration: float = 1.0
    discount: float = 0.0
    shared_concentration: float = 1.0
    shared_discount: float = 0.0

    def __post_init__(self) -> None:
        for name, of in (("", "concentration"), ("shared_", "shared_concentration")):
            rule = "a number of at least 0 and below 1"
            d = require_number(getattr(self, f"{name}discount"), f"{name}discount", rule, lambda v: 0 <= v < 1)
            low = -d if d > 0 else 0.0
            require_number(getattr(self, of), of, f"a finite number above {low:g}", lambda v, low=low: v > low)

    def sample_params(self, n_arms: int, rng: Rng) -> tuple[MixtureParams, ...]:
        """Parameters of every arm, drawn jointly from the prior."""
        require_count(n_arms, "n_arms")
        menu = LinearMixture(self.base, self.shared_concentration, self.shared_discount).sample_params(rng)
        arm = LinearMixture(self.base, self.concentration, self.discount)
        params = []
        for _ in range(n_arms):
            weights = arm.sample_weights(rng)
            dish = rng.choice(len(menu.weights), size=len(weights), p=menu.weights / menu.weights.sum())
            total = np.asarray(np.bincount(dish, weights, minlength=len(menu.weights)), dtype=np.float64)
            params.append(MixtureParams(total, menu.coefficients, menu.noise_var))
        return tuple(params)
