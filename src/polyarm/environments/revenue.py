"""Offers that few visitors buy, and that they spend very different amounts on."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyarm import special
from polyarm.errors import require, require_count
from polyarm.types import Array, Rng, World


class Offer(NamedTuple):
    """One arm: logit of the conversion, and mean and sd of the logarithm of the amount, both linear in the context."""

    conversion: tuple[float, ...]
    log_amount: tuple[float, ...]
    log_sd: float = 0.75


OFFERS = (  # coefficients of 1, wealth and loyalty: the dearer the offer, the more wealth decides
    Offer((0.5, 0.0, 1.5), (0.4, 0.2, 0.4)),
    Offer((-1.2, 1.5, 0.6), (1.3, 0.3, 0.0)),
    Offer((-3.5, 3.2, 0.0), (1.4, 0.8, 0.0), 1.0),
)


@dataclass(frozen=True, slots=True)
class Revenue:
    """Zero-inflated log-normal rewards: arm a pays 0, or with probability sigmoid(c_a'x) an amount LogN(m_a'x, s_a^2).

    The context is (1, wealth, loyalty), the last two uniform on (0, 1).
    """

    offers: tuple[Offer, ...] = OFFERS

    def __post_init__(self) -> None:
        require_count(len(self.offers), "number of offers")
        for offer in self.offers:
            require(len(offer.conversion) == len(offer.log_amount) == 3, "offer", "of three coefficients each", offer)
            require(offer.log_sd > 0, "log_sd", "above 0", offer.log_sd)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.offers)

    @property
    def context_dim(self) -> int:
        """Length of a context."""
        return 3

    def conversion(self, contexts: Array) -> Array:
        """Probability that each offer is bought, (T, n_arms)."""
        return np.asarray(special.expit(contexts @ np.array([offer.conversion for offer in self.offers]).T))

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        contexts = np.column_stack([np.ones(horizon), rng.random((horizon, 2))])
        log_amount = contexts @ np.array([offer.log_amount for offer in self.offers]).T
        log_sd = np.array([offer.log_sd for offer in self.offers])
        buys = self.conversion(contexts)
        amounts = np.exp(log_amount + log_sd * rng.standard_normal(log_amount.shape))
        rewards = np.where(rng.random(buys.shape) < buys, amounts, 0.0)
        return World(contexts, rewards, buys * np.exp(log_amount + 0.5 * log_sd**2))
