"""Revenue with zeros: amounts, a flat fee, refunds."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from polyarm import special
from polyarm.environments.predictors import sample_predictor
from polyarm.errors import require_count, require_name, require_number, require_positive
from polyarm.types import Array, Rng, World

AMOUNTS = ("log-normal", "gamma")
GAMMA_SHAPE = 2.0
LOG_SD = 0.8


@dataclass(frozen=True, slots=True)
class Purchases:
    """Arm a pays 0, or with probability sigmoid(c_a'(1, x)) an amount whose median or mean is exp(m_a'(1, x)).

    `amounts` log-normal: LogN(m_a'(1, x), 0.8^2); gamma: of shape 2 and mean exp(m_a'(1, x)).  With a `fee` above 0 a
    share sigmoid(g_a'(1, x)) of those who pay anything pays exactly the fee.  Coefficients are new in every world;
    contexts are standard normal.
    """

    n_arms: int = 4
    context_dim: int = 3
    amounts: Literal["log-normal", "gamma"] = "log-normal"
    rate: float = 0.15
    fee: float = 0.0

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_name(self.amounts, AMOUNTS, "amounts")
        require_number(self.rate, "rate", "a number between 0 and 1", lambda rate: 0 < rate < 1)
        require_number(self.fee, "fee", "a number of at least 0", lambda fee: fee >= 0)

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        contexts = rng.standard_normal((horizon, self.context_dim))
        pays = special.expit(sample_predictor(contexts, self.n_arms, float(special.logit(self.rate)), 0.5, 0.5, rng))
        level = sample_predictor(contexts, self.n_arms, 2.0, 0.3, 0.35, rng)
        amounts, means = sample_amounts(self.amounts, level, rng)
        if self.fee > 0:
            flat = special.expit(sample_predictor(contexts, self.n_arms, 0.0, 0.5, 0.5, rng))
            amounts = np.where(rng.random(flat.shape) < flat, self.fee, amounts)
            means = flat * self.fee + (1 - flat) * means
        return World(contexts, np.where(rng.random(pays.shape) < pays, amounts, 0.0), pays * means)


def sample_amounts(law: Literal["log-normal", "gamma"], level: Array, rng: Rng) -> tuple[Array, Array]:
    """Positive amounts and their means, given the logarithm of the median (log-normal) or of the mean (gamma)."""
    if law == "gamma":
        return np.exp(level) * rng.standard_gamma(GAMMA_SHAPE, level.shape) / GAMMA_SHAPE, np.exp(level)
    return np.exp(level + LOG_SD * rng.standard_normal(level.shape)), np.exp(level + 0.5 * LOG_SD**2)


@dataclass(frozen=True, slots=True)
class Refunds:
    """Arm a pays 0, an amount where something is sold, or minus the cost of a sale that comes back.

    A sale has probability sigmoid(c_a'(1, x)) and comes back with probability sigmoid(r_a'(1, x)).  Amounts are
    LogN(m_a'(1, x), 0.8^2), costs gamma of shape 2 and mean `cost`.  Coefficients are new in every world; contexts are
    standard normal.
    """

    n_arms: int = 4
    context_dim: int = 3
    rate: float = 0.4
    cost: float = 6.0

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_number(self.rate, "rate", "a number between 0 and 1", lambda rate: 0 < rate < 1)
        require_positive(self.cost, "cost")

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        contexts = rng.standard_normal((horizon, self.context_dim))
        sells = special.expit(sample_predictor(contexts, self.n_arms, float(special.logit(self.rate)), 0.5, 0.5, rng))
        back = special.expit(sample_predictor(contexts, self.n_arms, -1.0, 0.5, 0.7, rng))
        amounts, means = sample_amounts("log-normal", sample_predictor(contexts, self.n_arms, 1.5, 0.3, 0.35, rng), rng)
        costs = self.cost * rng.standard_gamma(GAMMA_SHAPE, sells.shape) / GAMMA_SHAPE
        sold = np.where(rng.random(back.shape) < back, -costs, amounts)
        rewards = np.where(rng.random(sells.shape) < sells, sold, 0.0)
        return World(contexts, rewards, sells * ((1 - back) * means - back * self.cost))
