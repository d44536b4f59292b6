"""Profits: what was paid less what it cost to try."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from polyarm import special
from polyarm.environments.predictors import sample_predictor
from polyarm.environments.purchases import sample_amounts
from polyarm.errors import require, require_count, require_name, require_number
from polyarm.types import Rng, World

MARGINS = ("gamma", "price")


@dataclass(frozen=True, slots=True)
class Profits:
    """Arm a costs k_a every time and, with probability sigmoid(c_a'(1, x)), brings in an amount.

    `margins` gamma: of shape 2 and mean exp(m_a'(1, x)); price: exactly `price`.  Costs are uniform on (0, 2 cost), in
    steps of 0.01.  With a `control` the first arm does nothing, costs nothing and brings in nothing.  Coefficients and
    costs are new in every world; contexts are standard normal.
    """

    n_arms: int = 4
    context_dim: int = 3
    margins: Literal["gamma", "price"] = "gamma"
    rate: float = 0.15
    cost: float = 1.0
    price: float = 8.0
    control: bool = False

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        require_name(self.margins, MARGINS, "margins")
        require_number(self.rate, "rate", "a number between 0 and 1", lambda rate: 0 < rate < 1)
        require_number(self.cost, "cost", "a number of at least 0", lambda cost: cost >= 0)
        require_number(self.price, "price", "a number above 0", lambda price: price > 0)
        require(isinstance(self.control, bool), "control", "True or False", self.control)

    def sample(self, horizon: int, rng: Rng) -> World:
        """One world of `horizon` steps."""
        contexts = rng.standard_normal((horizon, self.context_dim))
        pays = special.expit(sample_predictor(contexts, self.n_arms, float(special.logit(self.rate)), 0.5, 0.5, rng))
        means = np.full(pays.shape, self.price)
        amounts = means
        if self.margins == "gamma":
            amounts, means = sample_amounts("gamma", sample_predictor(contexts, self.n_arms, 2.0, 0.3, 0.35, rng), rng)
        costs = np.round(2.0 * self.cost * rng.random(self.n_arms), 2)
        if self.control:
            pays[:, 0], costs[0] = 0.0, 0.0
        bought = rng.random(pays.shape) < pays
        return World(contexts, np.where(bought, amounts, 0.0) - costs, pays * means - costs)
