"""Sticks of logistic regressions: the probabilities of single values that rewards take again and again."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyarm.errors import require, require_count, require_positive
from polyarm.types import Array, Rng

Pair = tuple[float, float]


class StickParams(NamedTuple):
    """What the arms share, lam (n_sticks, 2) and beta_0 (n_sticks, D), and beta of every arm, (n_arms, n_sticks, D)."""

    spread: Array
    centre: Array
    slopes: Array


@dataclass(frozen=True)
class LogisticSticks:
    """The kind of a reward given that it is none of the kinds before: P(kind = j | kind >= j, x) = sigmoid(f'beta_aj).

    beta_aj ~ N(beta_0j, Lambda_j),  beta_0j ~ N(0, wide),  lam_j ~ IG(arm_shape, arm_scale) below `most`,  f = (x, 1)
    A pair holds the value for the slopes, in units in which columns have size 1, and for the intercept.
    """

    n_arms: int
    context_dim: int
    arm_shape: Pair = (1.0, 1.0)
    arm_scale: Pair = (0.3, 2.0)
    wide: Pair = (0.1, 9.0)
    most: Pair = (1.0, 4.0)

    def __post_init__(self) -> None:
        require_count(self.n_arms, "n_arms")
        require_count(self.context_dim, "context_dim")
        for name in ("arm_shape", "arm_scale", "wide", "most"):
            require(len(getattr(self, name)) == 2, name, "a pair", getattr(self, name))
            for value in getattr(self, name):
                require_positive(value, name)

    def by_feature(self, pair: Array) -> Array:
        """A value for every feature from those of slopes and intercept, (..., 2) to (..., D)."""
        values = np.repeat(pair[..., :1], self.context_dim + 1, axis=-1)
        values[..., -1] = pair[..., 1]
        return values

    def sample_params(self, n_sticks: int, rng: Rng) -> StickParams:
        """Parameters of all arms drawn from the prior."""
        spread = np.full((n_sticks, 2), np.inf)
        while (spread >= np.array(self.most)).any():
            fresh = np.array(self.arm_scale) / rng.standard_gamma(self.arm_shape, (n_sticks, 2))
            spread = np.where(spread < np.array(self.most), spread, fresh)
        wide = np.sqrt(self.by_feature(np.array(self.wide)))
        centre = wide * rng.standard_normal((n_sticks, self.context_dim + 1))
        noise = rng.standard_normal((self.n_arms, n_sticks, self.context_dim + 1))
        return StickParams(spread, centre, centre + np.sqrt(self.by_feature(spread)) * noise)

    def probabilities(self, params: StickParams, arm: int, context: Array) -> Array:
        """Probability of every kind of an arm's reward in this context, the rest last, (n_sticks + 1,)."""
        share = 1.0 / (1.0 + np.exp(-params.slopes[arm] @ np.append(context, 1.0)))
        left = np.cumprod(np.append(1.0, 1.0 - share))
        return np.append(left[:-1] * share, left[-1])

    def sample_kind(self, params: StickParams, arm: int, context: Array, rng: Rng) -> int:
        """The kind of one reward of an arm in this context."""
        p = self.probabilities(params, arm, context)
        return int(rng.choice(len(p), p=p / p.sum()))
