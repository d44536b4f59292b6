"""Rewards that are 0, or an amount: one model for whether, one for how much."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from polyarm.errors import require, require_arm, require_context, require_count, require_name, require_reward
from polyarm.inference.conjugate import ConjugateEngine, ConjugateState
from polyarm.inference.door import NOTHING, Door
from polyarm.inference.generalized import GeneralizedEngine, GeneralizedState
from polyarm.inference.moments import MomentDefaults
from polyarm.models import LinearGaussian, NormalInverseGamma
from polyarm.types import Array, Rng

AMOUNTS = ("log-normal", "gamma", "normal")
LARGEST = 80.0  # of the exponent of an amount: its square is still a number


class HurdleState(NamedTuple):
    """What is known about whether there is an amount, and about amounts."""

    hurdle: GeneralizedState
    amount: GeneralizedState | ConjugateState


@dataclass(frozen=True, eq=False)
class HurdleEngine(MomentDefaults):
    """P(reward != 0) is logistic in the context; amounts are log-normal, gamma, or normal of either sign.

    `prior_var` is that of the logistic coefficients.  The logarithm of the amount (log-normal), the logarithm of its
    mean (gamma) or the amount itself (normal) is linear in the context, with prior variance `amount_var` of every
    coefficient (times the noise variance, where there is one).
    """

    n_arms: int
    context_dim: int
    amounts: Literal["log-normal", "gamma", "normal"] = "log-normal"
    prior_var: float | Array = 1.0
    amount_var: float | Array = 1.0
    _hurdle: GeneralizedEngine = field(init=False, repr=False)
    _amount: Any = field(init=False, repr=False)
    _door: Door = field(init=False, repr=False, default_factory=Door)

    def __post_init__(self) -> None:
        require_name(self.amounts, AMOUNTS, "amounts")
        hurdle = GeneralizedEngine(self.n_arms, self.context_dim, "logistic", 0.0, self.prior_var)
        amount: Any = GeneralizedEngine(self.n_arms, self.context_dim, "gamma", 0.0, self.amount_var)
        if self.amounts != "gamma":
            base = NormalInverseGamma(self.context_dim, 0.0, self.amount_var, 1.0, 1.0)
            amount = ConjugateEngine([LinearGaussian(base)] * self.n_arms)
        object.__setattr__(self, "_hurdle", hurdle)
        object.__setattr__(self, "_amount", amount)

    def init(self) -> HurdleState:
        """State before any reward."""
        return HurdleState(self._hurdle.init(), self._amount.init())

    def update(self, state: HurdleState, context: Array, arm: int, reward: float, rng: Rng) -> HurdleState:
        """State after one reward."""
        x = require_context(context, self.context_dim)
        a = require_arm(arm, self.n_arms)
        y = require_reward(reward)
        require(y >= 0 or self.amounts == "normal", "reward", "0 or an amount above 0", reward)
        if state is not self._door.last:
            self._door.check(self, state)
        self._door.last = NOTHING
        state = state._replace(hurdle=self._hurdle.update(state.hurdle, x, a, float(y != 0), rng))
        if y != 0:
            size = float(np.log(y)) if self.amounts == "log-normal" else y
            state = state._replace(amount=self._amount.update(state.amount, x, a, size, rng))
        self._door.last = state
        return state

    def with_arm(self, state: HurdleState) -> "tuple[HurdleEngine, HurdleState]":
        """The engine and its state with one more arm, the last, that has no rewards yet."""
        if state is not self._door.last:
            self._door.check(self, state)
        engine = replace(self, n_arms=self.n_arms + 1)
        return engine, HurdleState(self._hurdle.with_arm(state.hurdle)[1], self._amount.with_arm(state.amount)[1])

    def draw_means(self, state: HurdleState, context: Array, n_draws: int, rng: Rng) -> Array:
        """Posterior draws of every arm's mean reward, (n_draws, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        size = (require_count(n_draws, "n_draws"), self.n_arms)
        share = self._hurdle.draw_means(state.hurdle, context, n_draws, rng)
        if self.amounts != "log-normal":
            return np.asarray(share * self._amount.draw_means(state.amount, context, n_draws, rng))
        mean, leverage = self._amount.predictors(state.amount, context)
        shape, scale = self._amount.noise(state.amount)
        variance = scale / rng.standard_gamma(shape, size)
        level = mean + np.sqrt(variance * leverage) * rng.standard_normal(size)
        return np.asarray(share * np.exp(np.minimum(level + 0.5 * variance, LARGEST)))

    def moments(self, state: HurdleState, context: Array) -> Array:
        """Mean and standard deviation of every arm's mean reward, (2, n_arms)."""
        if state is not self._door.last:
            self._door.check(self, state)
        share, share_sd = self._hurdle.moments(state.hurdle, context)
        mean, sd = self.amount_moments(state, context)
        square = (share**2 + share_sd**2) * (mean**2 + sd**2)
        return np.stack([share * mean, np.sqrt(np.maximum(square - (share * mean) ** 2, 0.0))])

    def amount_moments(self, state: HurdleState, context: Array) -> Array:
        """Mean and standard deviation of every arm's mean amount, (2, n_arms).

        A log-normal amount's mean has no moments under the posterior, whose tails are too heavy; they are those of a
        log-normal with the posterior's mean and variance of f'w + s2 / 2, s2 the noise variance of the logarithm.
        """
        if state is not self._door.last:
            self._door.check(self, state)
        if self.amounts != "log-normal":
            return np.asarray(self._amount.moments(state.amount, context))
        level, leverage = self._amount.predictors(state.amount, context)
        shape, _ = self._amount.noise(state.amount)
        noise = self._amount.noise_variances(state.amount)
        spread = np.minimum(leverage * noise + noise**2 / (4 * np.maximum(shape - 2.0, 0.5)), LARGEST)
        mean = np.exp(np.minimum(level + 0.5 * (noise + spread), LARGEST))
        return np.stack([mean, mean * np.sqrt(np.expm1(spread))])
